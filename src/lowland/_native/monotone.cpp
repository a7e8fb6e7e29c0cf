// pool_adjacent: the non-decreasing sequence nearest to d in least squares, in one pass.
//
// Numbers that fall are pooled into blocks at their mean, and blocks into larger ones, as long as one
// lies above the next (Kruskal 1964; Ayer et al. 1955). Within a group the order is free: its numbers
// are sorted first. Both are serial; a pass costs less than handing it to threads.
#include "isa.h"
#include "stress.h"

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

}  // namespace

// Group g holds the positions groups[g] .. groups[g + 1]; without groups the order is fixed.
bool pool_adjacent(const double* d, const double* weights, Index n, const std::int32_t* groups,
                   Index n_groups, double* fit) {
    Block* blocks = allocate<Block>(n);
    std::int32_t* order = allocate<std::int32_t>(n);
    const bool enough = blocks && order;
    if (enough) {
        for (Index i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>(i);
        for (Index g = 0; g < n_groups; ++g) {
            const Index size = groups[g + 1] - groups[g];
            (size <= 24 ? insertion_sort : heap_sort)(d, order + groups[g], size);
        }
        Index last = -1;
        for (Index i = 0; i < n; ++i) {
            const double weight = weights ? weights[order[i]] : 1.0;
            blocks[++last] = {d[order[i]] * weight, weight, i + 1};
            while (last > 0 && blocks[last - 1].above(blocks[last])) {
                const Block upper = blocks[last--];
                blocks[last].sum += upper.sum, blocks[last].weight += upper.weight;
                blocks[last].end = upper.end;
            }
        }
        for (Index b = 0, i = 0; b <= last; ++b) {
            const double mean = blocks[b].sum / blocks[b].weight;
            for (; i < blocks[b].end; ++i) fit[order[i]] = mean;
        }
    }
    std::free(blocks), std::free(order);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
