// scatter_matrix: the p x p sums of products of shifted rows, the one pass that PCA is made of.
//
// Exact zeros are common in real tables (pixels, counts, one-hot columns), and with the commonest
// value of a column as its shift they stay zeros. For every four columns and every slice of rows
// there is a list of the rows where one of the four is not zero; a tile only walks its list. On
// MNIST this leaves out two thirds of the work, on data without zeros it costs 3 %.
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kChunk = 2 * kDepth;  // rows that are packed, multiplied and forgotten together

// Rows of a slice in which at least one of the kRows columns of a subtile is not zero.
struct Rows {
    Index count;
    std::uint16_t list[kDepth];
};

// Where the first rows are nearly all in the list, all rows are taken without looking further.
template <class T>
static void list_rows(const T* panel, Index terms, Rows& rows) {
    constexpr Index W = panel_width<T>, kWords = kRows * sizeof(T) / sizeof(std::uint64_t);
    constexpr Index kProbe = 16;
    Index count = 0;
    for (Index k = 0; k < terms; ++k) {
        if (k == kProbe && count > kProbe - 2) {
            count = terms;
            break;
        }
        std::uint64_t words[kWords], any = 0;  // x - shift is +0 where they are equal: no bit set
        __builtin_memcpy(words, panel + k * W, sizeof(words));
        for (Index w = 0; w < kWords; ++w) any |= words[w];
        rows.list[count] = static_cast<std::uint16_t>(k);
        count += any != 0;
    }
    rows.count = count;
}

// The work space of one chunk, and the sums of one group of chunks: blocks (i, j), i <= j, of
// W x W numbers, column by column of blocks.
template <class T>
struct Group {
    T* data;        // packed chunk
    Rows* rows;     // (slice, panel, subtile)
    double* sums;   // p
    double* blocks;
};

template <class T>
static double* block_of(const Group<T>& group, Index i, Index j) {
    constexpr Index W = panel_width<T>;
    return group.blocks + (j * (j + 1) / 2 + i) * W * W;
}

// Terms that panel i has to walk as the left side of a product.
template <class T>
static Index walk(const Packed<T>& x, const Group<T>& group, Index i) {
    constexpr Index kSubtiles = panel_width<T> / kRows;
    Index terms = 0;
    for (Index slice = 0; slice < x.n_slices(); ++slice) {
        const Rows* rows = group.rows + (slice * x.n_panels() + i) * kSubtiles;
        for (Index s = 0; s < kSubtiles; ++s) terms += rows[s].count;
    }
    return terms;
}

// sums(r, c) += left_r . right_c over the chunk; on the diagonal, vectors left of it are left out.
template <class T>
static void pair_sums(const Packed<T>& x, const Group<T>& group, Index left, Index right, T* sums) {
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width, kSubtiles = W / kRows;
    const Index n_vectors = ceil_div(x.used(right), kWidth);
    for (Index slice = 0; slice < x.n_slices(); ++slice) {
        for (Index r = 0; r < x.used(left); r += kRows) {
            const Rows& rows = group.rows[(slice * x.n_panels() + left) * kSubtiles + r / kRows];
            if (rows.count == 0) continue;
            const Index v = left == right ? r / kWidth : 0;
            const T* a = x.panel(slice, left) + r;
            const T* b = x.panel(slice, right) + v * kWidth;
            T* sum = sums + r * W + v * kWidth;
            if (4 * rows.count > 3 * x.terms(slice)) {
                tile_of(n_vectors - v, x.terms(slice), All(), a, 1, W, b, W, sum, W);
            } else {
                tile_of(n_vectors - v, rows.count, Listed{rows.list}, a, 1, W, b, W, sum, W);
            }
        }
    }
}

// blocks(i, j) += panel_i^T panel_j over the chunk, the panel with fewer terms on the left.
template <class T>
static void add_pair(const Packed<T>& x, const Group<T>& group, Index i, Index j) {
    constexpr Index W = panel_width<T>;
    const Index walk_i = walk(x, group, i), walk_j = walk(x, group, j);
    if (walk_i == 0 || walk_j == 0) return;
    alignas(kVectorBytes) T sums[W * W] = {};
    double* block = block_of(group, i, j);
    if (walk_i <= walk_j) {
        pair_sums(x, group, i, j, sums);
        for (Index e = 0; e < W * W; ++e) block[e] += static_cast<double>(sums[e]);
    } else {
        pair_sums(x, group, j, i, sums);
        for (Index r = 0; r < W; ++r) {
            for (Index c = 0; c < W; ++c) block[c * W + r] += static_cast<double>(sums[r * W + c]);
        }
    }
}

template <class T>
static void add_column_sums(const T* panel, Index terms, Index used, double* sums) {
    typedef typename Lanes<T>::vector Vector;
    constexpr Index kWidth = Lanes<T>::width;
    Vector total[kVectors] = {};
    const Vector* row = reinterpret_cast<const Vector*>(panel);
    for (Index k = 0; k < terms; ++k, row += kVectors) {
        for (int v = 0; v < kVectors; ++v) total[v] += row[v];
    }
    for (Index i = 0; i < used; ++i) sums[i] += static_cast<double>(total[i / kWidth][i % kWidth]);
}

template <class T>
static void add_chunk(const Operand<T>& x, Index first, Index rows, Index p, const Group<T>& group,
                      int n_threads) {
    constexpr Index W = panel_width<T>, kSubtiles = W / kRows;
    const Packed<T> packed{group.data, p, rows};
    const Index n_panels = packed.n_panels();
    parallel(n_panels, n_threads, [&](Index j, int) {
        for (Index slice = 0; slice < packed.n_slices(); ++slice) {
            pack_panel(x, first, packed, slice, j);
            const T* panel = packed.panel(slice, j);
            for (Index s = 0; s < kSubtiles; ++s) {
                list_rows(panel + s * kRows, packed.terms(slice),
                          group.rows[(slice * n_panels + j) * kSubtiles + s]);
            }
            add_column_sums(panel, packed.terms(slice), packed.used(j), group.sums + j * W);
        }
    });
    // Squares of kSide x kSide panels, so that the panels of a square stay in the cache.
    constexpr Index kSide = 4;
    const Index side = ceil_div(n_panels, kSide);
    parallel(side * side, n_threads, [&](Index task, int) {
        const Index I = task % side * kSide, J = (side - 1 - task / side) * kSide;
        for (Index j = J; j < min_of(J + kSide, n_panels); ++j) {
            for (Index i = I; i < min_of(I + kSide, j + 1); ++i) add_pair(packed, group, i, j);
        }
    });
}

// How many groups of chunks are summed apart: as many as fit a few megabytes, never depending on
// the number of threads. Threads beyond the groups share the panels of a chunk.
static Index n_groups_for(Index block_numbers, Index n_chunks) {
    Index groups = 16;
    while (groups > 1 && groups * block_numbers > (Index(3) << 18)) groups /= 2;
    return min_of(groups, n_chunks);
}

// sums(j) = sum_i y(i, j),  out(j, k) = sum_i y(i, j) y(i, k)  for  y = x - shift:  the upper
// triangle, p x p in double.
template <class T>
bool scatter_matrix(const T* x, Index n, Index p, Index ld, const T* shift, double* sums, double* out,
             int n_threads) {
    constexpr Index W = panel_width<T>, kSubtiles = W / kRows;
    const Index n_panels = ceil_div(p, W), n_chunks = ceil_div(n, kChunk);
    const Index block_numbers = n_panels * (n_panels + 1) / 2 * W * W;
    const Index n_groups = n_groups_for(block_numbers, n_chunks);
    const Index slots = min_of(n_threads, n_groups);
    const Index n_lists = kChunk / kDepth * n_panels * kSubtiles;
    T* data = allocate<T>(slots * n_panels * W * kChunk);
    Rows* rows = allocate<Rows>(slots * n_lists);
    double* partial = allocate<double>(n_groups * p);
    double* blocks = allocate<double>(n_groups * block_numbers);
    const bool enough = data && rows && partial && blocks;
    const Operand<T> operand{x, ld, 1, shift, 0, 1};
    const int inside = static_cast<int>(ceil_div(n_threads, n_groups));
    parallel(enough ? n_groups : 0, n_threads, [&](Index g, int slot) {
        const Group<T> group{data + slot * n_panels * W * kChunk, rows + slot * n_lists,
                             partial + g * p, blocks + g * block_numbers};
        for (Index e = 0; e < p; ++e) group.sums[e] = 0;
        for (Index e = 0; e < block_numbers; ++e) group.blocks[e] = 0;
        const Index end = (g + 1) * n_chunks / n_groups;
        for (Index chunk = g * n_chunks / n_groups; chunk < end; ++chunk) {
            const Index first = chunk * kChunk;
            add_chunk(operand, first, min_of(kChunk, n - first), p, group, inside);
        }
    });
    for (Index e = 0; enough && e < p; ++e) {
        sums[e] = 0;
        for (Index g = 0; g < n_groups; ++g) sums[e] += partial[g * p + e];
    }
    parallel(enough ? p : 0, n_threads, [&](Index row, int) {
        for (Index column = row; column < p; ++column) {
            const Index i = row / W, j = column / W;
            const double* block = blocks + (j * (j + 1) / 2 + i) * W * W;
            double total = 0;
            for (Index g = 0; g < n_groups; ++g) {
                total += block[g * block_numbers + row % W * W + column % W];
            }
            out[row * p + column] = total;
        }
    });
    std::free(data), std::free(rows), std::free(partial), std::free(blocks);
    return enough;
}

template bool scatter_matrix<float>(const float*, Index, Index, Index, const float*, double*, double*, int);
template bool scatter_matrix<double>(const double*, Index, Index, Index, const double*, double*, double*,
                              int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
