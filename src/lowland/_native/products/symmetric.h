// A symmetric matrix in square tiles times a block of vectors.
//
// Tile (I, J) holds the rows of group I against those of group J; only tiles with I <= J exist, and
// each is multiplied twice, as it is and transposed. Groups meet in rounds: in round r group I meets
// the group J with I + J = r modulo the number of groups. No two tasks of a round write to the same
// rows, and every row is summed round by round, so that the sum has one order for any number of
// threads. Sums of one tile run in T, sums over tiles in double.
#pragma once
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kGroupPanels = 10;  // 240 floats or 120 doubles: a tile fills half of a small L2

template <class T>
constexpr Index kSide = kGroupPanels* panel_width<T>;

// out += A v for a tile A or, with its strides exchanged, for its transpose.
template <class T>
static void add_product(const T* a, Index stride_r, Index stride_k, Index rows, Index depth, const T* v,
                        Index q_padded, double* out) {
    constexpr Index kWidth = Lanes<T>::width;
    const Index n_vectors = q_padded / kWidth, n_shares = ceil_div(n_vectors, kVectors);
    alignas(kVectorBytes) T sums[kRows * kVectors * kWidth];
    for (Index r = 0; r < rows; r += kRows) {
        for (Index share = 0; share < n_shares; ++share) {
            const Index from = share * n_vectors / n_shares, to = (share + 1) * n_vectors / n_shares;
            const Index wide = (to - from) * kWidth;
            for (Index e = 0; e < kRows * wide; ++e) sums[e] = 0;
            tile_of(to - from, depth, All(), a + r * stride_r, stride_r, stride_k, v + from * kWidth,
                    q_padded, sums, wide);
            for (Index row = 0; row < kRows; ++row) {
                double* target = out + (r + row) * q_padded + from * kWidth;
                for (Index c = 0; c < wide; ++c) target[c] += static_cast<double>(sums[row * wide + c]);
            }
        }
    }
}

// The place of tile (I, J), I <= J, in a list of all tiles of the upper half, row by row.
static inline Index tile_place(Index I, Index J, Index n_groups) {
    return I * n_groups - I * (I - 1) / 2 + J - I;
}

// out (n x q) = A v. `tile_at(I, J, slot)` returns the tile, whose rows and columns beyond the last
// panel of points are not read; false if there is no memory.
template <class T, class TileAt>
static bool symmetric_product(Index n, const T* v, Index q, double* out, int n_threads,
                              const TileAt& tile_at) {
    constexpr Index W = panel_width<T>, S = kSide<T>, kWidth = Lanes<T>::width;
    const Index n_groups = ceil_div(n, S), q_padded = ceil_div(q, kWidth) * kWidth;
    T* padded = allocate<T>(n_groups * S * q_padded);
    double* sums = allocate<double>(n_groups * S * q_padded);
    const bool enough = padded && sums;
    parallel(enough ? n_groups * S : 0, n_threads, [&](Index i, int) {
        for (Index j = 0; j < q_padded; ++j) {
            padded[i * q_padded + j] = i < n && j < q ? v[i * q + j] : T(0);
            sums[i * q_padded + j] = 0;
        }
    });
    const auto used = [&](Index I) { return min_of(ceil_div(n - I * S, W) * W, S); };
    for (Index round = 0; enough && round < n_groups; ++round) {
        parallel(n_groups, n_threads, [&](Index I, int slot) {
            const Index J = (round - I + n_groups) % n_groups;
            if (I > J) return;
            const T* values = tile_at(I, J, slot);
            add_product<T>(values, S, 1, used(I), used(J), padded + J * S * q_padded, q_padded,
                           sums + I * S * q_padded);
            if (I == J) return;
            add_product<T>(values, 1, S, used(J), used(I), padded + I * S * q_padded, q_padded,
                           sums + J * S * q_padded);
        });
    }
    parallel(enough ? n : 0, n_threads, [&](Index i, int) {
        for (Index j = 0; j < q; ++j) out[i * q + j] = sums[i * q_padded + j];
    });
    std::free(padded), std::free(sums);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
