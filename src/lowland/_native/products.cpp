// Matrix products with the centering inside: scatter, inner, project.
//
// BLAS would need a centered copy of the data, and its threads change the last digits. Here the
// mean is subtracted while rows are packed, sums run in T over at most kDepth terms and then go on
// in double, and every output element is summed in one fixed order: the number of threads, the
// batch a row comes in and its place in the batch do not change a bit.
#include <cstdlib>

#include "isa.h"
#include "kernels.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr int kRows = 4;         // rows of a register tile
constexpr int kVectors = 3;      // vectors per row: 4 x 3 accumulators fill the 16 registers of AVX2
constexpr Index kDepth = 256;    // terms summed in T before they are added in double
constexpr Index kCached = 128;    // terms of two panels that stay in the first-level cache

template <class T>
constexpr Index panel_width = kVectors * Lanes<T>::width;
static_assert(panel_width<float> % kRows == 0 && panel_width<double> % kRows == 0,
              "tiles must cover a panel");

template <class T>
static T* allocate(Index n) {
    const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
    return static_cast<T*>(std::aligned_alloc(64, bytes ? bytes : 64));
}

// sum(r, c) += sum_k a[r*stride_r + k*stride_k] * b[k*b_stride + c],  r < kRows, c < NV vectors.
template <class T, int NV>
static inline void tile(Index depth, const T* a, Index stride_r, Index stride_k, const T* b,
                        Index b_stride, T* sum, Index sum_stride) {
    typedef typename Lanes<T>::vector Vector;
    constexpr int kWidth = Lanes<T>::width;
    Vector total[kRows][NV];
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < NV; ++v) {
            total[r][v] = *reinterpret_cast<const Vector*>(sum + r * sum_stride + v * kWidth);
        }
    }
#pragma GCC unroll 4
    for (Index k = 0; k < depth; ++k) {
        const Vector* row = reinterpret_cast<const Vector*>(b + k * b_stride);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
            const T value = a[r * stride_r + k * stride_k];
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

// A packed panel holds panel_width columns of an operand, k-major: panel[k*W + i]. Slices of kDepth
// terms follow one another; within a slice, its panels. One packing serves both sides of a product.
template <class T>
struct Packed {
    T* data;
    Index width, depth;  // columns and terms in use
    Index n_panels() const { return ceil_div(width, panel_width<T>); }
    Index n_slices() const { return ceil_div(depth, kDepth); }
    T* panel(Index slice, Index i) const {
        return data + (slice * n_panels() + i) * kDepth * panel_width<T>;
    }
};

// Packs one slice. columns maps packed to original columns (nullptr: the identity).
template <class T>
static void pack_slice(const Operand<T>& x, Index first_k, const Index* columns,
                       const Packed<T>& packed, Index slice) {
    constexpr Index W = panel_width<T>;
    const Index begin = slice * kDepth, terms = min_of(kDepth, packed.depth - begin);
    for (Index j = 0; j < packed.n_panels(); ++j) {
        T* out = packed.panel(slice, j);
        const Index used = min_of(W, packed.width - j * W);
        const Index first = columns ? columns[j * W] : j * W;
        const Index last = columns ? columns[j * W + used - 1] : j * W + used - 1;
        const bool run = last - first == used - 1;  // neighboring columns, the usual case
        const Index k0 = first_k + begin;
        if (run && used == W && x.stride_i == 1 && (!x.shift || (x.shift_k == 0 && x.shift_i == 1))) {
            for (Index k = 0; k < terms; ++k) {
                const T* row = x.data + (k0 + k) * x.stride_k + first;
                if (x.shift) {
                    for (Index i = 0; i < W; ++i) out[k * W + i] = row[i] - x.shift[first + i];
                } else {
                    for (Index i = 0; i < W; ++i) out[k * W + i] = row[i];
                }
            }
            continue;
        }
        for (Index i = 0; i < W; ++i) {
            if (i >= used) {
                for (Index k = 0; k < terms; ++k) out[k * W + i] = 0;
                continue;
            }
            const Index column = columns ? columns[j * W + i] : j * W + i;
            const T* source = x.data + k0 * x.stride_k + column * x.stride_i;
            const T* shift = x.shift ? x.shift + k0 * x.shift_k + column * x.shift_i : nullptr;
            for (Index k = 0; k < terms; ++k) {
                out[k * W + i] = source[k * x.stride_k] - (shift ? shift[k * x.shift_k] : T(0));
            }
        }
    }
}

// Panels are multiplied in groups of kGroup x kGroup: a slice of both groups stays in the second-
// level cache while each of its panels is used kGroup times.
constexpr Index kGroup = 4;

template <class T>
struct Block {
    double sums[kGroup * kGroup][panel_width<T> * panel_width<T>];
};

// block(i, j) = sum over all slices of panel i of group I of A times panel j of group J of B. Where
// `upper`, pairs of panels below the diagonal are left out.
template <class T>
static void group_product(const Packed<T>& a, Index I, const Packed<T>& b, Index J, bool upper,
                          Block<T>& block) {
    constexpr Index W = panel_width<T>;
    const Index n_i = min_of(kGroup, a.n_panels() - I * kGroup);
    const Index n_j = min_of(kGroup, b.n_panels() - J * kGroup);
    for (Index slice = 0; slice < a.n_slices(); ++slice) {
        const Index terms = min_of(kDepth, a.depth - slice * kDepth);
        for (Index j = 0; j < n_j; ++j) {
            for (Index i = 0; i < n_i; ++i) {
                if (upper && I * kGroup + i > J * kGroup + j) continue;
                alignas(kVectorBytes) T sums[W * W] = {};
                for (Index k = 0; k < terms; k += kCached) {
                    const T* left = a.panel(slice, I * kGroup + i) + k * W;
                    const T* right = b.panel(slice, J * kGroup + j) + k * W;
                    for (Index r = 0; r < W; r += kRows) {
                        tile<T, kVectors>(min_of(kCached, terms - k), left + r, 1, W, right, W,
                                          sums + r * W, W);
                    }
                }
                double* total = block.sums[i * kGroup + j];
                if (slice == 0) {
                    for (Index e = 0; e < W * W; ++e) total[e] = static_cast<double>(sums[e]);
                } else {
                    for (Index e = 0; e < W * W; ++e) total[e] += static_cast<double>(sums[e]);
                }
            }
        }
    }
}

// Computes A^T B group by group and hands the sums to add(row, first column, values, count).
template <class T, class Add>
static void multiply(const Packed<T>& a, const Packed<T>& b, bool upper, int n_threads,
                     const Add& add) {
    constexpr Index W = panel_width<T>;
    const Index n_rows = ceil_div(a.n_panels(), kGroup), n_columns = ceil_div(b.n_panels(), kGroup);
    parallel(n_rows * n_columns, n_threads, [&](Index task, int) {
        const Index I = task % n_rows, J = n_columns - 1 - task / n_rows;  // long columns first
        if (upper && I > J) return;
        Block<T> block;
        group_product(a, I, b, J, upper, block);
        for (Index i = I * kGroup; i < min_of(a.n_panels(), (I + 1) * kGroup); ++i) {
            for (Index j = J * kGroup; j < min_of(b.n_panels(), (J + 1) * kGroup); ++j) {
                if (upper && i > j) continue;
                const double* sums = block.sums[(i - I * kGroup) * kGroup + (j - J * kGroup)];
                for (Index r = 0; r < min_of(W, a.width - i * W); ++r) {
                    add(i * W + r, j * W, sums + r * W, min_of(W, b.width - j * W));
                }
            }
        }
    });
}

// Column sums of one slice of rows, relative to the chunk's first row, and which columns vary.
template <class T>
static void column_sums(const T* x, Index rows, Index p, Index ld, const T* first, double* sums,
                        unsigned char* varies) {
    for (Index j = 0; j < p; ++j) sums[j] = 0, varies[j] = 0;
    for (Index k = 0; k < rows; ++k) {
        const T* row = x + k * ld;
        for (Index j = 0; j < p; ++j) sums[j] += static_cast<double>(row[j] - first[j]);
        for (Index j = 0; j < p; ++j) varies[j] |= row[j] != first[j];
    }
}

// out += sum over chunks c of  sum_{x in c} (x - s_c)(x - s_c)^T,  s_c = T(mean_c): the upper
// triangle, p x p in double. means gets the mean of each chunk of kChunkRows rows. Columns that do
// not vary within a chunk add nothing there and are left out of its product.
template <class T>
bool scatter(const T* x, Index n, Index p, Index ld, double* means, double* out, int n_threads) {
    constexpr Index W = panel_width<T>;
    constexpr Index kSlices = kChunkRows / kDepth;
    T* data = allocate<T>(ceil_div(p, W) * W * kChunkRows);
    double* sums = allocate<double>(kSlices * p);
    unsigned char* varies = allocate<unsigned char>(kSlices * p);
    Index* columns = allocate<Index>(p);
    T* shift = allocate<T>(p);
    const bool enough = data && sums && varies && columns && shift;
    for (Index chunk = 0; enough && chunk * kChunkRows < n; ++chunk) {
        const T* first = x + chunk * kChunkRows * ld;
        const Index rows = min_of(kChunkRows, n - chunk * kChunkRows);
        const Index n_slices = ceil_div(rows, kDepth);
        parallel(n_slices, n_threads, [&](Index slice, int) {
            column_sums(first + slice * kDepth * ld, min_of(kDepth, rows - slice * kDepth), p, ld,
                        first, sums + slice * p, varies + slice * p);
        });
        Index width = 0;
        for (Index j = 0; j < p; ++j) {
            double total = 0;
            bool any = false;
            for (Index slice = 0; slice < n_slices; ++slice) {
                total += sums[slice * p + j];
                any |= varies[slice * p + j] != 0;
            }
            const double mean = static_cast<double>(first[j]) + total / static_cast<double>(rows);
            means[chunk * p + j] = mean;
            shift[j] = static_cast<T>(mean);
            if (any) columns[width++] = j;
        }
        const Operand<T> operand{first, ld, 1, shift, 0, 1};
        const Packed<T> packed{data, width, rows};
        parallel(n_slices, n_threads,
                 [&](Index slice, int) { pack_slice(operand, 0, columns, packed, slice); });
        multiply(packed, packed, true, n_threads,
                 [&](Index row, Index column, const double* values, Index count) {
                     const Index* to = columns + column;
                     double* target = out + columns[row] * p;
                     if (to[count - 1] - to[0] == count - 1) {  // neighbors, the usual case
                         for (Index c = 0; c < count; ++c) target[to[0] + c] += values[c];
                     } else {
                         for (Index c = 0; c < count; ++c) target[to[c]] += values[c];
                     }
                 });
    }
    std::free(data), std::free(sums), std::free(varies), std::free(columns), std::free(shift);
    return enough;
}

// out(i, j) = sum_k a(k, i) b(k, j), m x n in double; symmetric: a and b are the same operand and
// only the upper triangle is computed.
template <class T>
bool inner(Operand<T> a, Index m, Operand<T> b, Index n, Index depth, bool symmetric, double* out,
           int n_threads) {
    constexpr Index W = panel_width<T>;
    constexpr Index kBudget = Index(1) << 22;  // packed elements: 16 MB of float
    if (m == 0 || n == 0) return true;
    const Index rows_a = ceil_div(m, W) * W, rows_b = symmetric ? 0 : ceil_div(n, W) * W;
    Index terms = kBudget / (rows_a + rows_b) / kDepth * kDepth;
    if (terms < kDepth) terms = kDepth;
    terms = min_of(terms, ceil_div(depth, kDepth) * kDepth);
    T* data_a = allocate<T>(rows_a * terms);
    T* data_b = symmetric ? data_a : allocate<T>(rows_b * terms);
    const bool enough = data_a && data_b;
    for (Index e = 0; e < m * n; ++e) out[e] = 0;
    for (Index first = 0; enough && first < depth; first += terms) {
        const Packed<T> left{data_a, m, min_of(terms, depth - first)};
        const Packed<T> right{data_b, n, left.depth};
        const Index n_slices = left.n_slices();
        parallel(symmetric ? n_slices : 2 * n_slices, n_threads, [&](Index task, int) {
            if (task < n_slices) pack_slice(a, first, nullptr, left, task);
            else pack_slice(b, first, nullptr, right, task - n_slices);
        });
        multiply(left, right, symmetric, n_threads,
                 [&](Index row, Index column, const double* values, Index count) {
                     double* target = out + row * n + column;
                     for (Index c = 0; c < count; ++c) target[c] += values[c];
                 });
    }
    if (!symmetric) std::free(data_b);
    std::free(data_a);
    return enough;
}

// One strip of project: kStrip rows against all columns of v.
constexpr Index kStrip = 64;

template <class T, int NV>
static void strip_tiles(const T* rows, Index p, const T* v, Index q_padded, Index first, Index begin,
                        Index terms, T* sums) {
    for (Index r = 0; r < kStrip; r += kRows) {
        tile<T, NV>(terms, rows + r * p + begin, p, 1, v + begin * q_padded + first, q_padded,
                    sums + r * q_padded + first, q_padded);
    }
}

// out(i, :) = sum_k (x(i, k) - shift(k)) v(k, :),  n x q. Rows are independent of one another.
template <class T>
bool project(const T* x, Index n, Index p, Index ld, const T* shift, const T* v, Index q, T* out,
             int n_threads) {
    constexpr Index kWidth = Lanes<T>::width;
    const Index n_vectors = ceil_div(q, kWidth), q_padded = n_vectors * kWidth;
    const Index n_strips = ceil_div(n, kStrip), strip_sums = kStrip * q_padded;
    const int slots = static_cast<int>(min_of(n_threads, n_strips));
    T* padded = allocate<T>(p * q_padded);
    T* rows_of = allocate<T>(slots * kStrip * p);
    T* sums_of = allocate<T>(slots * strip_sums);
    double* totals_of = allocate<double>(slots * strip_sums);
    const bool enough = padded && rows_of && sums_of && totals_of;
    for (Index k = 0; enough && k < p; ++k) {
        for (Index j = 0; j < q_padded; ++j) padded[k * q_padded + j] = j < q ? v[k * q + j] : T(0);
    }
    parallel(enough ? n_strips : 0, n_threads, [&](Index strip, int slot) {
        T* rows = rows_of + slot * kStrip * p;
        T* sums = sums_of + slot * strip_sums;
        double* totals = totals_of + slot * strip_sums;
        const Index first_row = strip * kStrip, used = min_of(kStrip, n - first_row);
        for (Index r = 0; r < kStrip; ++r) {
            T* row = rows + r * p;
            const T* source = x + (first_row + min_of(r, used - 1)) * ld;
            for (Index k = 0; k < p; ++k) row[k] = source[k] - shift[k];
        }
        for (Index e = 0; e < strip_sums; ++e) totals[e] = 0;
        for (Index begin = 0; begin < p; begin += kDepth) {
            const Index terms = min_of(kDepth, p - begin);
            for (Index e = 0; e < strip_sums; ++e) sums[e] = 0;
            // Vectors are dealt out evenly (7 = 3 + 2 + 2): a lone one would starve the FMA units.
            const Index n_groups = ceil_div(n_vectors, kVectors);
            for (Index group = 0; group < n_groups; ++group) {
                const Index from = group * n_vectors / n_groups;
                const Index to = (group + 1) * n_vectors / n_groups;
                const Index column = from * kWidth;
                if (to - from == 3) {
                    strip_tiles<T, 3>(rows, p, padded, q_padded, column, begin, terms, sums);
                } else if (to - from == 2) {
                    strip_tiles<T, 2>(rows, p, padded, q_padded, column, begin, terms, sums);
                } else {
                    strip_tiles<T, 1>(rows, p, padded, q_padded, column, begin, terms, sums);
                }
            }
            for (Index e = 0; e < strip_sums; ++e) totals[e] += static_cast<double>(sums[e]);
        }
        for (Index r = 0; r < used; ++r) {
            for (Index j = 0; j < q; ++j) {
                out[(first_row + r) * q + j] = static_cast<T>(totals[r * q_padded + j]);
            }
        }
    });
    std::free(padded), std::free(rows_of), std::free(sums_of), std::free(totals_of);
    return enough;
}

#define LOWLAND_INSTANTIATE(T)                                                                    \
    template bool scatter<T>(const T*, Index, Index, Index, double*, double*, int);               \
    template bool inner<T>(Operand<T>, Index, Operand<T>, Index, Index, bool, double*, int);      \
    template bool project<T>(const T*, Index, Index, Index, const T*, const T*, Index, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
