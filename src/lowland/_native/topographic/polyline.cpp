// project_on_polyline: the nearest point of a polyline for each row.
//
// The squared distances D_j of a row to the knots tell how far it is from each segment:
//
//     s = (D_j - D_{j+1} + h^2) / (2 h),   c = s cut to the segment,   D_j - c (2 s - c)
//
// so that a row costs one distance per knot. Place and distance on the nearest segment are then
// computed anew from the coordinates, without the rounding of these differences. Four rows share
// each load of a knot; a group of fewer rows is filled up with copies of its last one. All sums are
// of float64, and in an order that depends neither on the other rows nor on the threads. Of several
// nearest segments the last one is taken, as in the paper.
#include "topographic/polyline.h"

#include <math.h>

#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
typedef Lanes<double>::loose Loose;
constexpr Index kWidth = Lanes<double>::width;
constexpr int kRows = 4;
constexpr Index kGroupsPerTask = 16;

// Knots in panels of one vector, coordinate by coordinate, and the segments between them. The
// segments beyond the last one have no length and `off` = 1.
struct Packed {
    double* panels = nullptr;  // (vectors, p, kWidth)
    double* segments = nullptr;
    Index vectors = 0, stride = 0;
    double *length, *half, *low, *high, *off;

    bool pack(const Polyline& line) {
        vectors = ceil_div(line.m, kWidth), stride = vectors * kWidth;
        panels = allocate<double>(stride * line.p);
        segments = allocate<double>(5 * stride);
        if (!panels || !segments) return false;
        length = segments, half = length + stride, low = half + stride, high = low + stride;
        off = high + stride;
        for (Index j = 0; j < stride; ++j) {
            const double* knot = line.v + min_of(j, line.m - 1) * line.p;
            double* panel = panels + j / kWidth * line.p * kWidth + j % kWidth;
            for (Index k = 0; k < line.p; ++k) panel[k * kWidth] = knot[k];
            double square = 0;
            if (j < line.m - 1) {
                for (Index k = 0; k < line.p; ++k) {
                    const double gap = knot[line.p + k] - knot[k];
                    square += gap * gap;
                }
            }
            length[j] = sqrt(square), half[j] = square > 0 ? 0.5 / length[j] : 0;
            low[j] = j == 0 ? -line.before : 0;
            high[j] = length[j] + (j == line.m - 2 ? line.after : 0);
            off[j] = j < line.m - 1 ? 0 : 1;
        }
        return true;
    }
};

// D_j of four rows: squares[i * (stride + kWidth) + j]. Those after the last are copies of it.
static inline void distances_to_knots(const Packed& knots, Index p, const double* rows,
                                      double* squares) {
    for (Index v = 0; v < knots.vectors; ++v) {
        const Vector* panel = reinterpret_cast<const Vector*>(knots.panels) + v * p;
        Vector sum[kRows] = {};
        for (Index k = 0; k < p; ++k) {
            for (int i = 0; i < kRows; ++i) {
                const Vector gap = rows[i * p + k] - panel[k];
                sum[i] += gap * gap;
            }
        }
        for (int i = 0; i < kRows; ++i) {
            *reinterpret_cast<Loose*>(squares + i * (knots.stride + kWidth) + v * kWidth) = sum[i];
        }
    }
    for (int i = 0; i < kRows; ++i) {
        double* end = squares + i * (knots.stride + kWidth) + knots.stride;
        for (Index lane = 0; lane < kWidth; ++lane) end[lane] = end[-1];
    }
}

// The last of the nearest segments.
static inline Index nearest_segment(const Packed& knots, Index m, const double* squares) {
    Vector least = Vector{} + HUGE_VAL, place = Vector{}, here = {0, 1, 2, 3};
    const Vector zero{};
    for (Index j = 0; j < knots.stride; j += kWidth) {
        const Vector first = *reinterpret_cast<const Loose*>(squares + j);
        const Vector second = *reinterpret_cast<const Loose*>(squares + j + 1);
        const Vector h = *reinterpret_cast<const Vector*>(knots.length + j);
        const Vector half = *reinterpret_cast<const Vector*>(knots.half + j);
        const Vector low = *reinterpret_cast<const Vector*>(knots.low + j);
        const Vector high = *reinterpret_cast<const Vector*>(knots.high + j);
        const Vector off = *reinterpret_cast<const Vector*>(knots.off + j);
        const Vector s = (first - second + h * h) * half;
        Vector c = s < low ? low : s;
        c = c > high ? high : c;
        Vector square = first - c * (2 * s - c);
        square = off > zero ? Vector{} + HUGE_VAL : square;
        const auto nearer = square <= least;
        place = nearer ? here : place;
        least = nearer ? square : least;
        here += kWidth;
    }
    Index best = 0;
    double lowest = HUGE_VAL;
    for (Index lane = 0; lane < kWidth; ++lane) {
        const Index segment = static_cast<Index>(place[lane]);
        if (least[lane] < lowest || (least[lane] == lowest && segment > best)) {
            lowest = least[lane], best = segment;
        }
    }
    return min_of(best, m - 2);
}

// Place and squared distance on a segment, from the coordinates.
static inline void place_on(const Packed& knots, const Polyline& line, Index segment,
                            const double* row, double* along, double* square) {
    const double *a = line.v + segment * line.p, *b = a + line.p;
    const double h = knots.length[segment], inverse = h > 0 ? 1 / h : 0;
    double s = 0, sum = 0;
    for (Index k = 0; k < line.p; ++k) s += (row[k] - a[k]) * ((b[k] - a[k]) * inverse);
    s = s < knots.low[segment] ? knots.low[segment] : s;
    s = s > knots.high[segment] ? knots.high[segment] : s;
    s = h > 0 ? s : 0;
    for (Index k = 0; k < line.p; ++k) {
        const double gap = row[k] - (a[k] + s * ((b[k] - a[k]) * inverse));
        sum += gap * gap;
    }
    *along = s, *square = sum;
}

}  // namespace

template <class T>
bool project_on_polyline(const T* x, std::int64_t n, Polyline line, std::int64_t* segments,
                         double* along, double* squares, int n_threads) {
    Packed knots;
    const Index p = line.p, groups = ceil_div(n, kRows);
    const bool packed = knots.pack(line);
    const Index own = kRows * (p + knots.stride + kWidth);
    double* scratch = packed ? allocate<double>(n_threads * own) : nullptr;
    if (scratch) {
        parallel(ceil_div(groups, kGroupsPerTask), n_threads, [&](Index task, int slot) {
            double *rows = scratch + slot * own, *distances = rows + kRows * p;
            const Index end = min_of(groups, (task + 1) * kGroupsPerTask);
            for (Index group = task * kGroupsPerTask; group < end; ++group) {
                for (int i = 0; i < kRows; ++i) {
                    const T* row = x + min_of(group * kRows + i, n - 1) * p;
                    for (Index k = 0; k < p; ++k) rows[i * p + k] = row[k];
                }
                distances_to_knots(knots, p, rows, distances);
                for (Index i = group * kRows; i < min_of(n, (group + 1) * kRows); ++i) {
                    const Index r = i - group * kRows;
                    segments[i] =
                        nearest_segment(knots, line.m, distances + r * (knots.stride + kWidth));
                    place_on(knots, line, segments[i], rows + r * p, along + i, squares + i);
                }
            }
        });
    }
    std::free(knots.panels), std::free(knots.segments), std::free(scratch);
    return scratch != nullptr;
}

template bool project_on_polyline(const float*, std::int64_t, Polyline, std::int64_t*, double*,
                                  double*, int);
template bool project_on_polyline(const double*, std::int64_t, Polyline, std::int64_t*, double*,
                                  double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
