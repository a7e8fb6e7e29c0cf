// spread and gather: between points and a grid, with cubic B-splines.
//
// Along one axis a point at node b + 1 + t (0 <= t < 1) touches the nodes b .. b + 3 with the weights
// (1-t)^3/6, (3t^3 - 6t^2 + 4)/6, (-3t^3 + 3t^2 + 3t + 1)/6, t^3/6; on a grid weights multiply.
#include "embedding.h"
#include "isa.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kTouched = 4;

struct Spline {
    Index first;
    float weights[kTouched], slopes[kTouched];
};

// Weights of a coordinate; their derivatives in units of 1/pitch.
template <class T>
static inline Spline spline_at(T x, double low, double inverse_pitch, Index nodes) {
    const double u = (static_cast<double>(x) - low) * inverse_pitch;
    Index cell = static_cast<Index>(u);
    cell = cell < 1 ? 1 : min_of(cell, nodes - 3);  // never outside, whatever the point
    const float t = static_cast<float>(u - static_cast<double>(cell)), s = 1 - t;
    constexpr float sixth = 1.0f / 6;
    return {cell - 1,
            {s * s * s * sixth, ((3 * t - 6) * t * t + 4) * sixth, ((3 * s - 6) * s * s + 4) * sixth,
             t * t * t * sixth},
            {-0.5f * s * s, (1.5f * t - 2) * t, (2 - 1.5f * s) * s, 0.5f * t * t}};
}

template <int D>
struct Steps {  // how far apart neighbors along an axis are in memory
    Index along[D];
    explicit Steps(const Grid& grid) {
        along[D - 1] = 1;
        for (int k = D - 1; k > 0; --k) along[k - 1] = along[k] * grid.nodes[k];
    }
};

// Adds the charge of a point to the nodes around it: axis by axis, the last one in a tight loop.
template <int D>
static inline void add_charge(const Spline* at, const Index* along, float charge, float* nodes) {
    nodes += at[0].first * along[0];
    for (Index a = 0; a < kTouched; ++a) {
        if constexpr (D == 1) {
            nodes[a] += charge * at[0].weights[a];
        } else {
            add_charge<D - 1>(at + 1, along + 1, charge * at[0].weights[a], nodes + a * along[0]);
        }
    }
}

// Interpolates the field and its slopes: value[0] is the field, value[1 + k] the slope along axis k.
template <int D>
static inline void interpolate(const Spline* at, const Index* along, const float* nodes, float* value) {
    nodes += at[0].first * along[0];
    for (int k = 0; k <= D; ++k) value[k] = 0;
    for (Index a = 0; a < kTouched; ++a) {
        float inner[D];  // of the axes behind this one
        if constexpr (D == 1) {
            inner[0] = nodes[a];
        } else {
            interpolate<D - 1>(at + 1, along + 1, nodes + a * along[0], inner);
        }
        value[0] += at[0].weights[a] * inner[0];
        value[1] += at[0].slopes[a] * inner[0];
        for (int k = 1; k < D; ++k) value[1 + k] += at[0].weights[a] * inner[k];
    }
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
                    add_charge<D>(at, steps.along, 1.0f, charges);
                }
            });
        }
    }
    std::free(starts), std::free(band_of), std::free(points);
    return enough;
}

// potential = field - 1 (the point's own charge), force = -1/2 slope of the field.
template <class T, int D>
static bool gather_in(const T* y, Index n, const Grid& grid, const float* field, double* potential,
                      T* forces, int n_threads) {
    constexpr Index kPointsPerTask = 1024;
    const Steps<D> steps(grid);
    const double inverse_pitch = 1 / grid.pitch;
    const float half = static_cast<float>(0.5 * inverse_pitch);
    parallel(ceil_div(n, kPointsPerTask), n_threads, [&](Index task, int) {
        Spline at[D];
        float value[D + 1];
        for (Index i = task * kPointsPerTask; i < min_of(n, (task + 1) * kPointsPerTask); ++i) {
            for (int k = 0; k < D; ++k) {
                at[k] = spline_at(y[i * D + k], grid.low[k], inverse_pitch, grid.nodes[k]);
            }
            interpolate<D>(at, steps.along, field, value);
            potential[i] = static_cast<double>(value[0]) - 1;
            for (int k = 0; k < D; ++k) forces[i * D + k] = -half * value[1 + k];
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
bool gather(const T* y, Index n, Index d, Grid grid, const float* field, double* potential, T* forces,
            int n_threads) {
    if (d == 1) return gather_in<T, 1>(y, n, grid, field, potential, forces, n_threads);
    if (d == 2) return gather_in<T, 2>(y, n, grid, field, potential, forces, n_threads);
    return gather_in<T, 3>(y, n, grid, field, potential, forces, n_threads);
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template bool spread<T>(const T*, Index, Index, Grid, float*, int);                             \
    template bool gather<T>(const T*, Index, Index, Grid, const float*, double*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
