// Entry point of velocity fields that are sums of Gaussians (diffeomorphic map).
//
//     k_ij   = exp(-|u_i - v_j|^2 / 2)
//     sums_i = sum_j k_ij w_j                         the field of the weights w at the centers v
//     pull_i = sum_j k_ij (b_i . w_j) (v_j - u_i)     the gradient of b_i . sums_i by u_i
#pragma once
#include <cstdint>

namespace lowland {

// Points u (n x d) with vectors b (n x d), centers v (m x d) with vectors w (m x d). Without b there
// are no pulls.
struct GaussianField {
    const double* u;
    const double* b;
    std::int64_t n;
    const double* v;
    const double* w;
    std::int64_t m, d;
};

#define LOWLAND_DECLARE_GAUSSIAN_FIELD(isa)                                                  \
    namespace isa {                                                                          \
    bool gaussian_field(GaussianField field, double* sums, double* pulls, int n_threads);    \
    }

LOWLAND_DECLARE_GAUSSIAN_FIELD(baseline)
LOWLAND_DECLARE_GAUSSIAN_FIELD(avx2)

}  // namespace lowland
