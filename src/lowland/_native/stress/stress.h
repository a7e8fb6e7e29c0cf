// Entry points of the stress kernels: how far the distances of a map are from what they should be.
//
//     gap_ij   = delta_ij - |z_i - y_j|
//     stress_i = sum_j w_ij gap_ij^2
//     force_i  = sum_j w_ij (1 - delta_ij / |z_i - y_j|) (z_i - y_j),  half the gradient of the stress
#pragma once
#include <cstdint>

namespace lowland {

// Points z (m x d), whose stress is measured, and the points y (n x d) they should be at a distance
// from; in a fit the two are the same.
template <class T>
struct TwoMaps {
    const T* z;
    std::int64_t m;
    const T* y;
    std::int64_t n, d;
};

// delta (m x n) row by row; NaN is an unknown distance. Weights are given (m x n), or
// delta^-power with power 0, 1 or 2, where a pair with delta = 0 does not count unless power = 0.
template <class T>
struct Targets {
    const T* delta;
    const T* weights;
    int power;
};

// Pairs of points of one map, each listed once.
template <class T>
struct PairList {
    const std::int32_t* first;
    const std::int32_t* second;
    const T* delta;
    const T* weights;  // nullptr: all 1
    std::int64_t count;
};

struct StressOut {
    double* stress;  // (m,)
    double* forces;  // (m, d)
};

#define LOWLAND_DECLARE_STRESS(isa)                                                               \
    namespace isa {                                                                               \
    /* All pairs of two maps. */                                                                  \
    template <class T>                                                                            \
    bool stress_rows(TwoMaps<T> maps, Targets<T> targets, StressOut out, int n_threads);          \
    /* The listed pairs of one map: only y, n and d are used. */                                  \
    template <class T>                                                                            \
    bool stress_pairs(TwoMaps<T> maps, PairList<T> pairs, StressOut out, int n_threads);          \
    /* out[p] = |y_i - y_j| of the listed pairs. */                                               \
    template <class T>                                                                            \
    bool pair_distances(TwoMaps<T> maps, PairList<T> pairs, T* out, int n_threads);               \
    /* The non-decreasing sequence nearest to d; see monotone_regression.cpp. */                  \
    bool pool_adjacent(const double* d, const double* weights, std::int64_t n,                    \
                       const std::int32_t* groups, std::int64_t n_groups, double* fit,            \
                       int n_threads);                                                            \
    }

LOWLAND_DECLARE_STRESS(baseline)
LOWLAND_DECLARE_STRESS(avx2)

}  // namespace lowland
