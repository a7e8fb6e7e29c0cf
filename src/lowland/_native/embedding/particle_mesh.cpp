// spread and gather: between points and a grid, with B-splines of order 6 (degree 5).
//
// Along one axis a point between the nodes b + 2 and b + 3 touches the nodes b .. b + 5. Along the last
// axis these are taken as one vector of 8 with two zero weights: a point costs 6 loads in the plane.
#include "embedding/embedding.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kOrder = 6;
typedef Lanes<float>::vector Row;
typedef Lanes<float>::loose LooseRow;
static_assert(Lanes<float>::width == 8, "a row of weights is one vector");

struct Spline {
    Row weights, slopes;  // of the nodes first .. first + 5; the last two lanes are 0
    Index first;
    float t;  // how far the point is past a node, in pitches
};

// 120 times the coefficients of t^0 .. t^5 of the six weights: the pieces of the B-spline.
static constexpr float kPieces[kOrder][8] = {
    {1, 26, 66, 26, 1, 0, 0, 0},     {-5, -50, 0, 50, 5, 0, 0, 0},    {10, 20, -60, 20, 10, 0, 0, 0},
    {-10, 20, 0, -20, 10, 0, 0, 0},  {5, -20, 30, -20, 5, 0, 0, 0},   {-1, 5, -10, 10, -5, 1, 0, 0}};

static inline Row load_row(const float* from) { return *reinterpret_cast<const LooseRow*>(from); }

// Weights of a coordinate and their derivatives, in units of 1/pitch: Horner's scheme for all at once.
template <class T>
static inline Spline spline_at(T x, double low, double inverse_pitch, Index nodes) {
    const double u = (static_cast<double>(x) - low) * inverse_pitch;
    Index cell = static_cast<Index>(u);
    cell = cell < 2 ? 2 : min_of(cell, nodes - 6);  // never outside, whatever the point
    const float t = static_cast<float>(u - static_cast<double>(cell));
    Row weights = load_row(kPieces[kOrder - 1]), slopes = weights;
    for (int k = kOrder - 2; k > 0; --k) {
        weights = weights * t + load_row(kPieces[k]);
        slopes = slopes * t + weights;
    }
    weights = weights * t + load_row(kPieces[0]);
    return {weights * (1.0f / 120), slopes * (1.0f / 120), cell - 2, t};
}

template <int D>
struct Steps {  // how far apart neighbors along an axis are in memory
    Index along[D];
    explicit Steps(const Grid& grid) {
        along[D - 1] = 1;
        for (int k = D - 1; k > 0; --k) along[k - 1] = along[k] * grid.nodes[k];
    }
};

// Calls row(nodes of the last axis, place on the first axis, place on the second) for all rows of
// nodes that a point touches; places count from 0, and are 0 on axes the map does not have.
template <int D, class Body>
static inline void for_rows(const Spline* at, const Steps<D>& steps, Index offset, const Body& row) {
    if constexpr (D == 1) {
        row(offset + at[0].first, 0, 0);
    } else if constexpr (D == 2) {
        const Index start = offset + at[0].first * steps.along[0] + at[1].first;
        for (Index a = 0; a < kOrder; ++a) row(start + a * steps.along[0], a, 0);
    } else {
        const Index start = offset + at[0].first * steps.along[0] + at[1].first * steps.along[1] + at[2].first;
        for (Index a = 0; a < kOrder; ++a) {
            for (Index b = 0; b < kOrder; ++b) row(start + a * steps.along[0] + b * steps.along[1], a, b);
        }
    }
}

template <int D>
static inline void add_charge(const Spline* at, const Steps<D>& steps, float* nodes) {
    const Row last = at[D - 1].weights;
    for_rows<D>(at, steps, 0, [&](Index place, Index a, Index b) {
        const float weight = D == 1 ? 1.0f : at[0].weights[a] * (D == 3 ? at[1].weights[b] : 1.0f);
        LooseRow& row = *reinterpret_cast<LooseRow*>(nodes + place);
        row = row + weight * last;
    });
}

// value[0] is the field at a point, value[1 + k] its slope along axis k, per pitch.
template <int D>
static inline void interpolate(const Spline* at, const Steps<D>& steps, const float* nodes, float* value) {
    Row field = {}, slope_a = {}, slope_b = {};
    for_rows<D>(at, steps, 0, [&](Index place, Index a, Index b) {
        const Row row = load_row(nodes + place);
        const float wb = D == 3 ? at[1].weights[b] : 1.0f;
        field += (D == 1 ? 1.0f : at[0].weights[a] * wb) * row;
        if constexpr (D >= 2) slope_a += at[0].slopes[a] * wb * row;
        if constexpr (D == 3) slope_b += at[0].weights[a] * at[1].slopes[b] * row;
    });
    const Row last = at[D - 1].weights;
    value[0] = sum_of(field * last);
    value[D] = sum_of(field * at[D - 1].slopes);
    if constexpr (D >= 2) value[1] = sum_of(slope_a * last);
    if constexpr (D == 3) value[2] = sum_of(slope_b * last);
}

// sin and cos of 2 pi t for 0 <= t < 1, to some 1e-5: they scale a correction.
static inline void turn(float t, float* sine, float* cosine) {
    const float x = 6.2831853f * (t - 0.5f), x2 = x * x;  // sin(2 pi t) = -sin(x)
    *sine = -x * (0.99999615f + x2 * (-0.16664703f + x2 * (8.3172454e-3f + x2 * (-1.9376590e-4f + x2 * 2.1981252e-6f))));
    *cosine = -(0.99999921f + x2 * (-0.49999421f + x2 * (4.1659778e-2f + x2 * (-1.3858790e-3f +
                x2 * (2.4202941e-5f - x2 * 2.1972964e-7f)))));
}

// Points are sorted into bands of nodes along the first axis. Bands reach into the next one, so the
// even ones are filled first, then the odd ones: threads never meet, and every node gets its charges
// in the order of the points.
template <class T, int D>
static bool spread_in(const T* y, Index n, const Grid& grid, float* charges, int n_threads) {
    constexpr Index kBand = 8;
    const Steps<D> steps(grid);
    const double inverse_pitch = 1 / grid.pitch;
    const Index n_bands = ceil_div(grid.nodes[0], kBand);
    Index* starts = allocate<Index>(n_bands + 2);
    std::int32_t* band_of = allocate<std::int32_t>(n);
    std::int32_t* points = allocate<std::int32_t>(n);
    const bool enough = starts && band_of && points;
    if (enough) {
        for (Index b = 0; b < n_bands + 2; ++b) starts[b] = 0;
        parallel(ceil_div(n, Index(4096)), n_threads, [&](Index task, int) {
            for (Index i = task * 4096; i < min_of(n, (task + 1) * 4096); ++i) {
                const Index first = spline_at(y[i * D], grid.low[0], inverse_pitch, grid.nodes[0]).first;
                band_of[i] = static_cast<std::int32_t>(first / kBand);
            }
        });
        for (Index i = 0; i < n; ++i) ++starts[band_of[i] + 2];
        for (Index b = 2; b < n_bands + 2; ++b) starts[b] += starts[b - 1];
        for (Index i = 0; i < n; ++i) points[starts[band_of[i] + 1]++] = static_cast<std::int32_t>(i);
        parallel(grid.nodes[0], n_threads, [&](Index row, int) {
            for (Index c = 0; c < steps.along[0]; ++c) charges[row * steps.along[0] + c] = 0;
        });
        for (Index odd = 0; odd < 2; ++odd) {
            parallel((n_bands + 1 - odd) / 2, n_threads, [&](Index task, int) {
                const Index band = 2 * task + odd;
                Spline at[D];
                for (Index p = starts[band]; p < starts[band + 1]; ++p) {
                    for (int k = 0; k < D; ++k) {
                        at[k] = spline_at(y[points[p] * Index(D) + k], grid.low[k], inverse_pitch,
                                          grid.nodes[k]);
                    }
                    add_charge<D>(at, steps, charges);
                }
            });
        }
    }
    std::free(starts), std::free(band_of), std::free(points);
    return enough;
}

// potential = field - own, force = -1/2 slope of the field + 1/4 slope of own. A point's own share of
// the field is 1 in truth; on the grid it is  own = mean + wave * sum_k cos(2 pi t_k)  of its place in a
// cell, and half its slope would push the point about in its cell.
template <class T, int D>
static bool gather_in(const T* y, Index n, const Grid& grid, Own own, const float* field,
                      double* potential, T* forces, int n_threads) {
    constexpr Index kPointsPerTask = 1024;
    const Steps<D> steps(grid);
    const double inverse_pitch = 1 / grid.pitch;
    const float half = static_cast<float>(0.5 * inverse_pitch);
    const float quarter = static_cast<float>(-0.25 * 6.283185307179586 * own.wave * inverse_pitch);
    parallel(ceil_div(n, kPointsPerTask), n_threads, [&](Index task, int) {
        Spline at[D];
        float value[D + 1], sine, cosine;
        for (Index i = task * kPointsPerTask; i < min_of(n, (task + 1) * kPointsPerTask); ++i) {
            for (int k = 0; k < D; ++k) {
                at[k] = spline_at(y[i * D + k], grid.low[k], inverse_pitch, grid.nodes[k]);
            }
            interpolate<D>(at, steps, field, value);
            double share = own.mean;
            for (int k = 0; k < D; ++k) {
                turn(at[k].t, &sine, &cosine);
                share += own.wave * cosine;
                forces[i * D + k] = -half * value[1 + k] + quarter * sine;
            }
            potential[i] = static_cast<double>(value[0]) - share;
        }
    });
    return true;
}

template <class T>
bool spread(const T* y, Index n, Index d, Grid grid, float* charges, int n_threads) {
    if (d == 1) return spread_in<T, 1>(y, n, grid, charges, n_threads);
    if (d == 2) return spread_in<T, 2>(y, n, grid, charges, n_threads);
    return spread_in<T, 3>(y, n, grid, charges, n_threads);
}

template <class T>
bool gather(const T* y, Index n, Index d, Grid grid, Own own, const float* field, double* potential,
            T* forces, int n_threads) {
    if (d == 1) return gather_in<T, 1>(y, n, grid, own, field, potential, forces, n_threads);
    if (d == 2) return gather_in<T, 2>(y, n, grid, own, field, potential, forces, n_threads);
    return gather_in<T, 3>(y, n, grid, own, field, potential, forces, n_threads);
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template bool spread<T>(const T*, Index, Index, Grid, float*, int);                             \
    template bool gather<T>(const T*, Index, Index, Grid, Own, const float*, double*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
