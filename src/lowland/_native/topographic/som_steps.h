// Entry point of som_steps: Kohonen's rule, one row after the other.
//
//     c = the unit nearest to x_t (of equal ones the first)
//     w_j += rate_t h_cj (x_t - w_j)     for all j; a missing value (NaN) of x_t moves nothing
#pragma once
#include <cstdint>

namespace lowland {

template <class T>
struct SomRows {  // in the order of the steps
    const T* rows;
    const double* rates;
    std::int64_t n, p;
};

#define LOWLAND_DECLARE_SOM_STEPS(isa)                                                            \
    namespace isa {                                                                               \
    template <class T>                                                                            \
    bool som_steps(SomRows<T> rows, const double* neighborhood, double* codebook, std::int64_t m); \
    }

LOWLAND_DECLARE_SOM_STEPS(baseline)
LOWLAND_DECLARE_SOM_STEPS(avx2)

}  // namespace lowland
