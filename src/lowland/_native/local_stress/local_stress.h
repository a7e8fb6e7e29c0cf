// Entry point of the kernel of local stress: a pair counts by its distance in the map, in the data,
// or in both.
//
// With d = |z_i - y_j|, gap = d - delta and the weight w of the law, the kernel gives per point i
//
//     stress_i    = sum_j of the terms of the published objective, w gap^2 or |gap| F
//     potential_i = sum_j u_ij,  u the function of d whose half slope is the force below
//     degrees_i   = sum_j w_ij
//     forces_i    = sum_j w_ij gap_ij (z_i - y_j) / d_ij
#pragma once
#include <cstdint>

namespace lowland {

// How a pair counts. Radial laws: w = (1 - tradeoff) F(d) + tradeoff F(delta), where F is averaged over
// the radii of both points. F(u) is 1 up to the radius (step), exp(-u / radius), or falls smoothly from
// 1 at half the radius to 0 at one and a half (sigmoid). Symmetric: |gap| F(min(delta, d)) with F the
// upper tail of a normal distribution; |gap| is rounded off within `rounding` of 0.
enum LawKind : int { kStep = 0, kExp = 1, kSigmoid = 2, kSymmetric = 3 };

struct Law {
    int kind;
    double tradeoff;
    double center, width, rounding;
};

// Points z (m x d) and y (n x d), in a fit the same; delta (m x n) row by row, NaN where a pair does not
// count; radii of both, which a symmetric law does not read.
template <class T>
struct LocalRows {
    const T* z;
    std::int64_t m;
    const T* y;
    std::int64_t n, d;
    const T* delta;
    const T* radii_z;
    const T* radii_y;
};

struct LocalOut {
    double* stress;
    double* potential;
    double* degrees;
    double* forces;
};

#define LOWLAND_DECLARE_LOCAL_STRESS(isa)                                                  \
    namespace isa {                                                                        \
    /* All pairs of two maps. */                                                           \
    template <class T>                                                                     \
    bool local_stress_rows(LocalRows<T> maps, Law law, LocalOut out, int n_threads);       \
    }

LOWLAND_DECLARE_LOCAL_STRESS(baseline)
LOWLAND_DECLARE_LOCAL_STRESS(avx2)

}  // namespace lowland
