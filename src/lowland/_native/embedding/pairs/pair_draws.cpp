// draw_groups, draw_far, redraw_far, listed_squares: random partners of the rows of a table.
//
// Every row draws from its own counters, so rows are drawn in any order. `redraw_far` draws among the
// points of a map that lie within a reach: points are sorted into square cells as wide as the reach, and
// a draw is one of the points in the nine cells around. About one draw in three is within the reach,
// however small a part of the map that is.
#include "embedding/pairs/counters.h"
#include "embedding/pairs/pair_maps.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 256;
constexpr Index kTries = 100;  // per slot, before a far pair stays as it is

inline bool is_among(const std::int32_t* ids, Index count, std::int32_t id) {
    bool found = false;
    for (Index e = 0; e < count; ++e) found |= ids[e] == id;
    return found;
}

template <class Body>
void each_row(Index n, int n_threads, const Body& body) {
    parallel(ceil_div(n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) body(i);
    });
}

// Points sorted into cells along their first one or two axes.
template <class T>
struct Cells {
    Index d, along[2] = {1, 1};
    double low[2] = {0, 0}, side[2] = {1, 1};
    Index* starts = nullptr;
    std::int32_t* members = nullptr;
    T* points = nullptr;  // of the members, in their order: draws read near places

    Index place(const T* y, int axis) const {
        const double u = (static_cast<double>(y[axis]) - low[axis]) / side[axis];
        return u > 0 ? min_of(along[axis] - 1, static_cast<Index>(u)) : 0;
    }
    Index cell(const T* y) const { return (d > 1 ? place(y, 1) * along[0] : 0) + place(y, 0); }

    bool sort(const T* y, Index n, Index columns, double reach) {
        d = columns;
        for (int axis = 0; axis < (d > 1 ? 2 : 1); ++axis) {
            double high = low[axis] = static_cast<double>(y[axis]);
            for (Index i = 0; i < n; ++i) {
                const double at = static_cast<double>(y[i * d + axis]);
                low[axis] = at < low[axis] ? at : low[axis];
                high = at > high ? at : high;
            }
            const double cells = (high - low[axis]) / reach;
            along[axis] = cells < 1 ? 1 : cells > 1024 ? 1024 : static_cast<Index>(cells);
            side[axis] = along[axis] > 1 ? (high - low[axis]) / static_cast<double>(along[axis]) : reach;
        }
        const Index n_cells = along[0] * along[1];
        starts = allocate<Index>(n_cells + 1);
        members = allocate<std::int32_t>(n);
        points = allocate<T>(n * d);
        if (!starts || !members || !points) return false;
        for (Index c = 0; c <= n_cells; ++c) starts[c] = 0;
        for (Index i = 0; i < n; ++i) ++starts[cell(y + i * d)];
        Index next = 0;
        for (Index c = 0; c <= n_cells; ++c) {
            const Index count = starts[c];
            starts[c] = next;
            next += count;
        }
        for (Index i = 0; i < n; ++i) members[starts[cell(y + i * d)]++] = static_cast<std::int32_t>(i);
        for (Index c = n_cells; c > 0; --c) starts[c] = starts[c - 1];  // each has moved to the next one's
        starts[0] = 0;
        for (Index e = 0; e < n; ++e) {
            for (Index c = 0; c < d; ++c) points[e * d + c] = y[members[e] * d + c];
        }
        return true;
    }
    void free() { std::free(starts), std::free(members), std::free(points); }
};

}  // namespace

// out[i][g * size + e]: `size` different rows for each of the groups of row first + i, never the row itself.
bool draw_groups(Index first, Index rows, Index n, std::uint64_t seed, Index groups, Index size,
                 std::int32_t* out, int n_threads) {
    each_row(rows, n_threads, [&](Index i) {
        const Index row = first + i;
        for (Index g = 0; g < groups; ++g) {
            Counter draw(seed, row, g);
            std::int32_t* own = out + (i * groups + g) * size;
            for (Index e = 0; e < size;) {
                const std::int32_t j = static_cast<std::int32_t>(draw.below(n));
                if (j == row || is_among(own, e, j)) continue;
                own[e++] = j;
            }
        }
    });
    return true;
}

// `count` different rows for each row, neither the row itself nor one of its near ones.
bool draw_far(Partners near, std::uint64_t seed, Index count, std::int32_t* out, int n_threads) {
    each_row(near.n, n_threads, [&](Index i) {
        std::int32_t* own = out + i * count;
        for (Index e = 0; e < count; ++e) {
            Counter draw(seed, i, e);
            for (;;) {
                const std::int32_t j = static_cast<std::int32_t>(draw.below(near.n));
                if (j == i || is_among(near.ids + i * near.k, near.k, j) || is_among(own, e, j)) continue;
                own[e] = j;
                break;
            }
        }
    });
    return true;
}

// As draw_far among the points within `reach` of the point, in place; a far pair for which none is found
// stays as it is. within[i] is the number of points in the cells around, times the share of the draws
// that were within the reach: about the number of points within it.
template <class T>
bool redraw_far(Partners near, const T* y, Index d, double reach, std::uint64_t seed, Index count,
                std::int32_t* far, std::int32_t* within, int n_threads) {
    Cells<T> cells;
    const bool enough = cells.sort(y, near.n, d, reach);
    const T most = static_cast<T>(reach * reach);
    each_row(enough ? near.n : 0, n_threads, [&](Index i) {
        const T* here = y + i * d;
        std::int32_t* own = far + i * count;
        Index begin[3], length[3], total = 0;
        const Index x = cells.place(here, 0), row = d > 1 ? cells.place(here, 1) : 0;
        const Index left = x > 0 ? x - 1 : 0, right = min_of(cells.along[0] - 1, x + 1);
        for (Index r = 0; r < 3; ++r) {
            const Index at = row + r - 1;
            const bool there = at >= 0 && at < cells.along[1];
            begin[r] = there ? cells.starts[at * cells.along[0] + left] : 0;
            length[r] = there ? cells.starts[at * cells.along[0] + right + 1] - begin[r] : 0;
            total += length[r];
        }
        Index drawn = 0, inside = 0;
        for (Index e = 0; e < count; ++e) {
            Counter draw(seed, i, e);
            for (Index t = 0; t < kTries; ++t) {
                Index at = draw.below(total), r = 0;
                while (at >= length[r]) at -= length[r++];
                const T* there = cells.points + (begin[r] + at) * d;
                T square = 0;
                for (Index c = 0; c < d; ++c) square += (here[c] - there[c]) * (here[c] - there[c]);
                ++drawn;
                if (square > most) continue;
                ++inside;
                const std::int32_t j = cells.members[begin[r] + at];
                if (j == i || is_among(near.ids + i * near.k, near.k, j) || is_among(own, e, j)) continue;
                own[e] = j;
                break;
            }
        }
        // draws end with one that is inside, which would make its share too large: without it, it is not
        const double share = drawn > 1 ? static_cast<double>(inside - 1) / static_cast<double>(drawn - 1) : 1;
        const double about = share * static_cast<double>(total);
        within[i] = about > 1 ? static_cast<std::int32_t>(about + 0.5) : 1;  // the point itself is there
    });
    cells.free();
    return enough;
}

// out[i][e] = |x_{first + i} - x_{ids[i][e]}|^2
template <class T>
bool listed_squares(const T* x, Index p, Partners listed, Index first, T* out, int n_threads) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = Lanes<T>::width, kAhead = 2;
    each_row(listed.n, n_threads, [&](Index i) {
        const T* here = x + (first + i) * p;
        const std::int32_t* ids = listed.ids + i * listed.k;
        for (Index e = 0; e < listed.k; ++e) {
            if (e + kAhead < listed.k) {
                const char* next = reinterpret_cast<const char*>(x + ids[e + kAhead] * p);
                for (Index b = 0; b < p * Index(sizeof(T)); b += 64) __builtin_prefetch(next + b);
            }
            const T* there = x + ids[e] * p;
            Vector sums = {};
            Index c = 0;
            for (; c + W <= p; c += W) {
                const Vector gap = *reinterpret_cast<const Loose*>(here + c) - *reinterpret_cast<const Loose*>(there + c);
                sums += gap * gap;
            }
            T rest = 0;
            for (; c < p; ++c) rest += (here[c] - there[c]) * (here[c] - there[c]);
            out[i * listed.k + e] = sum_of(sums) + rest;
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                          \
    template bool redraw_far<T>(Partners, const T*, Index, double, std::uint64_t, Index, std::int32_t*, \
                                std::int32_t*, int);                                                    \
    template bool listed_squares<T>(const T*, Index, Partners, Index, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
