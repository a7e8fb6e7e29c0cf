// project: centered rows times a few columns, each row as if it came alone.
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kStrip = 64;  // rows that are centered and multiplied together

// out(i, :) = sum_k (x(i, k) - shift(k)) v(k, :),  n x q.
template <class T>
bool project(const T* x, Index n, Index p, Index ld, const T* shift, const T* v, Index q, T* out,
             int n_threads) {
    constexpr Index kWidth = Lanes<T>::width;
    const Index n_vectors = ceil_div(q, kWidth), q_padded = n_vectors * kWidth;
    const Index n_strips = ceil_div(n, kStrip), strip_sums = kStrip * q_padded;
    const Index slots = min_of(n_threads, n_strips);
    T* padded = allocate<T>(p * q_padded);
    T* rows_of = allocate<T>(slots * kStrip * p);
    T* sums_of = allocate<T>(slots * strip_sums);
    double* totals_of = allocate<double>(slots * strip_sums);
    const bool enough = padded && rows_of && sums_of && totals_of;
    for (Index k = 0; enough && k < p; ++k) {
        for (Index j = 0; j < q_padded; ++j) padded[k * q_padded + j] = j < q ? v[k * q + j] : T(0);
    }
    // Vectors are dealt out evenly (7 = 3 + 2 + 2): a lone one would starve the FMA units.
    const Index n_shares = ceil_div(n_vectors, kVectors);
    parallel(enough ? n_strips : 0, n_threads, [&](Index strip, int slot) {
        T* rows = rows_of + slot * kStrip * p;
        T* sums = sums_of + slot * strip_sums;
        double* totals = totals_of + slot * strip_sums;
        const Index first_row = strip * kStrip, used = min_of(kStrip, n - first_row);
        const Index computed = ceil_div(used, kRows) * kRows;
        for (Index r = 0; r < computed; ++r) {
            T* row = rows + r * p;
            const T* source = x + (first_row + min_of(r, used - 1)) * ld;
            for (Index k = 0; k < p; ++k) row[k] = source[k] - shift[k];
        }
        for (Index e = 0; e < computed * q_padded; ++e) totals[e] = 0;
        for (Index begin = 0; begin < p; begin += kDepth) {
            const Index terms = min_of(kDepth, p - begin);
            for (Index e = 0; e < computed * q_padded; ++e) sums[e] = 0;
            for (Index share = 0; share < n_shares; ++share) {
                const Index from = share * n_vectors / n_shares;
                const Index to = (share + 1) * n_vectors / n_shares;
                const T* right = padded + begin * q_padded + from * kWidth;
                for (Index r = 0; r < computed; r += kRows) {
                    tile_of(to - from, terms, All(), rows + r * p + begin, p, 1, right, q_padded,
                            sums + r * q_padded + from * kWidth, q_padded);
                }
            }
            for (Index e = 0; e < computed * q_padded; ++e) {
                totals[e] += static_cast<double>(sums[e]);
            }
        }
        for (Index r = 0; r < used; ++r) {
            for (Index j = 0; j < q; ++j) {
                out[(first_row + r) * q + j] = static_cast<T>(totals[r * q_padded + j]);
            }
        }
    });
    std::free(padded), std::free(rows_of), std::free(sums_of), std::free(totals_of);
    return enough;
}

template bool project<float>(const float*, Index, Index, Index, const float*, const float*, Index,
                             float*, int);
template bool project<double>(const double*, Index, Index, Index, const double*, const double*, Index,
                              double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
