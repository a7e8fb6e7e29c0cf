// inner: (A - shift)^T (B - shift), summed over many rows.
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

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
        for (Index j = 0; j < n_j; ++j) {
            for (Index i = 0; i < n_i; ++i) {
                if (upper && I * kGroup + i > J * kGroup + j) continue;
                alignas(kVectorBytes) T sums[W * W] = {};
                const T* left = a.panel(slice, I * kGroup + i);
                const T* right = b.panel(slice, J * kGroup + j);
                for (Index r = 0; r < W; r += kRows) {
                    tile<T, kVectors>(a.terms(slice), All(), left + r, 1, W, right, W, sums + r * W, W);
                }
                double* total = block.sums[i * kGroup + j];
                for (Index e = 0; e < W * W; ++e) {
                    total[e] = static_cast<double>(sums[e]) + (slice == 0 ? 0.0 : total[e]);
                }
            }
        }
    }
}

// out += A^T B, group by group.
template <class T>
static void multiply(const Packed<T>& a, const Packed<T>& b, bool upper, double* out,
                     int n_threads) {
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
                for (Index r = 0; r < a.used(i); ++r) {
                    double* target = out + (i * W + r) * b.width + j * W;
                    for (Index c = 0; c < b.used(j); ++c) target[c] += sums[r * W + c];
                }
            }
        }
    });
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
        const Index n_left = left.n_panels(), n_right = symmetric ? 0 : right.n_panels();
        parallel(left.n_slices() * (n_left + n_right), n_threads, [&](Index task, int) {
            const Index slice = task / (n_left + n_right), j = task % (n_left + n_right);
            if (j < n_left) {
                pack_panel(a, first, left, slice, j);
            } else {
                pack_panel(b, first, right, slice, j - n_left);
            }
        });
        multiply(left, right, symmetric, out, n_threads);
    }
    if (!symmetric) std::free(data_b);
    std::free(data_a);
    return enough;
}

template bool inner<float>(Operand<float>, Index, Operand<float>, Index, Index, bool, double*, int);
template bool inner<double>(Operand<double>, Index, Operand<double>, Index, Index, bool, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
