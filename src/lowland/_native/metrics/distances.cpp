// distance_rows, distance_sums: whole rows of Euclidean distances, and what two of them have in common.
//
// Differences are squared, not expanded into products: equal rows are at distance 0, and a square has
// the same bits as exact_square gives it, so that whatever is decided by distances is decided alike.
// Tiles of 3 rows and 12 points live in registers, one of exact_square's eight partial sums at a time.
#include <math.h>
#include <string.h>

#include "metrics/ranks.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr Index kWide = kVectorBytes / sizeof(double);
constexpr Index kPoints = kVectors * kWide;  // points of a tile
constexpr Index kTileRows = 3;  // 3 x 3 sums, 3 points, a row and a gap: 14 of the 16 registers of AVX2
constexpr Index kTile = kTileRows * kPoints;
constexpr Index kPartial = 8;  // sums of exact_square

typedef double Doubles __attribute__((vector_size(kVectorBytes)));

// sums(r, c) = sum over k = first, first + 8, ... of (rows[r][k] - points[k*W + c])^2
template <class X>
__attribute__((noinline))  // inlined it would have to share its registers
void partial_squares(const X* points, const X* const* rows, Index first, Index d, double* sums) {
    typedef X Loose __attribute__((vector_size(kWide * sizeof(X)), aligned(sizeof(X)), may_alias));
    constexpr Index W = panel_width<X>;
    Doubles total[kTileRows][kVectors] = {};
#pragma GCC unroll 1
    for (Index k = first; k < d; k += kPartial) {
        Doubles point[kVectors];
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) {
            const Loose* from = reinterpret_cast<const Loose*>(points + k * W + v * kWide);
            point[v] = __builtin_convertvector(*from, Doubles);
        }
#pragma GCC unroll 3
        for (int r = 0; r < kTileRows; ++r) {
            const double value = static_cast<double>(rows[r][k]);
#pragma GCC unroll 3
            for (int v = 0; v < kVectors; ++v) {
                const Doubles gap = value - point[v];
                total[r][v] += gap * gap;
            }
        }
    }
    for (int r = 0; r < kTileRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<Doubles*>(sums + r * kPoints + v * kWide) = total[r][v];
        }
    }
}

// Squared distances of kTileRows rows to kPoints points of a panel.
template <class X>
void tile_squares(const X* points, const X* const* rows, Index d, double* out) {
    alignas(kVectorBytes) double s[kPartial][kTile];
    const Index used = min_of(d, kPartial);
    for (Index i = 0; i < used; ++i) partial_squares(points, rows, i, d, s[i]);
    if (used <= 2) {  // the usual map
        for (Index i = 0; i < kTile; ++i) out[i] = used == 2 ? s[0][i] + s[1][i] : s[0][i];
        return;
    }
    for (Index i = used; i < kPartial; ++i) memset(s[i], 0, sizeof s[i]);
    for (Index i = 0; i < kTile; ++i) {
        out[i] = ((s[0][i] + s[1][i]) + (s[2][i] + s[3][i])) +
                 ((s[4][i] + s[5][i]) + (s[6][i] + s[7][i]));
    }
}

}  // namespace

// out(i, j) = |rows_i - point_j|^2, or its root; points are packed as pack_points does. A task measures
// up to 96 rows against so many points as stay in the cache.
template <class X>
bool distance_rows(const X* panels, Index n, const X* rows, Index m, Index d, bool root, double* out,
                   int n_threads) {
    constexpr Index W = panel_width<X>, kRowsPerTask = 32 * kTileRows, kCache = 1 << 18;
    static_assert(W % kPoints == 0, "tiles must cover a panel");
    const Index fitting = kCache / static_cast<Index>(sizeof(X)) / (d * W) * W;
    const Index range = fitting > W ? fitting : W, n_ranges = ceil_div(n, range);
    parallel(n_ranges * ceil_div(m, kRowsPerTask), n_threads, [&](Index task, int) {
        const Index begin = task / n_ranges * kRowsPerTask, end = min_of(m, begin + kRowsPerTask);
        const Index from = task % n_ranges * range, to = min_of(n, from + range);
        alignas(kVectorBytes) double squares[kTile];
        for (Index row = begin; row < end; row += kTileRows) {
            const X* chosen[kTileRows];
            for (Index r = 0; r < kTileRows; ++r) chosen[r] = rows + min_of(row + r, end - 1) * d;
            for (Index first = from; first < to; first += kPoints) {
                tile_squares(panels + first / W * W * d + first % W, chosen, d, squares);
                const Index used = min_of(kPoints, to - first);
                for (Index r = 0; r < kTileRows && row + r < end; ++r) {
                    double* target = out + (row + r) * n + first;
                    for (Index i = 0; i < used; ++i) {
                        const double square = squares[r * kPoints + i];
                        target[i] = root ? sqrt(square) : square;
                    }
                }
            }
        }
    });
    return true;
}

// What one pair of distances adds, with c = scale * y: x, y, x^2, y^2, x y, (x - c)^2, and
// (x - c)^2 / x where x > 0; sums lie `stride` apart.
static inline void add_pair(double x, double y, double scale, double* sums, Index stride) {
    const double gap = x - scale * y, square = gap * gap;
    sums[0] += x;
    sums[stride] += y;
    sums[2 * stride] += x * x;
    sums[3 * stride] += y * y;
    sums[4 * stride] += x * y;
    sums[5 * stride] += square;
    sums[6 * stride] += x > 0 ? square / x : 0.0;
}

// Sums per row over all columns but its own (-1: none), to rows of out.
bool distance_sums(const double* a, const double* b, Index m, Index n, const std::int32_t* own,
                   double scale, double* out, int n_threads) {
    parallel(m, n_threads, [&](Index row, int) {
        constexpr Index kLanes = 4;  // fixed partial sums: vectors without a change of order
        double sums[kDistanceSums * kLanes] = {};
        const auto add_range = [&](Index begin, Index end) {
            Index j = begin;
            for (; j + kLanes <= end; j += kLanes) {
                for (Index i = 0; i < kLanes; ++i) {
                    add_pair(a[row * n + j + i], b[row * n + j + i], scale, sums + i, kLanes);
                }
            }
            for (Index i = 0; j < end; ++j, ++i) {
                add_pair(a[row * n + j], b[row * n + j], scale, sums + i, kLanes);
            }
        };
        const Index skip = own[row] < 0 ? n : own[row];
        add_range(0, skip);
        add_range(skip + 1, n);
        for (Index s = 0; s < kDistanceSums; ++s) {
            const double* part = sums + s * kLanes;
            out[row * kDistanceSums + s] = (part[0] + part[1]) + (part[2] + part[3]);
        }
    });
    return true;
}

// Sums per column, from column `first` on, over all rows; added to rows of out, one per column.
bool add_column_sums(const double* a, const double* b, Index m, Index n, Index first, double scale,
                     double* out, int n_threads) {
    constexpr Index kColumns = 64;
    parallel(ceil_div(n - first, kColumns), n_threads, [&](Index task, int) {
        const Index begin = first + task * kColumns, used = min_of(kColumns, n - begin);
        alignas(kVectorBytes) double sums[kDistanceSums * kColumns] = {};
        for (Index row = 0; row < m; ++row) {
            const double* x = a + row * n + begin;
            const double* y = b + row * n + begin;
            for (Index c = 0; c < used; ++c) add_pair(x[c], y[c], scale, sums + c, kColumns);
        }
        for (Index c = 0; c < used; ++c) {
            for (Index s = 0; s < kDistanceSums; ++s) {
                out[(begin - first + c) * kDistanceSums + s] += sums[s * kColumns + c];
            }
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(X) \
    template bool distance_rows<X>(const X*, Index, const X*, Index, Index, bool, double*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
