// Entry points of the repulsion kernels; embedding/repulsion/similarity.h defines K and G.
//
//     potential_i = sum_j K_ij        force_i = sum_j G_ij (y_i - y_j)
#pragma once
#include <cstdint>

namespace lowland {

// A map of `n` points in `d` dimensions, row by row.
template <class T>
struct Map {
    const T* points;
    std::int64_t n, d;
};

struct Decay {
    bool gaussian;  // else Student
    double dof;     // of Student
};

template <class T>
struct Repulsion {
    double* potential;  // (n,)
    T* forces;          // (n, d)
};

#define LOWLAND_DECLARE_REPULSION(isa)                                                            \
    namespace isa {                                                                               \
    /* Every pair i != j; with weights u, each force is multiplied by u_i + u_j. */               \
    template <class T>                                                                            \
    bool repel_pairs(Map<T> y, Decay decay, const T* weights, Repulsion<T> out, int n_threads);   \
    /* Points of `from` against all of `y`, no point left out. */                                 \
    template <class T>                                                                            \
    bool repel_from(Map<T> from, Map<T> y, Decay decay, Repulsion<T> out, int n_threads);         \
    /* As repel_pairs, with far groups of points taken as one: Student only, d <= 3. */           \
    template <class T>                                                                            \
    bool repel_tree(Map<T> y, double dof, double angle, Repulsion<T> out, int n_threads);         \
    }

LOWLAND_DECLARE_REPULSION(baseline)
LOWLAND_DECLARE_REPULSION(avx2)

}  // namespace lowland
