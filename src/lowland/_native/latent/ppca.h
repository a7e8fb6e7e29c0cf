// Entry points of probabilistic PCA with missing values: x = mean + W z + noise, z ~ N(0, I).
//
// Of a row, only the known columns o count:
//
//     M = W_o^T W_o + noise I,   m = M^-1 W_o^T r,   C = noise M^-1,   r = x_o - mean_o
//     log p(x_o) = -1/2 (|o| log(2 pi) + (|o| - q) log noise + log |M| + (r.r - r.W_o m) / noise)
//
// A symmetric matrix is given by its lower triangle, row by row.
#pragma once
#include <cstdint>

namespace lowland {

// Rows x (n x p), NaN where unknown; weights W (p x q).
template <class T>
struct LatentGaussian {
    const T* x;
    std::int64_t n, p;
    const double* mean;
    const double* weights;
    std::int64_t q;
    double noise;
};

// Sums of the M step, with u = (z, 1), over the rows that know column j (or all rows: total).
struct RegressionSums {
    double* squares;   // p: sum r_ij^2, where r = x - mean
    double* products;  // p x (q + 1): sum r_ij E[u_i]
    double* grams;     // p x (q + 1)(q + 2) / 2: sum E[u_i u_i^T]
    double* total;     // (q + 1)(q + 2) / 2: sum over all rows
};

#define LOWLAND_DECLARE_PPCA(isa)                                                               \
    namespace isa {                                                                             \
    /* The E step. Columns that are `rare` are summed over known values, the others are the */  \
    /* total minus missing values. */                                                           \
    template <class T>                                                                          \
    bool ppca_sums(const LatentGaussian<T>& model, const std::uint8_t* rare, double* logs,      \
                   RegressionSums sums, int n_threads);                                         \
    /* m (n x q), log (n) and, unless null, C (n x q (q + 1) / 2). */                           \
    template <class T>                                                                          \
    bool ppca_posteriors(const LatentGaussian<T>& model, double* places, double* logs,          \
                         double* covariances, int n_threads);                                   \
    }

LOWLAND_DECLARE_PPCA(baseline)
LOWLAND_DECLARE_PPCA(avx2)

}  // namespace lowland
