// Entry point of the repulsion on a flat torus (relational perspective map).
//
//     d_ij        = max(sum_k min(|z_ik - y_jk|, side_k - |z_ik - y_jk|), nearest)
//     energy_i    = sum_j delta_ij / (p d_ij^p),  or -sum_j delta_ij ln d_ij if p = 0
//     f_ij        = delta_ij / d_ij^(p + 1)
//     forces_ik   = sum_j h_ijk f_ij,  minus the gradient of energy_i; h is the sign of the shorter
//                   way round from y_jk to z_ik, 0 where both ways are equal or the points agree
//     stiffness_i = sum_j f_ij / d_ij
#pragma once
#include <cstdint>

namespace lowland {

// Points z (m x q), whose energy is measured, and the points y (n x q) that repel them; in a fit the
// two are the same. All coordinates lie in 0 .. side. delta is (m / repeats) x n: each row of it
// belongs to `repeats` points of z in a row.
template <class T>
struct Torus {
    const T* z;
    std::int64_t m;
    const T* y;
    std::int64_t n, q;
    const double* sides;
    const T* delta;
    std::int64_t repeats;
    double rigidity, nearest;
};

struct TorusOut {
    double* energy;     // (m,)
    double* forces;     // (m, q)
    double* stiffness;  // (m,)
};

#define LOWLAND_DECLARE_TORUS(isa)                                     \
    namespace isa {                                                    \
    template <class T>                                                 \
    bool torus_energy(Torus<T> torus, TorusOut out, int n_threads);    \
    }

LOWLAND_DECLARE_TORUS(baseline)
LOWLAND_DECLARE_TORUS(avx2)

}  // namespace lowland
