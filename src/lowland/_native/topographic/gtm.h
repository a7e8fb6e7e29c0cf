// Entry points of generative topographic mapping: a mixture of equal Gaussians at nodes y_k.
//
//     d_ik = sum over the known columns of (x_ij - y_kj)^2
//     r_ik = exp(-beta d_ik / 2) / sum_l exp(-beta d_il / 2)      the posterior of node k
//     log_i = log sum_k exp(-beta d_ik / 2)
#pragma once
#include <cstdint>

namespace lowland {

// Rows x (n x p), NaN where `missing` and unknown, minus `mean`; nodes (K x p) are centered already.
template <class T>
struct TopographicMixture {
    const T* x;
    std::int64_t n, p;
    const double* mean;
    const double* nodes;
    std::int64_t n_nodes;
    double beta;
    bool missing;
};

#define LOWLAND_DECLARE_GTM(isa)                                                                   \
    namespace isa {                                                                                \
    /* log_i, sums_kj = sum_i r_ik x_ij and masses_kj = sum_i r_ik over the rows that know j; */   \
    /* without missing values the masses have one column. */                                       \
    template <class T>                                                                             \
    bool gtm_sums(const TopographicMixture<T>& mixture, double* logs, double* sums, double* masses, \
                  int n_threads);                                                                  \
    /* log_i and r_ik. */                                                                          \
    template <class T>                                                                             \
    bool gtm_posteriors(const TopographicMixture<T>& mixture, double* logs, double* posteriors,    \
                        int n_threads);                                                            \
    }

LOWLAND_DECLARE_GTM(baseline)
LOWLAND_DECLARE_GTM(avx2)

}  // namespace lowland
