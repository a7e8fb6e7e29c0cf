// all_finite: one streaming pass, the only test every input goes through.
#include "common/isa.h"
#include "products/products.h"

namespace lowland {
namespace LOWLAND_ISA {

// x - x is 0 for finite x, NaN otherwise; NaN survives the sum, and no finite x can overflow it.
template <class T>
bool all_finite(const T* x, Index n, int n_threads) {
    constexpr Index kBlock = Index(1) << 16;
    constexpr int kWidth = Lanes<T>::width;
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    int bad = 0;
    parallel(ceil_div(n, kBlock), n_threads, [&](Index task, int) {
        const Index begin = task * kBlock, end = min_of(n, begin + kBlock);
        Vector sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};
        Index i = begin;
        for (; i + 4 * kWidth <= end; i += 4 * kWidth) {
            const Loose* v = reinterpret_cast<const Loose*>(x + i);
            sum0 += v[0] - v[0];
            sum1 += v[1] - v[1];
            sum2 += v[2] - v[2];
            sum3 += v[3] - v[3];
        }
        const Vector sum = (sum0 + sum1) + (sum2 + sum3);
        T total = 0;
        for (int lane = 0; lane < kWidth; ++lane) total += sum[lane];
        for (; i < end; ++i) total += x[i] - x[i];
        if (!(total == 0)) __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
    });
    return bad == 0;
}

template bool all_finite<float>(const float*, Index, int);
template bool all_finite<double>(const double*, Index, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
