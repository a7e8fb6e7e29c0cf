// patch_counts, patch_sums: the sum of small symmetric matrices, one per patch of vertices, as a
// sparse matrix: M = sum_i S_i (a I + b F_i F_i^T) S_i^T, where S_i picks the vertices of patch i.
//
// Why it is fast. Rows of M are made one at a time in a dense scratch row that stays in cache, by
// walking the patches a vertex occurs in; entries of a patch's matrix are computed from its narrow
// factor when they are needed, so that no list of (row, column, value) is written or sorted.
//
// Every entry is summed over patches in ascending order by one task: the number of threads is free.
// The sum for (r, c) and that for (c, r) run over the same products in the same order: M is symmetric
// to the last bit.

#include "common/isa.h"
#include "patches/patches.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 64;

// Ascending, in place: rows have some hundred columns at most, and are nearly ordered in runs.
void sort_columns(std::int32_t* columns, Index count) {
    Index gap = 1;
    while (gap < count / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (Index i = gap; i < count; ++i) {
            const std::int32_t moved = columns[i];
            Index j = i;
            for (; j >= gap && columns[j - gap] > moved; j -= gap) columns[j] = columns[j - gap];
            columns[j] = moved;
        }
    }
}

// One row's scratch: `seen[c] == row` says that column c occurs in it.
template <class T>
struct Scratch {
    std::int32_t* seen;
    T* sums;

    bool acquire(Index n) {
        seen = allocate<std::int32_t>(n);
        sums = allocate<T>(n);
        for (Index v = 0; seen && v < n; ++v) seen[v] = -1;
        return seen && sums;
    }
    void release() { std::free(seen), std::free(sums); }
};

// Runs body(row, scratch) for all rows.
template <class T, class Body>
bool for_rows(Index n, int n_threads, const Body& body) {
    const Index n_tasks = ceil_div(n, kRowsPerTask);
    const int slots = static_cast<int>(min_of(n_threads, n_tasks));
    auto* scratch = static_cast<Scratch<T>*>(std::calloc(slots + 1, sizeof(Scratch<T>)));
    bool enough = scratch != nullptr;
    for (int slot = 0; enough && slot < slots; ++slot) enough = scratch[slot].acquire(n);
    parallel(enough ? n_tasks : 0, n_threads, [&](Index task, int slot) {
        const Index end = min_of(n, (task + 1) * kRowsPerTask);
        for (Index row = task * kRowsPerTask; row < end; ++row) body(row, scratch[slot]);
    });
    for (int slot = 0; scratch && slot < slots; ++slot) scratch[slot].release();
    std::free(scratch);
    return enough;
}

template <class T>
T dot(const T* a, const T* b, Index width) {
    T sum = 0;
    for (Index j = 0; j < width; ++j) sum += a[j] * b[j];
    return sum;
}

}  // namespace

bool patch_counts(Patches patches, std::int64_t* counts, int n_threads) {
    return for_rows<float>(patches.n, n_threads, [&](Index row, const Scratch<float>& s) {
        Index count = 0;
        for (Index e = patches.starts[row]; e < patches.starts[row + 1]; ++e) {
            const std::int32_t* patch = patches.members + patches.entries[e] / patches.size * patches.size;
            for (Index j = 0; j < patches.size; ++j) {
                if (patch[j] < 0 || s.seen[patch[j]] == row) continue;
                s.seen[patch[j]] = static_cast<std::int32_t>(row);
                ++count;
            }
        }
        counts[row] = count;
    });
}

template <class T>
bool patch_sums(Patches patches, PatchFactors<T> factors, const std::int64_t* out_starts,
                std::int32_t* columns, T* values, int n_threads) {
    return for_rows<T>(patches.n, n_threads, [&](Index row, const Scratch<T>& s) {
        std::int32_t* found = columns + out_starts[row];
        const Index room = out_starts[row + 1] - out_starts[row];
        Index count = 0;
        for (Index e = patches.starts[row]; e < patches.starts[row + 1]; ++e) {
            const Index own = patches.entries[e], first = own / patches.size * patches.size;
            const T* factor = factors.values + first * factors.width;
            const T* own_factor = factors.values + own * factors.width;
            for (Index j = 0; j < patches.size; ++j) {
                const std::int32_t column = patches.members[first + j];
                if (column < 0) continue;
                if (s.seen[column] != row) {
                    if (count == room) continue;  // starts that are not ours: the binding refuses them
                    s.seen[column] = static_cast<std::int32_t>(row);
                    s.sums[column] = 0;
                    found[count++] = column;
                }
                T value = factors.sign * dot(own_factor, factor + j * factors.width, factors.width);
                if (first + j == own) value += factors.identity;
                s.sums[column] += value;
            }
        }
        sort_columns(found, count);
        for (Index i = 0; i < count; ++i) values[out_starts[row] + i] = s.sums[found[i]];
    });
}

template bool patch_sums<float>(Patches, PatchFactors<float>, const std::int64_t*, std::int32_t*,
                                float*, int);
template bool patch_sums<double>(Patches, PatchFactors<double>, const std::int64_t*, std::int32_t*,
                                 double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
