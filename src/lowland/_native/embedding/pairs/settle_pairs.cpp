// settle_pairs: new rows in a fixed map of pairs, each one alone, at a minimum of
//
//     J(z) = sum over near j of A(s_j) + rho * sum over all j of R(s_j),    s_j = 1 + |z - y_j|^2,
//
// with A(s) = s / (10 + s), or that of LocalMAP (see pair_maps.h), and R(s) = 1 / (1 + s) minus its
// tangent at the reach, 0 beyond that: so force and potential end without a jump. A row starts at the lowest of the places
// of its near points and their mean. A is concave in s, so its tangent gives a quadratic majorizer of the
// attraction; each step goes to the minimum of that and the linear part of the repulsion, and is halved
// until J falls. No step is longer than kLongest: where the repulsion wins, the slope is so small far out
// that steps would become endless. The row has converged when it moves by at most `close`.
#include <math.h>

#include "common/elementary.h"
#include "common/points.h"
#include "embedding/pairs/pair_maps.h"
#include "embedding/repulsion/splines.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr double kNear = 10, kLongest = 1;

struct Height {  // J, and the curvature of the attraction; half the gradient is beside it
    double value, stiffness;
};

// The repulsion of all points: its potential, of which half the gradient is subtracted from `slope`.
double repulsion_of_all(const PairMap& map, const Coordinates<double>& points, const double* z, double* slope,
                        double* scratch) {
    typedef Lanes<double>::vector Vector;
    constexpr Index W = Lanes<double>::width;
    const Index whole = map.n / W * W;
    const double most = 2 + map.reach * map.reach, edge = 1 / most;
    Vector sum = {};
    Vector* pushes = reinterpret_cast<Vector*>(scratch);
    for (Index k = 0; k < map.d; ++k) pushes[k] = Vector{};
    for (Index j = 0; j < whole; j += W) {
        Vector below = fill<double>(2);
        for (Index k = 0; k < map.d; ++k) {
            const Vector gap = z[k] - *reinterpret_cast<const Vector*>(points.data + k * points.stride + j);
            below += gap * gap;
        }
        const Vector term = 1.0 / below, inside = below < most ? fill<double>(1) : fill<double>(0);
        const Vector force = inside * (term * term - edge * edge);
        sum += inside * (term - edge * (2 - edge * below));
        for (Index k = 0; k < map.d; ++k) {
            const Vector gap = z[k] - *reinterpret_cast<const Vector*>(points.data + k * points.stride + j);
            pushes[k] += force * gap;
        }
    }
    double potential = sum_of(sum);
    for (Index k = 0; k < map.d; ++k) slope[k] -= map.far * sum_of(pushes[k]);
    for (Index j = whole; j < map.n; ++j) {
        double below = 2;
        for (Index k = 0; k < map.d; ++k) {
            const double gap = z[k] - map.y[j * map.d + k];
            below += gap * gap;
        }
        if (!(below < most)) continue;
        const double force = 1 / (below * below) - edge * edge;
        potential += 1 / below - edge * (2 - edge * below);
        for (Index k = 0; k < map.d; ++k) slope[k] -= map.far * force * (z[k] - map.y[j * map.d + k]);
    }
    return map.far * potential;
}

// The same from the grid, which holds phi(u) = 2 sum R(s_j) at u = z / sqrt(2): without a reach that is
// the sum of 1 / (1 + |u - y_j / sqrt(2)|^2). A point beyond the grid gets the field at its edge.
template <int D>
double repulsion_on_grid(const PairMap& map, const double* z, double* slope) {
    const Steps<D> steps(map.grid);
    const double inverse_pitch = 1 / map.grid.pitch, root = 0.70710678118654752440;
    Spline at[D];
    float value[D + 1];
    for (int k = 0; k < D; ++k) {
        const double low = map.grid.low[k] + 3 * map.grid.pitch;
        const double high = map.grid.low[k] + static_cast<double>(map.grid.nodes[k] - 7) * map.grid.pitch;
        const double u = root * z[k], inside = u < low ? low : u > high ? high : u;
        at[k] = spline_at(inside, map.grid.low[k], inverse_pitch, map.grid.nodes[k]);
    }
    interpolate<D>(at, steps, map.field, value);
    const double quarter = 0.25 * root * inverse_pitch * map.far;
    for (int k = 0; k < D; ++k) slope[k] += quarter * static_cast<double>(value[1 + k]);
    return 0.5 * map.far * static_cast<double>(value[0]);
}

Height height_at(const PairMap& map, const Coordinates<double>& points, const std::int32_t* near, Index k_near,
                 const double* z, double* slope, double* scratch) {
    Height found{0, 0};
    for (Index k = 0; k < map.d; ++k) slope[k] = 0;
    for (Index e = 0; e < k_near; ++e) {
        const double* there = map.y + near[e] * map.d;
        double s = 1;
        for (Index k = 0; k < map.d; ++k) s += (z[k] - there[k]) * (z[k] - there[k]);
        double pull = kNear / ((kNear + s) * (kNear + s));
        if (map.local > 0) {
            found.value += map.local * (sqrt(s) / (kNear + s) + atan(sqrt(s / kNear)) / sqrt(kNear));
            pull *= map.local / sqrt(s);
        } else {
            found.value += s / (kNear + s);
        }
        for (Index k = 0; k < map.d; ++k) slope[k] += pull * (z[k] - there[k]);
        found.stiffness += pull;
    }
    if (map.field == nullptr) {
        found.value += repulsion_of_all(map, points, z, slope, scratch);
    } else if (map.d == 1) {
        found.value += repulsion_on_grid<1>(map, z, slope);
    } else if (map.d == 2) {
        found.value += repulsion_on_grid<2>(map, z, slope);
    } else {
        found.value += repulsion_on_grid<3>(map, z, slope);
    }
    return found;
}

}  // namespace

bool settle_pairs(PairMap map, Partners near, Index steps, double close, double* z, int n_threads) {
    constexpr Index kRowsPerTask = 16, kArrays = 8;  // of d numbers each: four places, and pushes of 4 d
    const Index d = map.d, k_near = near.k;
    Coordinates<double> points;
    const bool packed = map.field != nullptr || points.pack(map.y, map.n, d);
    double* work = allocate<double>(n_threads * kArrays * d);
    const bool enough = packed && work;
    parallel(enough ? ceil_div(near.n, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        double* scratch = work + slot * kArrays * d;  // first, so that it is at a multiple of a vector
        double *tried = scratch + 4 * d, *slope = tried + d, *new_slope = slope + d, *move = new_slope + d;
        for (Index i = task * kRowsPerTask; i < min_of(near.n, (task + 1) * kRowsPerTask); ++i) {
            const std::int32_t* ids = near.ids + i * k_near;
            double* at = z + i * d;
            for (Index k = 0; k < d; ++k) {
                double sum = 0;
                for (Index e = 0; e < k_near; ++e) sum += map.y[ids[e] * d + k];
                at[k] = sum / static_cast<double>(k_near);
            }
            Height here = height_at(map, points, ids, k_near, at, slope, scratch);
            for (Index e = 0; e < k_near; ++e) {
                const double* there = map.y + ids[e] * d;
                const Height other = height_at(map, points, ids, k_near, there, new_slope, scratch);
                if (!(other.value < here.value)) continue;
                here = other;
                for (Index k = 0; k < d; ++k) at[k] = there[k], slope[k] = new_slope[k];
            }
            double share = 1;
            for (Index step = 0; step < steps; ++step) {
                const double stiffness = here.stiffness > 1e-12 ? here.stiffness : 1e-12;
                double square = 0;
                for (Index k = 0; k < d; ++k) {
                    move[k] = -share * slope[k] / stiffness;
                    square += move[k] * move[k];
                }
                const double shrink = square > kLongest * kLongest ? kLongest / sqrt(square) : 1;
                for (Index k = 0; k < d; ++k) tried[k] = at[k] + shrink * move[k];
                const Height there = height_at(map, points, ids, k_near, tried, new_slope, scratch);
                if (there.value < here.value) {
                    here = there;
                    for (Index k = 0; k < d; ++k) at[k] = tried[k], slope[k] = new_slope[k];
                    share = 2 * share < 1 ? 2 * share : 1;
                } else {
                    share /= 2;
                }
                if (!(square > close * close)) break;
            }
        }
    });
    std::free(work), std::free(points.data);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
