// Entry points of the kernels on units: points of the data space that stand for many rows.
//
// A missing value (NaN) of a row has no part in its distances and sums.
#pragma once
#include <cstdint>

namespace lowland {

template <class T>
struct UnitTable {  // n rows and m units of p columns, row by row
    const T* x;
    std::int64_t n;
    const T* units;
    std::int64_t m, p;
};

#define LOWLAND_DECLARE_UNITS(isa)                                                                  \
    namespace isa {                                                                                 \
    template <class T>                                                                              \
    bool nearest_units(UnitTable<T> table, const T* shift, bool missing, std::int64_t k,            \
                       std::int32_t* ids, double* squares, int n_threads);                          \
    template <class T>                                                                              \
    bool sum_by_unit(const T* x, std::int64_t n, std::int64_t p, const std::int32_t* nearest,       \
                     std::int64_t m, bool missing, double* counts, double* sums, int n_threads);    \
    template <class T>                                                                              \
    bool squares_to_units(UnitTable<T> table, const std::int32_t* nearest,                          \
                          const std::int32_t* lists, std::int64_t width, double* squares,           \
                          int n_threads);                                                           \
    }

LOWLAND_DECLARE_UNITS(baseline)
LOWLAND_DECLARE_UNITS(avx2)

}  // namespace lowland
