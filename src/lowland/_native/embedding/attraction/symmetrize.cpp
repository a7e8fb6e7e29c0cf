// transpose, union_starts, union_sum: the steps from a sparse matrix C to (C + C^T) * scale.
//
// Why it is fast. Transposing is a stable counting sort: it leaves the columns of every row in
// ascending order, so transposing twice sorts C itself, in O(entries) and without comparisons.
// Entries first go to one of a few hundred buckets of rows and only then to their row: both times to
// places that fit into the cache. Two sorted rows are merged without branches, because the processor
// could not predict them.
//
// Threads place the entries of their own rows, each behind those of the threads before, so that the
// order is that of one thread.

#include "embedding/attraction/affinity.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kTaskRows = 512;
constexpr Index kMostBuckets = 512;

// Calls body(i, j, e) for the entries of rows begin .. end, other than missing ones (column -1) and
// those on the diagonal.
template <class Body>
inline void each_entry(const RowPattern& rows, Index begin, Index end, const Body& body) {
    for (Index i = begin; i < end; ++i) {
        for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
            const std::int32_t j = rows.columns[e];
            if (j >= 0 && j != i) body(static_cast<std::int32_t>(i), j, e);
        }
    }
}

// Turns counts[part][b] into where that part's share of b begins, and b_begins into where b does.
void counts_to_places(Index* counts, Index n_parts, Index n_buckets, Index* bucket_begins) {
    Index next = 0;
    for (Index b = 0; b < n_buckets; ++b) {
        bucket_begins[b] = next;
        for (Index part = 0; part < n_parts; ++part) {
            const Index count = counts[part * n_buckets + b];
            counts[part * n_buckets + b] = next;
            next += count;
        }
    }
    bucket_begins[n_buckets] = next;
}

// Places the entries begin .. end, which belong to rows first .. last, row by row in their order.
template <class T>
void place_bucket(const Entry<T>* entries, Index begin, Index end, Index first, Index last,
                  Index* starts, std::int32_t* columns, T* values) {
    for (Index i = first; i < last; ++i) starts[i] = 0;
    for (Index e = begin; e < end; ++e) ++starts[entries[e].row];
    Index next = begin;
    for (Index i = first; i < last; ++i) {
        const Index count = starts[i];
        starts[i] = next;
        next += count;
    }
    for (Index e = begin; e < end; ++e) {
        const Index at = starts[entries[e].row]++;
        columns[at] = entries[e].column;
        values[at] = entries[e].value;
    }
    // every start has moved on to the next row's
    for (Index i = last - 1; i > first; --i) starts[i] = starts[i - 1];
    if (first < last) starts[first] = begin;
}

}  // namespace

template <class T>
bool transpose(RowPattern rows, const T* values, Entry<T>* work, Index* out_starts,
               std::int32_t* out_columns, T* out_values, int n_threads) {
    const Index n = rows.n, n_parts = n < 1 ? 1 : min_of(n_threads, n);
    int shift = 0;
    while ((n >> shift) >= kMostBuckets) ++shift;
    const Index n_buckets = (n >> shift) + 1;
    Index* places = allocate<Index>(n_parts * n_buckets + n_buckets + 1);
    if (places == nullptr) return false;
    Index* bucket_begins = places + n_parts * n_buckets;
    const auto first_row = [&](Index part) { return min_of(n, part * ceil_div(n, n_parts)); };

    parallel(n_parts, n_threads, [&](Index part, int) {
        Index* count = places + part * n_buckets;
        for (Index b = 0; b < n_buckets; ++b) count[b] = 0;
        each_entry(rows, first_row(part), first_row(part + 1),
                   [&](std::int32_t, std::int32_t j, Index) { ++count[j >> shift]; });
    });
    counts_to_places(places, n_parts, n_buckets, bucket_begins);
    parallel(n_parts, n_threads, [&](Index part, int) {
        Index* place = places + part * n_buckets;
        each_entry(rows, first_row(part), first_row(part + 1),
                   [&](std::int32_t i, std::int32_t j, Index e) {
                       work[place[j >> shift]++] = {j, i, values[e]};
                   });
    });
    parallel(n_buckets, n_threads, [&](Index b, int) {
        place_bucket(work, bucket_begins[b], bucket_begins[b + 1], b << shift,
                     min_of(n, (b + 1) << shift), out_starts, out_columns, out_values);
    });
    out_starts[n] = bucket_begins[n_buckets];
    std::free(places);
    return true;
}

bool union_starts(RowPattern a, RowPattern b, Index* starts, int n_threads) {
    parallel(ceil_div(a.n, kTaskRows), n_threads, [&](Index task, int) {
        const Index last = min_of(a.n, (task + 1) * kTaskRows);
        for (Index i = task * kTaskRows; i < last; ++i) {
            const std::int32_t *p = a.columns + a.starts[i], *p_end = a.columns + a.starts[i + 1];
            const std::int32_t *q = b.columns + b.starts[i], *q_end = b.columns + b.starts[i + 1];
            Index size = (p_end - p) + (q_end - q);
            while (p < p_end && q < q_end) {
                const std::int32_t left = *p, right = *q;
                size -= left == right;
                p += left <= right;
                q += right <= left;
            }
            starts[i + 1] = size;
        }
    });
    starts[0] = 0;
    for (Index i = 0; i < a.n; ++i) starts[i + 1] += starts[i];
    return true;
}

// Returns false if the union of a row does not fit its place between the starts.
template <class T>
bool union_sum(RowPattern a, const T* a_values, RowPattern b, const T* b_values, double scale,
               const Index* starts, std::int32_t* columns, T* values, int n_threads) {
    bool fits = true;
    parallel(ceil_div(a.n, kTaskRows), n_threads, [&](Index task, int) {
        const Index last = min_of(a.n, (task + 1) * kTaskRows);
        for (Index i = task * kTaskRows; i < last; ++i) {
            Index p = a.starts[i], q = b.starts[i], e = starts[i];
            const Index p_end = a.starts[i + 1], q_end = b.starts[i + 1], e_end = starts[i + 1];
            for (; p < p_end && q < q_end && e < e_end; ++e) {
                const std::int32_t left = a.columns[p], right = b.columns[q];
                const bool in_a = left <= right, in_b = right <= left;
                // products instead of conditions: the compiler would branch
                const double sum = double(in_a) * a_values[p] + double(in_b) * b_values[q];
                columns[e] = left < right ? left : right;
                values[e] = static_cast<T>(sum * scale);
                p += in_a;
                q += in_b;
            }
            const bool a_left = p < p_end;
            const std::int32_t* rest_columns = a_left ? a.columns : b.columns;
            const T* rest_values = a_left ? a_values : b_values;
            const Index rest_end = a_left ? p_end : q_end;
            Index rest = a_left ? p : q;
            for (; rest < rest_end && e < e_end; ++rest, ++e) {
                columns[e] = rest_columns[rest];
                values[e] = static_cast<T>(rest_values[rest] * scale);
            }
            if (rest < rest_end || e < e_end) __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
        }
    });
    return fits;
}

#define LOWLAND_INSTANTIATE(T)                                                                   \
    template bool transpose<T>(RowPattern, const T*, Entry<T>*, Index*, std::int32_t*, T*, int); \
    template bool union_sum<T>(RowPattern, const T*, RowPattern, const T*, double, const Index*, \
                               std::int32_t*, T*, int);
LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
