// The entry points of the affinity kernels, declared once per instruction set.
#pragma once
#include <cstdint>

namespace lowland {

// Which columns the rows of an n x n matrix have: row i those numbered starts[i] .. starts[i+1].
struct RowPattern {
    const std::int64_t* starts;
    const std::int32_t* columns;
    std::int64_t n;
};

// An entry on its way to another order.
template <class T>
struct Entry {
    std::int32_t row, column;
    T value;
};

#define LOWLAND_DECLARE_AFFINITY(isa)                                                             \
    namespace isa {                                                                               \
    template <class T>                                                                            \
    bool calibrate(const std::int64_t* starts, std::int64_t n, const T* distances,                \
                   double log_perplexity, T* probabilities, double* betas, int n_threads);        \
    template <class T>                                                                            \
    bool transpose(RowPattern rows, const T* values, Entry<T>* work, std::int64_t* out_starts,    \
                   std::int32_t* out_columns, T* out_values, int n_threads);                      \
    bool union_starts(RowPattern a, RowPattern b, std::int64_t* starts, int n_threads);           \
    template <class T>                                                                            \
    bool union_sum(RowPattern a, const T* a_values, RowPattern b, const T* b_values,              \
                   double scale, const std::int64_t* starts, std::int32_t* columns, T* values,    \
                   int n_threads);                                                                \
    }

LOWLAND_DECLARE_AFFINITY(baseline)
LOWLAND_DECLARE_AFFINITY(avx2)

}  // namespace lowland
