// Entry points of the covariances of Gaussian processes.
//
//     k_ij = bias + variance f(|u_i - v_j|^2) + a_i . b_j
//
// u and v are places divided by length scales, a and b places of the linear part, one of them
// multiplied by its weights. f is exp(-D / 2), or one of Matern's functions of order 3/2 and 5/2.
#pragma once
#include <cstdint>

namespace lowland {

enum class Shape : int { none = 0, rbf = 1, matern32 = 2, matern52 = 3 };

// u (n x q), v (m x q), a (n x r), b (m x r); q = 0 without a stationary part, r = 0 without a linear.
// With `upper`, v and b are the same points as u and a, and only pairs i <= j are looked at: of values
// nothing else is meaningful, and g is read as if g_ji = g_ij.
struct CovariancePairs {
    const double *u, *v, *a, *b;
    std::int64_t n, m, q, r;
    Shape shape;
    double variance, bias;
    bool upper;
};

// Values k_ij (n x m) and, unless nullptr, variance f'(|u_i - v_j|^2).
struct CovarianceValues {
    double* values;
    double* radial;
};

// Slopes of sum_ij g_ij k_ij, with d = u_i - v_j and h = g_ij f'(|d|^2):
//     by_row (n x (2 + 2q + r)):  sum_j of g f, g, h d_k, h d_k^2, g b_k
//     by_column (m x (q + r)):    sum_i of h d_k, g a_k; not wanted if nullptr
struct CovarianceSlopes {
    const double* g;
    double* by_row;
    double* by_column;
};

#define LOWLAND_DECLARE_COVARIANCE(isa)                                                          \
    namespace isa {                                                                              \
    bool covariance_matrix(CovariancePairs pairs, CovarianceValues out, int n_threads);          \
    bool covariance_slopes(CovariancePairs pairs, CovarianceSlopes slopes, int n_threads);       \
    }

LOWLAND_DECLARE_COVARIANCE(baseline)
LOWLAND_DECLARE_COVARIANCE(avx2)

}  // namespace lowland
