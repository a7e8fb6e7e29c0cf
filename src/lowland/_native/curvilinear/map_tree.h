// A k-d tree over the points of a map: all points within a radius, their distances side by side.
//
// Node i of level l holds the positions from n i / 2^l to n (i + 1) / 2^l, so the tree needs no
// pointers: it is an order of the points, and a box for each node.
#pragma once
#include <math.h>

#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kLeafPoints = 24;
constexpr int kDeepest = 40;

class MapTree {
public:
    MapTree() = default;
    MapTree(const MapTree&) = delete;
    MapTree& operator=(const MapTree&) = delete;
    ~MapTree() {
        std::free(rows);
        std::free(x);
        std::free(boxes);
    }

    Index n = 0, d = 0, stride = 0;
    std::int32_t* rows = nullptr;  // the row at each position

    bool build(const double* y, Index n_points, Index n_columns, int n_threads) {
        n = n_points, d = n_columns, stride = n + Lanes<double>::width;
        while ((n >> depth) > kLeafPoints) ++depth;
        rows = allocate<std::int32_t>(n);
        x = allocate<double>(stride * d);
        boxes = allocate<double>((Index(2) << depth) * 2 * d);
        if (!rows || !x || !boxes) return false;
        for (Index i = 0; i < n; ++i) rows[i] = static_cast<std::int32_t>(i);
        for (int level = 0; level <= depth; ++level) {
            parallel(Index(1) << level, n_threads, [&](Index i, int) { split(y, level, i); });
        }
        for (Index k = 0; k < d; ++k) {
            for (Index p = 0; p < n; ++p) x[k * stride + p] = y[rows[p] * d + k];
            for (Index p = n; p < stride; ++p) x[k * stride + p] = 0;
        }
        return true;
    }

    Index n_leaves() const { return Index(1) << depth; }
    Index leaf_start(Index leaf) const { return start(depth, leaf); }

    // A squared radius around z within which at least `count` <= n points lie: that of the box of a
    // node near z that has so many.
    double enclosing(const double* z, Index count) const {
        Index i = 0;
        int level = 0;
        while (level < depth) {
            const Index left = 2 * i;
            const Index nearer =
                left + (box_distance(level + 1, left + 1, z) < box_distance(level + 1, left, z));
            if (start(level + 1, nearer + 1) - start(level + 1, nearer) < count) break;
            i = nearer, ++level;
        }
        const double* box = box_of(level, i);
        double sum = 0;
        for (Index k = 0; k < d; ++k) {
            const double low = fabs(z[k] - box[k]), high = fabs(z[k] - box[d + k]);
            const double gap = low > high ? low : high;
            sum += gap * gap;
        }
        return sum * (1 + 1e-9);
    }

    // Rows within the squared radius around z, but `own`, and their squared distances.
    Index within(const double* z, Index own, double limit, double* squares, std::int32_t* found) const {
        Index stack[2 * kDeepest], count = 0;
        int levels[2 * kDeepest], top = 0;
        stack[top] = 0, levels[top++] = 0;
        while (top > 0) {
            const Index i = stack[--top];
            const int level = levels[top];
            // a distance may be rounded to below that of its box
            if (box_distance(level, i, z) * (1 - 1e-9) > limit) continue;
            if (level == depth) {
                count = scan(z, own, limit, start(level, i), start(level, i + 1), squares, found, count);
                continue;
            }
            stack[top] = 2 * i + 1, levels[top++] = level + 1;
            stack[top] = 2 * i, levels[top++] = level + 1;
        }
        return count;
    }

private:
    double *x = nullptr, *boxes = nullptr;  // x: the points by position, coordinate by coordinate
    int depth = 0;

    Index start(int level, Index i) const { return (n * i) >> level; }
    double* box_of(int level, Index i) const { return boxes + ((Index(1) << level) + i) * 2 * d; }

    double box_distance(int level, Index i, const double* z) const {
        const double* box = box_of(level, i);
        double sum = 0;
        for (Index k = 0; k < d; ++k) {
            const double below = box[k] - z[k], above = z[k] - box[d + k];
            const double gap = below > above ? below : above;
            sum += gap > 0 ? gap * gap : 0;
        }
        return sum;
    }

    void split(const double* y, int level, Index i) {
        const Index a = start(level, i), b = start(level, i + 1);
        double* box = box_of(level, i);
        Index widest = 0;
        for (Index k = 0; k < d; ++k) {
            double low = y[rows[a] * d + k], high = low;
            for (Index p = a + 1; p < b; ++p) {
                const double value = y[rows[p] * d + k];
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
            box[k] = low, box[d + k] = high;
            if (high - low > box[d + widest] - box[widest]) widest = k;
        }
        if (level < depth) select(y + widest, a, b - 1, start(level + 1, 2 * i + 1));
    }

    // The points of positions a to b in such an order that none before `middle` is beyond it.
    void select(const double* column, Index a, Index b, Index middle) {
        while (a < b) {
            const double pivot = column[rows[middle] * d];
            Index i = a, j = b;
            do {
                while (column[rows[i] * d] < pivot) ++i;
                while (pivot < column[rows[j] * d]) --j;
                if (i <= j) {
                    const std::int32_t moved = rows[i];
                    rows[i++] = rows[j], rows[j--] = moved;
                }
            } while (i <= j);
            if (j < middle) a = i;
            if (middle < i) b = j;
        }
    }

    // One vector of squares at a time: a distance is rounded in the same way wherever it lies.
    Index scan(const double* z, Index own, double limit, Index a, Index b, double* squares,
               std::int32_t* found, Index count) const {
        typedef Lanes<double>::vector Vector;
        typedef Lanes<double>::loose Loose;
        for (Index p = a; p < b; p += Lanes<double>::width) {
            Vector sum{};
            for (Index k = 0; k < d; ++k) {
                const Vector gap = *reinterpret_cast<const Loose*>(x + k * stride + p) - z[k];
                sum += gap * gap;
            }
            const Index lanes = min_of(Lanes<double>::width, b - p);
            for (Index lane = 0; lane < lanes; ++lane) {
                squares[count] = sum[lane];
                found[count] = rows[p + lane];
                count += sum[lane] <= limit && rows[p + lane] != own;
            }
        }
        return count;
    }
};

}  // namespace LOWLAND_ISA
}  // namespace lowland
