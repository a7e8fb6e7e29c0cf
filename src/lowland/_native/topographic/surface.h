// Entry point of the projection of rows on a surface of simplices (elastic map).
#pragma once
#include <cstdint>

namespace lowland {

// Nodes (m x p) are the corners of simplices (s x (q + 1)). The simplices at node c are
// members[starts[c] .. starts[c + 1]].
struct Surface {
    const double* nodes;
    std::int64_t m, p;
    const std::int64_t* simplices;
    std::int64_t q;
    const std::int64_t* starts;
    const std::int64_t* members;
};

// For each row of x (n x p) the nearest point of the simplices at its nodes near (n x k), or what a
// descent along the surface from there leads to: the simplex (-1: none), the weights of its corners
// (n x (q + 1)), and the squared distance.
template <class T>
struct Projection {
    const T* x;
    std::int64_t n;
    const std::int64_t* near;
    std::int64_t k;
    std::int64_t* found;
    double* weights;
    double* squares;
};

#define LOWLAND_DECLARE_SURFACE(isa)                                                          \
    namespace isa {                                                                           \
    template <class T>                                                                        \
    bool project_on_surface(const Surface& surface, const Projection<T>& task, int n_threads); \
    }

LOWLAND_DECLARE_SURFACE(baseline)
LOWLAND_DECLARE_SURFACE(avx2)

}  // namespace lowland
