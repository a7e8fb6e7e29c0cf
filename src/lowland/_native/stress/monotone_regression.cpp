// pool_adjacent: the non-decreasing sequence nearest to d in least squares.
//
// Numbers that fall are pooled into blocks at their mean, and blocks into larger ones, as long as one
// lies above the next (Kruskal 1964; Ayer et al. 1955). Within a group the order is free: its numbers
// are sorted first. What must be pooled within a part must be pooled in the whole: parts of a fixed
// size are pooled by themselves, in parallel, and then the few blocks that they leave.
#include "common/isa.h"
#include "stress/stress.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

// Whether a comes before b: by d, ties by position.
static inline bool before(const double* d, std::int32_t a, std::int32_t b) {
    return d[a] < d[b] || (d[a] == d[b] && a < b);
}

static void insertion_sort(const double* d, std::int32_t* order, Index n) {
    for (Index i = 1; i < n; ++i) {
        const std::int32_t item = order[i];
        Index at = i;
        for (; at > 0 && before(d, item, order[at - 1]); --at) order[at] = order[at - 1];
        order[at] = item;
    }
}

static void sift(const double* d, std::int32_t* heap, Index root, Index n) {
    const std::int32_t item = heap[root];
    for (Index child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(d, heap[child], heap[child + 1])) ++child;
        if (!before(d, item, heap[child])) break;
        heap[root] = heap[child];
    }
    heap[root] = item;
}

static void heap_sort(const double* d, std::int32_t* order, Index n) {
    for (Index root = n / 2; root-- > 0;) sift(d, order, root, n);
    for (Index end = n - 1; end > 0; --end) {
        const std::int32_t last = order[end];
        order[end] = order[0], order[0] = last;
        sift(d, order, 0, end);
    }
}

// Means are compared by products: a division per merger would be most of the work.
struct Block {
    double sum, weight;
    Index end;
    bool above(const Block& other) const { return sum * other.weight > other.sum * weight; }
};

struct Blocks {
    Block* at;
    Index count = 0;
    void push(const Block& next) {
        at[count++] = next;
        while (count > 1 && at[count - 2].above(at[count - 1])) {
            const Block upper = at[--count];
            at[count - 1].sum += upper.sum, at[count - 1].weight += upper.weight;
            at[count - 1].end = upper.end;
        }
    }
};

constexpr Index kPart = 1 << 14;

// The first group, among n_groups, that starts at `from` or later.
static Index first_group(const std::int32_t* groups, Index n_groups, Index from) {
    Index low = 0, high = n_groups;
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (groups[middle] < from) low = middle + 1; else high = middle;
    }
    return low;
}

// The first block that ends after `position`.
static Index block_of(const Blocks& blocks, Index position) {
    Index low = 0, high = blocks.count;
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (blocks.at[middle].end <= position) low = middle + 1; else high = middle;
    }
    return low;
}

}  // namespace

// Group g holds the positions groups[g] .. groups[g + 1]; without groups the order is fixed.
bool pool_adjacent(const double* d, const double* weights, Index n, const std::int32_t* groups,
                   Index n_groups, double* fit, int n_threads) {
    const Index n_parts = ceil_div(n, kPart);
    Block* all = allocate<Block>(n);
    std::int32_t* order = allocate<std::int32_t>(n);
    Blocks* parts = allocate<Blocks>(n_parts);
    const bool enough = all && order && parts;
    const auto start_of = [&](Index part) {  // no group lies in two parts
        if (part == n_parts || part == 0) return part == 0 ? Index{0} : n;
        if (n_groups == 0) return part * kPart;
        const Index group = first_group(groups, n_groups, part * kPart);
        return group < n_groups ? Index{groups[group]} : n;
    };
    parallel(enough ? n_parts : 0, n_threads, [&](Index part, int) {
        const Index start = start_of(part), end = start_of(part + 1);
        for (Index i = start; i < end; ++i) order[i] = static_cast<std::int32_t>(i);
        for (Index g = first_group(groups, n_groups, start); g < n_groups && groups[g] < end; ++g) {
            const Index size = groups[g + 1] - groups[g];
            (size <= 24 ? insertion_sort : heap_sort)(d, order + groups[g], size);
        }
        Blocks own{all + start};
        for (Index i = start; i < end; ++i) {
            const double weight = weights ? weights[order[i]] : 1.0;
            own.push({d[order[i]] * weight, weight, i + 1});
        }
        parts[part] = own;
    });
    Blocks whole{all};  // never longer than what has been read
    for (Index part = 0; part < (enough ? n_parts : 0); ++part) {
        for (Index b = 0; b < parts[part].count; ++b) whole.push(parts[part].at[b]);
    }
    parallel(enough ? n_parts : 0, n_threads, [&](Index part, int) {
        const Index end = min_of(n, (part + 1) * kPart);
        for (Index i = part * kPart, b = block_of(whole, i); i < end; ++b) {
            const double mean = whole.at[b].sum / whole.at[b].weight;
            for (; i < min_of(end, whole.at[b].end); ++i) fit[order[i]] = mean;
        }
    });
    std::free(all), std::free(order), std::free(parts);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
