// out = A v for a symmetric matrix A that is kept as tiles of its upper half.
#include "graphs/symmetric_times.h"

#include "products/symmetric.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
bool symmetric_times(const T* tiles, Index n, const T* v, Index q, double* out, int n_threads) {
    constexpr Index S = kSide<T>;
    const Index n_groups = ceil_div(n, S);
    return symmetric_product<T>(n, v, q, out, n_threads, [&](Index I, Index J, int) {
        return tiles + tile_place(I, J, n_groups) * S * S;
    });
}

template bool symmetric_times<float>(const float*, Index, const float*, Index, double*, int);
template bool symmetric_times<double>(const double*, Index, const double*, Index, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
