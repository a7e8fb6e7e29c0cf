// query_groups, probe_lists, rerank, complete: from candidates to proven neighbors.
#include "neighbors/scores.h"

namespace lowland {
namespace LOWLAND_ISA {

// Group g holds the query panels groups[g] .. groups[g+1]-1 and looks at the ranges of point panels
// ranges[2*s], ranges[2*s+1] for s in range_starts[g] .. range_starts[g+1]-1. Kept rows are those of
// the query panels. A point whose id is the query's own id is not scored.
template <class T>
bool query_groups(Points<T> queries, Points<T> points, const Index* groups,
                  const Index* range_starts, const Index* ranges, Index first, Index last,
                  const std::int32_t* query_ids, const std::int32_t* point_ids, Kept<T> kept,
                  int n_threads) {
    constexpr Index W = panel_width<T>;
    const Best<T> best = best_of(kept);
    T never[W];
    for (Index i = 0; i < W; ++i) never[i] = static_cast<T>(INFINITY);
    parallel(last - first, n_threads, [&](Index task, int) {
        const Index g = first + task;
        for (Index s = range_starts[g]; s < range_starts[g + 1]; ++s) {
            for (Index j = ranges[2 * s]; j < ranges[2 * s + 1]; ++j) {
                const Side<T> right = side_of(points, j, never);
                for (Index i = groups[g]; i < groups[g + 1]; ++i) {
                    const Side<T> left = side_of(queries, i, best.thresholds + i * W);
                    scan_panels(left, W, right, points, [&](Index row, Index column, T score) {
                        const Index p = i * W + row, o = j * W + column;
                        if (query_ids[p] == point_ids[o]) return;
                        if (score >= best.thresholds[p]) best.push(p, score, o);
                    });
                }
            }
        }
    });
    return true;
}

// Task t works through the lists tasks[t] .. tasks[t+1]-1; list s asks the places queries[list_starts[s]]
// .. of `asked` about the point panels ranges[2*s] .. ranges[2*s+1]-1. No two tasks may ask the same
// place. Places are those of the points themselves (`among`), which do not find themselves, or others.
template <class T>
bool probe_lists(Points<T> points, Asked<T> asked, const Index* tasks, Index n_tasks,
                 const Index* ranges, const Index* list_starts, const std::int32_t* queries,
                 Kept<T> kept, int n_threads) {
    constexpr Index W = panel_width<T>;
    const Best<T> best = best_of(kept);
    const Index q = points.q;
    T* panels = allocate<T>(n_threads * q * W);
    T never[W];
    for (Index i = 0; i < W; ++i) never[i] = static_cast<T>(INFINITY);
    parallel(panels ? n_tasks : 0, n_threads, [&](Index task, int slot) {
        T* left = panels + slot * q * W;
        T halves[W], tails[W], thresholds[W];
        for (Index s = tasks[task]; s < tasks[task + 1]; ++s) {
            for (Index begin = list_starts[s]; begin < list_starts[s + 1]; begin += W) {
                const Index used = min_of(W, list_starts[s + 1] - begin);
                const std::int32_t* place = queries + begin;
                for (Index i = 0; i < W; ++i) {
                    const Index from = place[min_of(i, used - 1)];
                    for (Index k = 0; k < q; ++k) left[k * W + i] = asked.rows[from * q + k];
                    halves[i] = asked.halves[from];
                    tails[i] = asked.tails ? asked.tails[from] : T(0);
                    thresholds[i] = i < used ? best.thresholds[from] : static_cast<T>(INFINITY);
                }
                const Side<T> asking{left, halves, tails, thresholds};
                for (Index j = ranges[2 * s]; j < ranges[2 * s + 1]; ++j) {
                    scan_panels(asking, used, side_of(points, j, never), points,
                                [&](Index row, Index column, T score) {
                                    const Index o = j * W + column;
                                    if (asked.among && o == place[row]) return;
                                    if (score < thresholds[row]) return;
                                    best.push(place[row], score, o);
                                    thresholds[row] = best.thresholds[place[row]];
                                });
                }
            }
        }
    });
    std::free(panels);
    return panels != nullptr;
}

template <class X>
static inline void fetch_row(const X* row, Index d) {
    constexpr Index kLine = 64 / sizeof(X), kMost = 8 * kLine;
    for (Index k = 0; k < min_of(d, kMost); k += kLine) __builtin_prefetch(row + k);
}

// Sorts the kept candidates of every row by exact distance, then id, and writes the k nearest to
// row query_rows[row] of ids and squares. certain(row) says that no point outside the kept ones can
// be among them: all others scored at most the worst kept score, and scores are off by slack.
template <class T, class Q, class X>
bool rerank(const Q* queries, const X* x, Index d, const std::int32_t* query_rows, Index n,
            Kept<T> kept, const std::int32_t* point_ids, const T* halves, double rounding, Index k,
            std::int32_t* ids, double* squares, unsigned char* certain, int n_threads) {
    const Best<T> best = best_of(kept);
    Entry<double>* scratch = allocate<Entry<double>>(n_threads * kept.capacity);
    constexpr Index kRowsPerTask = 64, kAhead = 4;
    parallel(scratch ? ceil_div(n, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        Entry<double>* found = scratch + slot * kept.capacity;
        for (Index row = task * kRowsPerTask; row < min_of(n, (task + 1) * kRowsPerTask); ++row) {
            const Index target = query_rows[row];
            if (target < 0) continue;
            const bool saw_all = best.thresholds[row] == lowest<T>();  // never cut
            if (!saw_all) best.cut(row);
            const Entry<T>* own = best.entries + row * best.capacity;
            const Index count = best.counts[row];
            double worst = HUGE_VAL;
            for (Index e = 0; e < count; ++e) {
                const Index id = point_ids[own[e].id];
                if (e + kAhead < count) fetch_row(x + point_ids[own[e + kAhead].id] * d, d);
                found[e] = {-exact_square(queries + target * d, x + id * d, d),
                            static_cast<std::int32_t>(id)};
                if (static_cast<double>(own[e].score) < worst) worst = own[e].score;
            }
            sort_best(found, count);
            for (Index e = 0; e < k; ++e) {
                ids[target * k + e] = e < count ? found[e].id : -1;
                squares[target * k + e] = e < count ? -found[e].score : HUGE_VAL;
            }
            const double kth = squares[target * k + k - 1];
            const double slack = slack_of(halves[row], sqrt(kth), rounding);
            certain[row] = saw_all || (count >= k && kth < -2 * (worst + slack));
        }
    });
    std::free(scratch);
    return scratch != nullptr;
}

// For the rows that rerank left uncertain: looks at every point again, evaluates exactly each one
// whose score could hide a distance up to the k-th found so far, and so proves the k nearest.
template <class T, class Q, class X>
bool complete(Points<T> queries, Points<T> points, const Q* query_rows, const X* x, Index d,
              const Index* rows, Index n_rows, const std::int32_t* query_ids,
              const std::int32_t* point_ids, bool self_join, double rounding, Index k,
              std::int32_t* ids, double* squares, int n_threads) {
    constexpr Index W = panel_width<T>;
    const Index q = points.q, n_groups = ceil_div(n_rows, W);
    T* panels = allocate<T>(n_threads * q * W);
    Entry<double>* heaps = allocate<Entry<double>>(n_threads * W * (k + 1));
    const bool enough = panels && heaps;
    T never[W];
    for (Index i = 0; i < W; ++i) never[i] = static_cast<T>(INFINITY);
    parallel(enough ? n_groups : 0, n_threads, [&](Index g, int slot) {
        T* left = panels + slot * q * W;
        Entry<double>* heap_of = heaps + slot * W * (k + 1);
        T halves[W], tails[W], thresholds[W];
        Index target[W], filled[W];
        for (Index i = 0; i < W; ++i) {
            const bool real = g * W + i < n_rows;
            const Index row = rows[min_of(g * W + i, n_rows - 1)];
            for (Index c = 0; c < q; ++c) left[c * W + i] = queries.panels[(row / W * q + c) * W + row % W];
            halves[i] = queries.halves[row];
            tails[i] = queries.tails ? queries.tails[row] : T(0);
            target[i] = query_ids[row];
            filled[i] = 0;
            const double kth = squares[target[i] * k + k - 1];
            const double reach = -kth / 2 - slack_of(halves[i], sqrt(kth), rounding);
            thresholds[i] = real ? rounded_down<T>(reach) : static_cast<T>(INFINITY);
        }
        const Side<T> asking{left, halves, tails, thresholds};
        for (Index j = 0; j < points.n_panels; ++j) {
            scan_panels(asking, W, side_of(points, j, never), points, [&](Index row, Index column, T) {
                const Index id = point_ids[j * W + column];
                if (id < 0 || (self_join && id == target[row])) return;
                const Entry<double> entry{
                    -exact_square(query_rows + target[row] * d, x + id * d, d),
                    static_cast<std::int32_t>(id)};
                Entry<double>* heap = heap_of + row * (k + 1);
                if (filled[row] < k) {
                    heap[filled[row]++] = entry;
                    if (filled[row] == k) {
                        for (Index e = k / 2 - 1; e >= 0; --e) sift_down(heap, e, k);
                    }
                } else if (better(entry, heap[0])) {
                    heap[0] = entry;
                    sift_down(heap, Index(0), k);
                }
            });
        }
        for (Index i = 0; i < W && g * W + i < n_rows; ++i) {
            Entry<double>* heap = heap_of + i * (k + 1);
            sort_best(heap, filled[i]);
            for (Index e = 0; e < filled[i]; ++e) {
                ids[target[i] * k + e] = heap[e].id;
                squares[target[i] * k + e] = -heap[e].score;
            }
        }
    });
    std::free(panels), std::free(heaps);
    return enough;
}

#define LOWLAND_INSTANTIATE(T)                                                                     \
    template bool query_groups<T>(Points<T>, Points<T>, const Index*, const Index*, const Index*,  \
                                  Index, Index, const std::int32_t*, const std::int32_t*, Kept<T>, \
                                  int);                                                            \
    template bool probe_lists<T>(Points<T>, Asked<T>, const Index*, Index, const Index*,           \
                                 const Index*, const std::int32_t*, Kept<T>, int);

#define LOWLAND_INSTANTIATE_EXACT(T, Q, X)                                                         \
    template bool rerank<T, Q, X>(const Q*, const X*, Index, const std::int32_t*, Index, Kept<T>,  \
                                  const std::int32_t*, const T*, double, Index, std::int32_t*,     \
                                  double*, unsigned char*, int);                                   \
    template bool complete<T, Q, X>(Points<T>, Points<T>, const Q*, const X*, Index, const Index*, \
                                    Index, const std::int32_t*, const std::int32_t*, bool, double, \
                                    Index, std::int32_t*, double*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)
LOWLAND_INSTANTIATE_EXACT(float, float, float)
LOWLAND_INSTANTIATE_EXACT(float, double, float)
LOWLAND_INSTANTIATE_EXACT(float, double, double)
LOWLAND_INSTANTIATE_EXACT(double, float, float)
LOWLAND_INSTANTIATE_EXACT(double, double, float)
LOWLAND_INSTANTIATE_EXACT(double, double, double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
