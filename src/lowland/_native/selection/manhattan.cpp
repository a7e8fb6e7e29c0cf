// manhattan_rows: sums of absolute differences, from rows to packed points.
//
// Why it is fast. A tile of 3 rows and three vectors of points stays in registers; per term it takes
// one load of a point, a subtraction, a bit cleared and an addition. Sums run in T over at most 64
// terms and go on in double, always in the same order.
#include "common/isa.h"
#include "selection/selection.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kTileRows = 3;
constexpr Index kTerms = 64;

template <class T>
struct Bits;
template <>
struct Bits<float> {
    typedef std::int32_t type;
    static constexpr type magnitude = 0x7fffffff;
};
template <>
struct Bits<double> {
    typedef std::int64_t type;
    static constexpr type magnitude = 0x7fffffffffffffff;
};

// sums(r, c) = sum over k < depth of |rows[r][k] - points[k*W + c]|
template <class T>
__attribute__((noinline))  // inlined it would have to share its registers
void add_tile(const T* points, const T* const* rows, Index depth, T* sums) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    typedef typename Bits<T>::type Integer;
    typedef Integer Integers __attribute__((vector_size(kVectorBytes)));
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    const Integers magnitude = Bits<T>::magnitude - Integers{};
    Vector total[kTileRows][kVectors] = {};
#pragma GCC unroll 1
    for (Index k = 0; k < depth; ++k) {
        Vector point[kVectors];
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) {
            point[v] = *reinterpret_cast<const Loose*>(points + k * W + v * kWidth);
        }
#pragma GCC unroll 3
        for (int r = 0; r < kTileRows; ++r) {
            const T value = rows[r][k];
#pragma GCC unroll 3
            for (int v = 0; v < kVectors; ++v) {
                const Vector gap = value - point[v];
                total[r][v] += reinterpret_cast<Vector>(reinterpret_cast<Integers>(gap) & magnitude);
            }
        }
    }
    for (int r = 0; r < kTileRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<Vector*>(sums + r * W + v * kWidth) = total[r][v];
        }
    }
}

}  // namespace

// out(i, j) = sum_k |rows_ik - point_jk|; points are packed as pack_points does.
template <class T>
bool manhattan_rows(const T* panels, Index n, const T* rows, Index m, Index d, double* out,
                    int n_threads) {
    constexpr Index W = panel_width<T>, kRowsPerTask = 32 * kTileRows, kCache = 1 << 18;
    const Index fitting = kCache / static_cast<Index>(sizeof(T)) / (d * W) * W;
    const Index range = fitting > W ? fitting : W, n_ranges = ceil_div(n, range);
    parallel(n_ranges * ceil_div(m, kRowsPerTask), n_threads, [&](Index task, int) {
        const Index begin = task / n_ranges * kRowsPerTask, end = min_of(m, begin + kRowsPerTask);
        const Index from = task % n_ranges * range, to = min_of(n, from + range);
        alignas(kVectorBytes) T part[kTileRows * W];
        double total[kTileRows * W];
        for (Index row = begin; row < end; row += kTileRows) {
            for (Index first = from; first < to; first += W) {
                for (Index i = 0; i < kTileRows * W; ++i) total[i] = 0;
                for (Index k = 0; k < d; k += kTerms) {
                    const T* chosen[kTileRows];
                    for (Index r = 0; r < kTileRows; ++r) {
                        chosen[r] = rows + min_of(row + r, end - 1) * d + k;
                    }
                    add_tile(panels + first * d + k * W, chosen, min_of(kTerms, d - k), part);
                    for (Index i = 0; i < kTileRows * W; ++i) total[i] += static_cast<double>(part[i]);
                }
                const Index used = min_of(W, to - first);
                for (Index r = 0; r < kTileRows && row + r < end; ++r) {
                    double* target = out + (row + r) * n + first;
                    for (Index i = 0; i < used; ++i) target[i] = total[r * W + i];
                }
            }
        }
    });
    return true;
}

template bool manhattan_rows<float>(const float*, Index, const float*, Index, Index, double*, int);
template bool manhattan_rows<double>(const double*, Index, const double*, Index, Index, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
