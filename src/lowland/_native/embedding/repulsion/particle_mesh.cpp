// spread and gather: between points and a grid, with the B-splines of splines.h.
#include "embedding/repulsion/splines.h"

namespace lowland {
namespace LOWLAND_ISA {

template <int D>
static inline void add_charge(const Spline* at, const Steps<D>& steps, float* nodes) {
    const Row last = at[D - 1].weights;
    for_rows<D>(at, steps, 0, [&](Index place, Index a, Index b) {
        const float weight = D == 1 ? 1.0f : at[0].weights[a] * (D == 3 ? at[1].weights[b] : 1.0f);
        LooseRow& row = *reinterpret_cast<LooseRow*>(nodes + place);
        row = row + weight * last;
    });
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
