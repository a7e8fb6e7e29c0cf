// Register tiles and packed panels: the parts that our matrix products are made of.
//
// BLAS would need a centered copy of the data, and its threads change the last digits. Here a shift
// is subtracted while rows are packed, sums run in T over a bounded number of terms and go on in
// double, and every output element is summed in one fixed order: the number of threads, the batch
// a row comes in and its place in the batch do not change a bit.
#pragma once
#include "common/isa.h"
#include "products/products.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr int kRows = 4;       // rows of a register tile
constexpr int kVectors = 3;    // vectors per row: 4 x 3 accumulators fill the 16 registers of AVX2
constexpr Index kDepth = 256;  // terms of a slice: two panels of this depth share the near caches

template <class T>
constexpr Index panel_width = kVectors * Lanes<T>::width;
static_assert(panel_width<float> % kRows == 0 && panel_width<double> % kRows == 0,
              "tiles must cover a panel");

// sum(r, c) += sum_k a[r*stride_r + step(k)*stride_k] * b[step(k)*b_stride + c], r < kRows, c < NV
// vectors, k < depth. Steps is the identity (All) or picks terms from a list (Listed).
struct All {
    Index operator()(Index k) const { return k; }
};

struct Listed {
    const std::uint16_t* terms;
    Index operator()(Index k) const { return terms[k]; }
};

template <class T, int NV, class Steps>
__attribute__((noinline))  // inlined it would have to share its registers
static void tile(Index depth, Steps step, const T* a, Index stride_r, Index stride_k, const T* b,
                 Index b_stride, T* sum, Index sum_stride) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr int kWidth = Lanes<T>::width;
    Vector total[kRows][NV];
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < NV; ++v) {
            total[r][v] = *reinterpret_cast<const Vector*>(sum + r * sum_stride + v * kWidth);
        }
    }
#pragma GCC unroll 1  // more only makes the compiler spill accumulators
    for (Index k = 0; k < depth; ++k) {
        const Index at = step(k);
        const Loose* row = reinterpret_cast<const Loose*>(b + at * b_stride);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
            const T value = a[r * stride_r + at * stride_k];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) total[r][v] += value * row[v];
        }
    }
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < NV; ++v) {
            *reinterpret_cast<Vector*>(sum + r * sum_stride + v * kWidth) = total[r][v];
        }
    }
}

// The same for a number of vectors known only at run time (1, 2 or 3).
template <class T, class Steps>
static inline void tile_of(Index n_vectors, Index depth, Steps step, const T* a, Index stride_r,
                           Index stride_k, const T* b, Index b_stride, T* sum, Index sum_stride) {
    if (n_vectors == 3) {
        tile<T, 3>(depth, step, a, stride_r, stride_k, b, b_stride, sum, sum_stride);
    } else if (n_vectors == 2) {
        tile<T, 2>(depth, step, a, stride_r, stride_k, b, b_stride, sum, sum_stride);
    } else {
        tile<T, 1>(depth, step, a, stride_r, stride_k, b, b_stride, sum, sum_stride);
    }
}

// A packed panel holds panel_width columns of an operand, k-major: panel[k*W + i]. Slices of kDepth
// terms follow one another; within a slice, its panels. One packing serves both sides of a product.
template <class T>
struct Packed {
    T* data;
    Index width, depth;  // columns and terms in use
    Index n_panels() const { return ceil_div(width, panel_width<T>); }
    Index n_slices() const { return ceil_div(depth, kDepth); }
    Index terms(Index slice) const { return min_of(kDepth, depth - slice * kDepth); }
    Index used(Index i) const { return min_of(panel_width<T>, width - i * panel_width<T>); }
    T* panel(Index slice, Index i) const {
        return data + (slice * n_panels() + i) * kDepth * panel_width<T>;
    }
};

// Packs one panel of one slice; columns past the operand's width are 0.
template <class T>
static void pack_panel(const Operand<T>& x, Index first_k, const Packed<T>& packed, Index slice,
                       Index j) {
    constexpr Index W = panel_width<T>;
    const Index terms = packed.terms(slice), used = packed.used(j);
    T* out = packed.panel(slice, j);
    const Index k0 = first_k + slice * kDepth;
    const T* source = x.data + k0 * x.stride_k + j * W * x.stride_i;
    const T* shift = x.shift + k0 * x.shift_k + j * W * x.shift_i;
    if (used == W && x.stride_i == 1 && x.shift_k == 0 && x.shift_i == 1) {  // the usual case
        for (Index k = 0; k < terms; ++k) {
            const T* row = source + k * x.stride_k;
            for (Index i = 0; i < W; ++i) out[k * W + i] = row[i] - shift[i];
        }
        return;
    }
    for (Index k = 0; k < terms; ++k) {
        for (Index i = used; i < W; ++i) out[k * W + i] = 0;
    }
    if (x.stride_i == 1) {
        for (Index k = 0; k < terms; ++k) {
            const T* row = source + k * x.stride_k;
            const T* less = shift + k * x.shift_k;
            for (Index i = 0; i < used; ++i) out[k * W + i] = row[i] - less[i * x.shift_i];
        }
        return;
    }
    for (Index i = 0; i < used; ++i) {
        const T* column = source + i * x.stride_i;
        const T* less = shift + i * x.shift_i;
        for (Index k = 0; k < terms; ++k) {
            out[k * W + i] = column[k * x.stride_k] - less[k * x.shift_k];
        }
    }
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
