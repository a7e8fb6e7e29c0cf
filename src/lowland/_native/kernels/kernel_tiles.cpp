// Kernel matrices that are computed tile by tile.
//
// A square tile of kernel values is computed and multiplied with the block of vectors while it is in
// the near cache; being one half of a symmetric pair, it is used twice. The n x n matrix need not
// exist. `products/symmetric.h` has the order of the tiles.
#include "kernels/kernel_tiles.h"

#include "common/elementary.h"
#include "products/symmetric.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
std::int64_t tile_side() {
    return kSide<T>;
}

namespace {

template <class Vector>
inline Vector magnitude(const Vector& x) {
    return x < 0 ? -x : x;
}

// sum(r, c) = sum_k |left(k, r) - right(k, c)| for kRows points against a panel.
template <class T>
__attribute__((noinline)) void absolute_tile(Index depth, const T* left, const T* right, T* sum) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    Vector total[kRows][kVectors] = {};
#pragma GCC unroll 1
    for (Index k = 0; k < depth; ++k) {
        const Loose* row = reinterpret_cast<const Loose*>(right + k * W);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
            const T value = left[k * W + r];
#pragma GCC unroll 3
            for (int v = 0; v < kVectors; ++v) {
                const Vector gap = row[v] - value;
                total[r][v] += magnitude(gap);
            }
        }
    }
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<Vector*>(sum + r * W + v * kWidth) = total[r][v];
        }
    }
}

template <class T>
inline typename Lanes<T>::vector power(typename Lanes<T>::vector base, int degree) {
    typename Lanes<T>::vector result = fill<T>(1);
    for (; degree > 0; degree >>= 1) {
        if (degree & 1) result *= base;
        base *= base;
    }
    return result;
}

// tanh(x) = sign(x) (1 - t) / (1 + t) with t = exp(-2 |x|).
template <class T>
inline typename Lanes<T>::vector hyperbolic_tangent(typename Lanes<T>::vector x) {
    typedef typename Lanes<T>::vector Vector;
    const Vector t = exp_of_negative<T>(T(-2) * magnitude(x));
    const Vector size = (T(1) - t) / (T(1) + t);
    return x < 0 ? -size : size;
}

// From sums of products (or of differences) to values of the kernel, kRows rows of a panel's width.
template <class T>
inline void finish(const KernelFunction<T>& f, const T* row_halves, const T* column_halves, T* sums) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    if (f.kind == KernelKind::product) return;
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
            Vector& s = *reinterpret_cast<Vector*>(sums + r * W + v * kWidth);
            if (f.kind == KernelKind::gaussian) {
                const Vector halves = *reinterpret_cast<const Loose*>(column_halves + v * kWidth);
                // equal points: s and the halves were summed alike, so that this is exactly 0
                const Vector exponent = s - (halves + row_halves[r]);
                s = exp_of_negative<T>(exponent < 0 ? exponent : fill<T>(0));
            } else if (f.kind == KernelKind::laplacian) {
                s = exp_of_negative<T>(-s);
            } else if (f.kind == KernelKind::polynomial) {
                s = power<T>(s + f.offset, f.degree);
            } else {
                s = hyperbolic_tangent<T>(s + f.offset);
            }
        }
    }
}

// Values for kRows points (r ..) of a left panel against a right panel; each pair's value depends on
// the two points only, not on where they stand.
template <class T>
inline void values_of(const KernelFunction<T>& f, Index d, const T* left, const T* left_halves,
                      const T* right, const T* right_halves, Index r, T* values) {
    constexpr Index W = panel_width<T>;
    if (f.kind == KernelKind::laplacian) {
        absolute_tile<T>(d, left + r, right, values);
    } else {
        for (Index e = 0; e < kRows * W; ++e) values[e] = 0;
        tile<T, kVectors>(d, All(), left + r, 1, W, right, W, values, W);
    }
    finish<T>(f, left_halves + r, right_halves, values);
}

// x.x / 2 of every packed point, in the order in which x.y is summed; nullptr without memory.
template <class T>
T* halves_of(const PackedRows<T>& points, int n_threads) {
    constexpr Index W = panel_width<T>;
    const Index n_panels = ceil_div(points.n, W);
    T* halves = allocate<T>(n_panels * W);
    parallel(halves ? n_panels : 0, n_threads, [&](Index i, int) {
        const T* panel = points.panels + i * points.d * W;
        alignas(kVectorBytes) T sums[kRows * W];
        for (Index r = 0; r < W; r += kRows) {
            for (Index e = 0; e < kRows * W; ++e) sums[e] = 0;
            tile<T, kVectors>(points.d, All(), panel + r, 1, W, panel, W, sums, W);
            for (Index lane = 0; lane < kRows; ++lane) {
                halves[i * W + r + lane] = sums[lane * W + r + lane] / 2;
            }
        }
    });
    return halves;
}

// The tile of groups I and J, kSide x kSide; rows and columns without points are left as they are.
template <class T>
void fill_tile(const PackedRows<T>& points, const T* halves, const KernelFunction<T>& f, Index I,
               Index J, T* out) {
    constexpr Index W = panel_width<T>, S = kSide<T>;
    const Index n_panels = ceil_div(points.n, W), size = points.d * W;
    const Index end_i = min_of(n_panels, (I + 1) * kGroupPanels);
    const Index end_j = min_of(n_panels, (J + 1) * kGroupPanels);
    alignas(kVectorBytes) T values[kRows * W];
    for (Index i = I * kGroupPanels; i < end_i; ++i) {
        for (Index j = J * kGroupPanels; j < end_j; ++j) {
            for (Index r = 0; r < W; r += kRows) {
                values_of<T>(f, points.d, points.panels + i * size, halves + i * W,
                             points.panels + j * size, halves + j * W, r, values);
                T* corner = out + ((i - I * kGroupPanels) * W + r) * S + (j - J * kGroupPanels) * W;
                for (Index row = 0; row < kRows; ++row) {
                    for (Index c = 0; c < W; ++c) corner[row * S + c] = values[row * W + c];
                }
            }
        }
    }
}

}  // namespace

// out(i, j) = k(row i, point j), m x n.
template <class T>
bool kernel_rows(PackedRows<T> rows, PackedRows<T> points, KernelFunction<T> f, T* out,
                 int n_threads) {
    constexpr Index W = panel_width<T>;
    T* row_halves = halves_of(rows, n_threads);
    T* point_halves = halves_of(points, n_threads);
    const bool enough = row_halves && point_halves;
    const Index n_left = ceil_div(rows.n, W), n_right = ceil_div(points.n, W);
    const Index n_ranges = ceil_div(n_right, kGroupPanels), d = rows.d;
    parallel(enough ? n_left * n_ranges : 0, n_threads, [&](Index task, int) {
        const Index i = task / n_ranges, first = task % n_ranges * kGroupPanels;
        const Index used = min_of(W, rows.n - i * W);
        alignas(kVectorBytes) T values[kRows * W];
        for (Index j = first; j < min_of(n_right, first + kGroupPanels); ++j) {
            const Index wide = min_of(W, points.n - j * W);
            for (Index r = 0; r < used; r += kRows) {
                values_of<T>(f, d, rows.panels + i * d * W, row_halves + i * W,
                             points.panels + j * d * W, point_halves + j * W, r, values);
                for (Index row = 0; row < min_of(kRows, used - r); ++row) {
                    T* target = out + (i * W + r + row) * points.n + j * W;
                    for (Index c = 0; c < wide; ++c) target[c] = values[row * W + c];
                }
            }
        }
    });
    std::free(row_halves), std::free(point_halves);
    return enough;
}

// out = K v with K(i, j) = k(point i, point j), n x q.
template <class T>
bool kernel_times(PackedRows<T> points, KernelFunction<T> f, T* tiles, TileUse use, const T* v, Index q,
                  double* out, int n_threads) {
    constexpr Index S = kSide<T>;
    const Index n_groups = ceil_div(points.n, S);
    T* halves = use == TileUse::read ? nullptr : halves_of(points, n_threads);
    T* scratch =
        use == TileUse::none ? allocate<T>(min_of(n_threads, n_groups) * S * S) : tiles;
    bool enough = (halves || use == TileUse::read) && scratch;
    enough = enough && symmetric_product<T>(points.n, v, q, out, n_threads,
                                            [&](Index I, Index J, int slot) -> const T* {
        const Index place = use == TileUse::none ? slot : tile_place(I, J, n_groups);
        T* values = scratch + place * S * S;
        if (use != TileUse::read) fill_tile(points, halves, f, I, J, values);
        return values;
    });
    if (use == TileUse::none) std::free(scratch);
    std::free(halves);
    return enough;
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template std::int64_t tile_side<T>();                                                           \
    template bool kernel_rows<T>(PackedRows<T>, PackedRows<T>, KernelFunction<T>, T*, int);         \
    template bool kernel_times<T>(PackedRows<T>, KernelFunction<T>, T*, TileUse, const T*, Index,   \
                                  double*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
