// settle_rows: new rows in a fixed map, each one alone, at a minimum of
//
//     J(z) = sum_j p_j h(|z - y_j|) + phi(z) / m        (or + log phi(z)),   h the potential of Pull
//
// A row starts at the mean of its neighbors. Each step goes to the minimum of a quadratic majorizer of the
// first term plus the linear part of the second; a step that does not lower J is halved. The row has
// converged when it moves by at most `close`. The places of its neighbors are copied next to each other
// first: all steps find them in the nearest cache, and nothing takes the time or memory of the whole map.
#include <math.h>

#include "embedding/attraction/attract_row.h"
#include "embedding/repulsion/splines.h"

namespace lowland {
namespace LOWLAND_ISA {

template <int D>
struct Height {  // J, half its gradient, and the curvature of the attraction
    double value, slope[D], stiffness;
};

template <int D>
struct Place {
    float at[D];
};

// phi and -1/2 grad phi; a point beyond the grid gets the field at its edge.
template <int D>
static inline double field_at(const Frozen& map, const Steps<D>& steps, const Place<D>& z, float* push) {
    const double inverse_pitch = 1 / map.grid.pitch;
    const float half = static_cast<float>(0.5 * inverse_pitch);
    Spline at[D];
    float value[D + 1];
    for (int k = 0; k < D; ++k) {
        const double low = map.grid.low[k] + 3 * map.grid.pitch;
        const double high = map.grid.low[k] + static_cast<double>(map.grid.nodes[k] - 7) * map.grid.pitch;
        const double x = z.at[k], inside = x < low ? low : x > high ? high : x;
        at[k] = spline_at(static_cast<float>(inside), map.grid.low[k], inverse_pitch, map.grid.nodes[k]);
    }
    interpolate<D>(at, steps, map.field, value);
    for (int k = 0; k < D; ++k) push[k] = -half * value[1 + k];
    return value[0];
}

template <int D, class Law>
static Height<D> height_at(const Frozen& map, const Law& law, const float* points, const Steps<D>& steps,
                           const Edges<float>& edges, const Place<D>& z) {
    float pull[D], push[D];
    double sums[2];
    attract_row<float, D, true>(edges, 0, z.at, points, law, pull, sums);
    double potential = field_at<D>(map, steps, z, push);
    const bool by_rows = map.mean_potential == 0;
    if (by_rows && !(potential > __FLT_MIN__)) potential = __FLT_MIN__;
    const double per_unit = 1 / (by_rows ? potential : map.mean_potential);
    Height<D> found;
    found.value = sums[0] + (by_rows ? log(potential) : potential / map.mean_potential);
    for (int k = 0; k < D; ++k) found.slope[k] = pull[k] - push[k] * per_unit;
    found.stiffness = sums[1];
    return found;
}

template <int D, class Law>
static Place<D> settled(const Frozen& map, const Law& law, const float* points, const Steps<D>& steps,
                        const Edges<float>& edges, Place<D> z, Index most_steps, double close) {
    Height<D> here = height_at<D>(map, law, points, steps, edges, z);
    double share = 1;
    for (Index step = 0; step < most_steps; ++step) {
        const double stiffness = here.stiffness > 1e-12 ? here.stiffness : 1e-12;
        Place<D> tried;
        double square = 0;
        for (int k = 0; k < D; ++k) {
            const double move = -here.slope[k] / stiffness;
            tried.at[k] = static_cast<float>(z.at[k] + share * move);
            square += move * move;
        }
        const Height<D> there = height_at<D>(map, law, points, steps, edges, tried);
        const double distance = share * sqrt(square);
        if (there.value < here.value) {
            z = tried;
            here = there;
            share = 2 * share < 1 ? 2 * share : 1;
        } else {
            share /= 2;
        }
        if (!(distance > close)) break;
    }
    return z;
}

template <class T, int D, class Law>
static bool settle_in(const Frozen& map, const Law& law, const NearRows<T>& near, Index most_steps, double close,
                      float* z, int n_threads) {
    constexpr Index kRowsPerTask = 32, S = stride_of<float, D>;
    const Steps<D> steps(map.grid);
    const Index k = near.k;
    float* points = allocate<float>(n_threads * k * S);
    std::int32_t* columns = allocate<std::int32_t>(k);
    float* weights = allocate<float>(n_threads * k);
    const bool enough = points && columns && weights;
    for (Index e = 0; enough && e < k; ++e) columns[e] = static_cast<std::int32_t>(e);
    parallel(enough ? ceil_div(near.m, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        float* own_points = points + slot * k * S;
        float* own_weights = weights + slot * k;
        const Index starts[2] = {0, k};
        const Edges<float> edges{starts, columns, own_weights, 1};
        for (Index i = task * kRowsPerTask; i < min_of(near.m, (task + 1) * kRowsPerTask); ++i) {
            double mean[D] = {};
            for (Index e = 0; e < k; ++e) {
                const std::int32_t id = near.ids[i * k + e];
                const T weight = near.weights[i * k + e];
                const float* place = map.y + Index(id < 0 ? 0 : id) * D;
                own_weights[e] = static_cast<float>(weight);
                for (int c = 0; c < S; ++c) own_points[e * S + c] = c < D ? place[c] : 0.0f;
                for (int c = 0; c < D; ++c) {
                    mean[c] += static_cast<double>(weight) * static_cast<double>(place[c]);
                }
            }
            Place<D> start;
            for (int c = 0; c < D; ++c) start.at[c] = static_cast<float>(mean[c]);
            const Place<D> end = settled<D>(map, law, own_points, steps, edges, start, most_steps, close);
            for (int c = 0; c < D; ++c) z[i * D + c] = end.at[c];
        }
    });
    std::free(points), std::free(columns), std::free(weights);
    return enough;
}

template <class T, class Law>
static bool settle_by(const Law& law, const Frozen& map, const NearRows<T>& near, Index d, Index steps, double close,
                      float* z, int n_threads) {
    if (d == 1) return settle_in<T, 1>(map, law, near, steps, close, z, n_threads);
    if (d == 2) return settle_in<T, 2>(map, law, near, steps, close, z, n_threads);
    return settle_in<T, 3>(map, law, near, steps, close, z, n_threads);
}

template <class T>
bool settle_rows(Frozen map, NearRows<T> near, Index d, Index steps, double close, float* z, int n_threads) {
    if (map.pull.a > 0) {
        return settle_by<T>(FuzzyPull<float>(map.pull), map, near, d, steps, close, z, n_threads);
    }
    return settle_by<T>(StudentPull<float>(map.pull), map, near, d, steps, close, z, n_threads);
}

#define LOWLAND_INSTANTIATE(T) \
    template bool settle_rows<T>(Frozen, NearRows<T>, Index, Index, double, float*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
