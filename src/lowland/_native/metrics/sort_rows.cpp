// sort_rows: the stable order of every row of a matrix, or the rank of every entry.
//
// Radix sort: a double whose bits are read as an integer (negative ones turned around) sorts as a
// number. Three passes over the upper 33 bits leave only entries that agree to six digits out of
// order; those stand together and are few, so that insertion settles them. Where they are many, three
// more passes over the lower bits do.
#include <string.h>

#include "common/isa.h"
#include "metrics/ranks.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr int kDigitBits = 11, kDigits = 3;
constexpr Index kBuckets = Index(1) << kDigitBits;
constexpr int kLower = 31;         // bits below the upper digits
constexpr Index kLongestRun = 64;  // of entries that the upper digits cannot tell apart

struct Item {
    std::uint64_t key;
    std::int32_t place;
};

inline std::uint64_t key_of(double value) {
    value += 0.0;  // -0 and +0 are equal
    std::uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const std::uint64_t sign = std::uint64_t(1) << 63;
    return bits & sign ? ~bits : bits | sign;
}

// Sorts n items by three digits of their keys from bit `first` on, stable, and swaps the two arrays
// so that `items` has the result. Digits that all items share cost no pass.
void sort_digits(Item*& items, Item*& other, Index n, int first, Index* counts) {
    const auto digit = [&](const Item& item, int k) {
        const int shift = first + k * kDigitBits;
        const int bits = first == 0 && k == kDigits - 1 ? kLower - shift : kDigitBits;
        return static_cast<Index>(item.key >> shift) & ((Index(1) << bits) - 1);
    };
    memset(counts, 0, sizeof(Index) * kDigits * kBuckets);
    for (Index i = 0; i < n; ++i) {
        for (int k = 0; k < kDigits; ++k) ++counts[k * kBuckets + digit(items[i], k)];
    }
    for (int k = 0; k < kDigits; ++k) {
        Index* next = counts + k * kBuckets;
        if (next[digit(items[0], k)] == n) continue;
        for (Index b = 0, start = 0; b < kBuckets; ++b) {
            const Index size = next[b];
            next[b] = start;
            start += size;
        }
        for (Index i = 0; i < n; ++i) other[next[digit(items[i], k)]++] = items[i];
        Item* swap = items;
        items = other;
        other = swap;
    }
}

// Puts items that the upper digits have sorted in full order; false when a run of them is too long.
bool insert_runs(Item* items, Index n) {
    for (Index i = 1, start = 0; i < n; ++i) {
        if (items[i].key >> kLower != items[start].key >> kLower) start = i;
        if (items[i - (i > start)].key <= items[i].key) continue;
        if (i - start > kLongestRun) return false;
        const Item moved = items[i];
        Index to = i;
        for (; to > start && items[to - 1].key > moved.key; --to) items[to] = items[to - 1];
        items[to] = moved;
    }
    return true;
}

// Sorts n items by key, stable; returns where they ended up.
const Item* sort_items(Item* items, Item* other, Index n, Index* counts) {
    sort_digits(items, other, n, kLower, counts);
    if (!insert_runs(items, n)) {  // equal keys are in order, so that all six digits may start here
        sort_digits(items, other, n, 0, counts);
        sort_digits(items, other, n, kLower, counts);
    }
    return items;
}

// Calls use(row, its n items in order) for every row of values.
template <class Use>
bool for_sorted_rows(const double* values, Index m, Index n, int n_threads, const Use& use) {
    if (n == 0) return true;
    const Index slots = min_of(m, n_threads);
    Item* items = allocate<Item>(slots * 2 * n);
    Index* counts = allocate<Index>(slots * kDigits * kBuckets);
    const bool enough = items && counts;
    parallel(enough ? m : 0, static_cast<int>(slots), [&](Index row, int slot) {
        Item* own = items + slot * 2 * n;
        for (Index i = 0; i < n; ++i) {
            own[i] = {key_of(values[row * n + i]), static_cast<std::int32_t>(i)};
        }
        use(row, sort_items(own, own + n, n, counts + slot * kDigits * kBuckets));
    });
    std::free(items), std::free(counts);
    return enough;
}

}  // namespace

// The stable order of each row, or (inverse) the rank of each entry, from 0.
bool sort_rows(const double* values, Index m, Index n, bool inverse, std::int32_t* out,
               int n_threads) {
    return for_sorted_rows(values, m, n, n_threads, [&](Index row, const Item* sorted) {
        std::int32_t* to = out + row * n;
        for (Index i = 0; i < n; ++i) {
            if (inverse) {
                to[sorted[i].place] = static_cast<std::int32_t>(i);
            } else {
                to[i] = sorted[i].place;
            }
        }
    });
}

// The rank of each entry, from 0; equal entries share the mean of theirs.
bool mid_ranks(const double* values, Index m, Index n, double* out, int n_threads) {
    return for_sorted_rows(values, m, n, n_threads, [&](Index row, const Item* sorted) {
        for (Index start = 0, end = 0; start < n; start = end) {
            while (end < n && sorted[end].key == sorted[start].key) ++end;
            const double middle = 0.5 * static_cast<double>(start + end - 1);
            for (Index i = start; i < end; ++i) out[row * n + sorted[i].place] = middle;
        }
    });
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
