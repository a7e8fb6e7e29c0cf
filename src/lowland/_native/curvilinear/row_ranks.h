// The points of a map around a place, and how far their ranks are from those of a list.
#pragma once
#include <math.h>

#include "common/isa.h"
#include "curvilinear/map_tree.h"
#include "curvilinear/rank_stress.h"

namespace lowland {
namespace LOWLAND_ISA {

// The memory of one thread: points around a row, and the k nearest of them.
struct Scratch {
    double *squares, *work, *near_squares;
    std::int32_t *found, *near;
};

class Scratches {
public:
    Scratches(Index n, Index k, int n_threads) : n_(n + Lanes<double>::width), k_(k) {
        squares_ = allocate<double>((2 * n_ + k_) * n_threads);
        found_ = allocate<std::int32_t>((n_ + k_) * n_threads);
    }
    Scratches(const Scratches&) = delete;
    Scratches& operator=(const Scratches&) = delete;
    ~Scratches() {
        std::free(squares_);
        std::free(found_);
    }
    bool fine() const { return squares_ && found_; }
    Scratch of(int slot) const {
        double* squares = squares_ + slot * (2 * n_ + k_);
        std::int32_t* found = found_ + slot * (n_ + k_);
        return {squares, squares + n_, squares + 2 * n_, found, found + n_};
    }

private:
    Index n_, k_;
    double* squares_;
    std::int32_t* found_;
};

// At least `length` points around z, all within one radius; their number.
static Index surround(const MapTree& tree, const double* z, Index own, Index length, double reach,
                      const Scratch& at) {
    const Index others = tree.n - (own >= 0);
    if (length >= others) return tree.within(z, own, INFINITY, at.squares, at.found);
    if (reach > 0) {
        const Index count = tree.within(z, own, reach, at.squares, at.found);
        if (count >= length) return count;
    }
    const double limit = tree.enclosing(z, length + (own >= 0));
    const Index count = tree.within(z, own, limit, at.squares, at.found);
    if (count >= length) return count;
    return tree.within(z, own, INFINITY, at.squares, at.found);
}

// The k nearest of the points, nearest first, ties by row number.
static void nearest(const Scratch& at, Index count, Index k) {
    Index kept = 0;
    for (Index c = 0; c < count; ++c) {
        const double square = at.squares[c];
        const std::int32_t row = at.found[c];
        if (kept == k) {
            const double last = at.near_squares[k - 1];
            if (square > last || (square == last && row > at.near[k - 1])) continue;
        }
        Index p = kept < k ? kept++ : k - 1;
        for (; p > 0; --p) {
            const double before = at.near_squares[p - 1];
            if (before < square || (before == square && at.near[p - 1] < row)) break;
            at.near_squares[p] = before, at.near[p] = at.near[p - 1];
        }
        at.near_squares[p] = square, at.near[p] = row;
    }
}

// The number that has `before` smaller or equal ones in front of it, if all were sorted.
static double select(double* a, Index count, Index before) {
    Index low = 0, high = count - 1;
    while (low < high) {
        const double pivot = a[before];
        Index i = low, j = high;
        do {
            while (a[i] < pivot) ++i;
            while (pivot < a[j]) --j;
            if (i <= j) {
                const double moved = a[i];
                a[i++] = a[j], a[j--] = moved;
            }
        } while (i <= j);
        if (j < before) low = i;
        if (before < i) high = j;
    }
    return a[before];
}

// The place of a number in an array, or -1; at most one place has it.
static Index place_of(std::int32_t number, const std::int32_t* array, Index count) {
    constexpr Index kBlock = 32;
    for (Index a = 0; a < count; a += kBlock) {
        const Index b = min_of(count, a + kBlock);
        std::int32_t here = 0;
        for (Index p = a; p < b; ++p) here |= array[p] == number;
        if (!here) continue;
        for (Index p = a; p < b; ++p) {
            if (array[p] == number) return p;
        }
    }
    return -1;
}

// The rank, from 1, of the point at place c, at most `most`; ties by row number.
static Index rank_of(const Scratch& at, Index count, Index c, Index most) {
    const double square = at.squares[c];
    std::int64_t nearer = 0, as_near = 0;
    for (Index p = 0; p < count; ++p) {
        nearer += at.squares[p] < square;
        as_near += at.squares[p] == square;
    }
    if (as_near > 1) {
        for (Index p = 0; p < count; ++p) {
            nearer += at.squares[p] == square && at.found[p] < at.found[c];
        }
    }
    return min_of(nearer + 1, most);
}

// The sum of all gaps; gap(row, rank in the map, nearest rank that is right) for each of them.
template <class Gap>
static double sum_gaps(const Scratch& at, Index count, const RankLists& lists, Index i, const Gap& gap) {
    const std::int32_t* list = lists.points + i * lists.length;
    const std::uint8_t* ties = lists.ties + i * lists.length;
    const Index k = lists.k, beyond = lists.length + 1;
    double sum = 0;
    const auto compare = [&](std::int32_t row, Index rank, Index place) {
        Index low = beyond, high = beyond;
        if (place >= 0) {
            low = place + 1, high = place + 1;
            while (low > 1 && ties[low - 2]) --low;
            while (high < beyond && ties[high - 1]) ++high;
        }
        const Index right = rank < low ? low : rank > high ? high : rank;
        if (right == rank) return;
        sum += static_cast<double>(rank < right ? right - rank : rank - right);
        gap(row, rank, right);
    };
    nearest(at, count, k);
    for (Index s = 0; s < k; ++s) {
        compare(at.near[s], s + 1, place_of(at.near[s], list, lists.length));
    }
    for (Index t = 0; t < k; ++t) {
        const Index c = place_of(list[t], at.found, count);
        const Index rank = c < 0 ? beyond : rank_of(at, count, c, beyond);
        if (rank > k) compare(list[t], rank, t);
    }
    return sum;
}

static double square_between(const double* a, const double* b, Index d) {
    double sum = 0;
    for (Index k = 0; k < d; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
