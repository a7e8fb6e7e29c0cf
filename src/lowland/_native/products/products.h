// The kernels' entry points, declared once per instruction set and gathered in a table.
#pragma once
#include <cstdint>

namespace lowland {

// A (depth x width) matrix read as  value(k, i) = data[k*stride_k + i*stride_i] - shift(k, i).
// The shift is broadcast: at least one of its strides is 0.
template <class T>
struct Operand {
    const T* data;
    std::int64_t stride_k, stride_i;
    const T* shift;
    std::int64_t shift_k, shift_i;
};

#define LOWLAND_DECLARE_KERNELS(isa)                                                              \
    namespace isa {                                                                               \
    template <class T>                                                                            \
    bool all_finite(const T* x, std::int64_t n, int n_threads);                                   \
    template <class T>                                                                            \
    bool scatter_matrix(const T* x, std::int64_t n, std::int64_t p, std::int64_t ld, const T* shift,     \
                 double* sums, double* out, int n_threads);                                       \
    template <class T>                                                                            \
    bool inner(Operand<T> a, std::int64_t m, Operand<T> b, std::int64_t n, std::int64_t depth,    \
               bool symmetric, double* out, int n_threads);                                       \
    template <class T>                                                                            \
    bool project(const T* x, std::int64_t n, std::int64_t p, std::int64_t ld, const T* shift,     \
                 const T* v, std::int64_t q, T* out, int n_threads);                              \
    template <class T, class I>                                                                   \
    bool sparse_times(const I* starts, const I* columns, const T* values, std::int64_t n,         \
                      const T* v, std::int64_t q, const T* offset, T* out, int n_threads);        \
    }

LOWLAND_DECLARE_KERNELS(baseline)
LOWLAND_DECLARE_KERNELS(avx2)

}  // namespace lowland
