// Entry points of UMAP's kernels: the fuzzy neighbor graph, its repulsion, and densities.
#pragma once
#include <cstdint>

#include "embedding/embedding.h"

namespace lowland {

// Repulsion of two points at squared distance u:
//
//     R(u) = 2 b / ((soft + u) (1 + a u^b)),        force on i = R (y_i - y_j).
//
// `heights` has the potential K(u), with dK/du = -R, at u = 2^(first + e / per_octave), e = 0, 1, ...; between
// them it is interpolated, below the first it is the first, and beyond the last 0.
struct FuzzyLaw {
    double a, b, soft;
    const float* heights;
    std::int64_t n_heights, first, per_octave;
};

// How many other points each point is compared with, drawn by a counter: (seed, point, number of the draw).
struct Draws {
    std::uint64_t seed;
    std::int64_t count;
};

#define LOWLAND_DECLARE_FUZZY(isa)                                                                       \
    namespace isa {                                                                                      \
    template <class T>                                                                                   \
    bool fuzzy_weights(const T* distances, std::int64_t n, std::int64_t k, double target,                \
                       double connectivity, double mean_distance, T* weights, double* nearest,           \
                       double* widths, int n_threads);                                                   \
    /* Points of `from` against all of `y`; a point does not repel the one with its own number. */       \
    template <class T>                                                                                   \
    bool fuzzy_repel(const T* from, std::int64_t m, const T* y, std::int64_t n, std::int64_t d,          \
                     FuzzyLaw law, bool same, double* potential, T* forces, int n_threads);              \
    template <class T>                                                                                   \
    bool fuzzy_sample(const T* y, std::int64_t n, std::int64_t d, FuzzyLaw law, Draws draws,             \
                      double* potential, T* forces, int n_threads);                                      \
    template <class T>                                                                                   \
    bool map_radii(Edges<T> edges, const T* y, std::int64_t d, double a, double b, double* sums,         \
                   int n_threads);                                                                       \
    template <class T>                                                                                   \
    bool radius_forces(Edges<T> edges, const T* y, std::int64_t d, double a, double b,                   \
                       const double* sums, const double* slopes, T* forces, int n_threads);              \
    }

LOWLAND_DECLARE_FUZZY(baseline)
LOWLAND_DECLARE_FUZZY(avx2)

}  // namespace lowland
