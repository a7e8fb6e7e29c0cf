// refine_neighbors: candidates from the neighbors of neighbors, which are likely to be neighbors.
#include <math.h>

#include "neighbors/scores.h"

namespace lowland {
namespace LOWLAND_ISA {

// Best candidates known so far: the k best entries of every row, in no order; -1 where there are fewer.
template <class T>
bool snapshot(Kept<T> kept, Index n, Index k, std::int32_t* near, int n_threads) {
    const Best<T> best = best_of(kept);
    parallel(ceil_div(n, Index(256)), n_threads, [&](Index task, int) {
        for (Index row = task * 256; row < min_of(n, (task + 1) * 256); ++row) {
            Entry<T>* own = best.entries + row * best.capacity;
            const Index count = best.counts[row];
            if (count > k) select_best(own, count, k);
            for (Index e = 0; e < k; ++e) near[row * k + e] = e < count ? own[e].id : -1;
        }
    });
    return true;
}

template <class T>
static inline T dot(const T* a, const T* b, Index q) {
    constexpr Index kLanes = 16;  // fixed partial sums: vectors without a change of order
    T sums[kLanes] = {};
    Index k = 0;
    for (; k + kLanes <= q; k += kLanes) {
        for (Index i = 0; i < kLanes; ++i) sums[i] += a[k + i] * b[k + i];
    }
    for (Index i = 0; k < q; ++k, ++i) sums[i] += a[k] * b[k];
    T total = 0;
    for (Index i = 0; i < kLanes; ++i) total += sums[i];
    return total;
}

// Scores for every row the neighbors of its neighbors in the snapshot `near` and keeps the better
// ones. Rows read the snapshot and write their own buffer only, so their order does not matter.
template <class T>
bool refine_neighbors(const T* rows, const T* halves, Index n, Index q, const std::int32_t* near,
                      Index k, Kept<T> kept, int n_threads) {
    const Best<T> best = best_of(kept);
    constexpr Index kRowsPerTask = 512, kAhead = 4;
    std::int32_t* seen_by = allocate<std::int32_t>(n_threads * n);  // the last row that saw a point
    std::int32_t* lists = allocate<std::int32_t>(n_threads * k * (k + 1));
    const bool enough = seen_by && lists;
    for (Index e = 0; enough && e < n_threads * n; ++e) seen_by[e] = -1;
    parallel(enough ? ceil_div(n, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        std::int32_t* seen = seen_by + slot * n;
        std::int32_t* list = lists + slot * k * (k + 1);
        for (Index row = task * kRowsPerTask; row < min_of(n, (task + 1) * kRowsPerTask); ++row) {
            const std::int32_t self = static_cast<std::int32_t>(row);
            seen[row] = self;
            const Entry<T>* own = best.entries + row * best.capacity;
            for (Index e = 0; e < best.counts[row]; ++e) seen[own[e].id] = self;
            Index count = 0;
            for (Index e = 0; e < k && near[row * k + e] >= 0; ++e) {
                const std::int32_t* theirs = near + near[row * k + e] * k;
                for (Index f = 0; f < k && theirs[f] >= 0; ++f) {
                    if (seen[theirs[f]] == self) continue;
                    seen[theirs[f]] = self;
                    list[count++] = theirs[f];
                }
            }
            for (Index e = 0; e < count; ++e) {
                if (e + kAhead < count) __builtin_prefetch(rows + list[e + kAhead] * q);
                const Index o = list[e];
                const T score = dot(rows + row * q, rows + o * q, q) - (halves[row] + halves[o]);
                if (score >= best.thresholds[row]) best.push(row, score, o);
            }
        }
    });
    std::free(seen_by), std::free(lists);
    return enough;
}

#define LOWLAND_INSTANTIATE(T)                                                                    \
    template bool snapshot<T>(Kept<T>, Index, Index, std::int32_t*, int);                         \
    template bool refine_neighbors<T>(const T*, const T*, Index, Index, const std::int32_t*,      \
                                      Index, Kept<T>, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
