// sparse_times: a CSR matrix times a dense block of vectors, row by row.
#include "common/isa.h"
#include "products/products.h"

namespace lowland {
namespace LOWLAND_ISA {

// out(i, :) = sum over stored k of x(i, k) v(k, :)  -  offset(:). Every row is summed in the order it
// is stored in, on its own: threads and company change nothing.
template <class T, class I>
bool sparse_times(const I* starts, const I* columns, const T* values, Index n, const T* v, Index q,
                  const T* offset, T* out, int n_threads) {
    constexpr Index kRowsPerTask = 64;
    parallel(ceil_div(n, kRowsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(n, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            T* row = out + i * q;
            for (Index j = 0; j < q; ++j) row[j] = 0;
            for (Index e = starts[i]; e < static_cast<Index>(starts[i + 1]); ++e) {
                const T x = values[e];
                const T* source = v + static_cast<Index>(columns[e]) * q;
                for (Index j = 0; j < q; ++j) row[j] += x * source[j];
            }
            for (Index j = 0; j < q; ++j) row[j] -= offset[j];
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T, I)                                                              \
    template bool sparse_times<T, I>(const I*, const I*, const T*, Index, const T*, Index,     \
                                     const T*, T*, int);

LOWLAND_INSTANTIATE(float, std::int32_t)
LOWLAND_INSTANTIATE(float, std::int64_t)
LOWLAND_INSTANTIATE(double, std::int32_t)
LOWLAND_INSTANTIATE(double, std::int64_t)

}  // namespace LOWLAND_ISA
}  // namespace lowland
