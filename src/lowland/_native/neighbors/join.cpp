// join_rounds: all pairs of a set of points, each scored once for both of its points.
//
// Pairs of blocks are scheduled in rounds. In a round every block occurs once, so that threads never
// write to the same rows, and the result does not depend on the thread that computes a pair. The
// points of a block are near in space: after round 0, where each block meets itself, thresholds are
// tight, and pairs of blocks whose boxes are farther apart than any threshold are skipped.
#include "neighbors/scores.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
std::int64_t entry_bytes() {
    return sizeof(Entry<T>);
}

template <class T>
std::int64_t width_of_panels() {
    return panel_width<T>;
}

template <class T>
bool pack_points(const T* x, Index n, Index q, T* panels, int n_threads) {
    constexpr Index W = panel_width<T>;
    parallel(ceil_div(n, W), n_threads, [&](Index panel, int) {
        T* out = panels + panel * q * W;
        for (Index i = 0; i < W; ++i) {
            const Index row = panel * W + i;
            for (Index k = 0; k < q; ++k) out[k * W + i] = row < n ? x[row * q + k] : T(0);
        }
    });
    return true;
}

template <class T>
static T lowest_threshold(const Best<T>& best, Index first, Index last) {
    T lowest = best.thresholds[first];
    for (Index row = first + 1; row < last; ++row) {
        if (best.thresholds[row] < lowest) lowest = best.thresholds[row];
    }
    return lowest;
}

// The highest score that points of two boxes could have: - (squared gap) / 2.
template <class T>
static T highest_score(const Blocks<T>& blocks, Index a, Index b) {
    T gap2 = 0;
    for (Index k = 0; k < blocks.n_box; ++k) {
        const T up = blocks.low[b * blocks.n_box + k] - blocks.high[a * blocks.n_box + k];
        const T down = blocks.low[a * blocks.n_box + k] - blocks.high[b * blocks.n_box + k];
        const T gap = up > down ? up : down;
        if (gap > 0) gap2 += gap * gap;
    }
    return -gap2 / 2;
}

// The smallest power of two that is not below n.
static Index power_of_two(Index n) {
    Index power = 1;
    while (power < n) power *= 2;
    return power;
}

template <class T>
static void match(const Points<T>& points, const Blocks<T>& blocks, const Best<T>& best, Index a,
                  Index b) {
    constexpr Index W = panel_width<T>;
    const Index per = blocks.panels_per_block;
    const Index a_end = min_of(points.n_panels, (a + 1) * per);
    const Index b_end = min_of(points.n_panels, (b + 1) * per);
    if (a != b) {
        const T lowest_a = lowest_threshold(best, a * per * W, a_end * W);
        const T lowest_b = lowest_threshold(best, b * per * W, b_end * W);
        const T lowest = lowest_a < lowest_b ? lowest_a : lowest_b;
        const double halves = double(blocks.top_halves[a]) + double(blocks.top_halves[b]);
        const double highest = highest_score(blocks, a, b) * (1 - 1e-6);
        if (highest + 2 * points.rounding * halves < lowest) return;
    }
    const auto meet = [&](Index i, Index j) {
        const Side<T> left = side_of(points, i, best.thresholds + i * W);
        const Side<T> right = side_of(points, j, best.thresholds + j * W);
        scan_panels(left, W, right, points, [&](Index row, Index column, T score) {
            const Index p = i * W + row, o = j * W + column;
            if (p >= o && i == j) return;
            if (score >= best.thresholds[p]) best.push(p, score, o);
            if (score >= best.thresholds[o]) best.push(o, score, p);
        });
    };
    if (a == b) {  // panels of a block are scheduled like blocks, near ones first
        for (Index shift = 0; shift < power_of_two(per); ++shift) {
            for (Index j = b * per; j < b_end; ++j) {
                const Index i = a * per + ((j - a * per) ^ shift);
                if (i <= j) meet(i, j);
            }
        }
        return;
    }
    for (Index j = b * per; j < b_end; ++j) {
        for (Index i = a * per; i < a_end; ++i) meet(i, j);
    }
}

// Computes rounds first .. last-1: in round r block a meets block a ^ r (bitwise). Round 0 is every
// block against itself. All pairs have met after as many rounds as the smallest power of two that is
// not below the number of blocks. For a small r both blocks are near in space, so that thresholds
// are tight early.
template <class T>
bool join_rounds(Points<T> points, Blocks<T> blocks, Kept<T> kept, Index first, Index last,
                 int n_threads) {
    const Best<T> best = best_of(kept);
    for (Index round = first; round < last; ++round) {
        if (round == 0) {
            parallel(blocks.n_blocks, n_threads, [&](Index block, int) {
                match(points, blocks, best, block, block);
                const Index begin = block * blocks.panels_per_block * panel_width<T>;
                const Index size = blocks.panels_per_block * panel_width<T>;
                const Index end = min_of(points.n_panels * panel_width<T>, begin + size);
                for (Index row = begin; row < end; ++row) best.cut(row);
            });
            continue;
        }
        Index top = 1;  // the highest bit of the round: set in b, not in a
        while (2 * top <= round) top *= 2;
        parallel(ceil_div(blocks.n_blocks, 2 * top) * top, n_threads, [&](Index game, int) {
            const Index a = game / top * 2 * top + game % top, b = a ^ round;
            if (b < blocks.n_blocks) match(points, blocks, best, a, b);
        });
    }
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                  \
    template std::int64_t entry_bytes<T>();                                                     \
    template std::int64_t width_of_panels<T>();                                                 \
    template bool pack_points<T>(const T*, Index, Index, T*, int);                              \
    template bool join_rounds<T>(Points<T>, Blocks<T>, Kept<T>, Index, Index, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
