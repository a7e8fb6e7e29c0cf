// gtm_sums, gtm_posteriors: the E step over blocks of rows, and the sums of the M step with it.
//
// A row becomes the terms (x, 1) and a node beta (y, -y.y / 2); with missing values (x or 0, known)
// and beta (y, -y^2 / 2), column by column. So one panel product gives -beta d / 2 up to a number of
// the row, and the product of posteriors and terms gives the sums and the masses. All is computed in
// double. Posteriors below exp(-kCutoff) of the largest are 0, and left out of the sums: they are
// less than rounding. The sums of a fixed number of chunks of rows are added in their order.
#include "topographic/gtm.h"

#include <math.h>

#include "common/elementary.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
constexpr Index kWidth = Lanes<double>::width;
constexpr Index kPanel = panel_width<double>;
constexpr Index kBlock = 96;  // rows whose posteriors are held at a time
constexpr double kCutoff = 42;
constexpr Index kChunks = 64;            // of rows, at most
constexpr Index kSumBytes = 64'000'000;  // of the sums of all chunks, unless there are four
static_assert(kBlock % kRows == 0, "tiles must cover a block");

static inline Index padded(Index n, Index to) { return ceil_div(n, to) * to; }

// The nodes in panels: panel j holds kPanel nodes, term by term.
struct Nodes {
    double* data = nullptr;
    Index count, terms, n_panels, stride;  // stride: numbers of one row of posteriors

    template <class T>
    bool pack(const TopographicMixture<T>& m) {
        count = m.n_nodes;
        terms = m.missing ? 2 * m.p : m.p + 1;
        n_panels = ceil_div(count, kPanel);
        stride = n_panels * kPanel;
        data = allocate<double>(stride * terms);
        if (!data) return false;
        for (Index k = 0; k < stride; ++k) {
            double* out = data + k / kPanel * terms * kPanel + k % kPanel;
            if (k >= count) {
                for (Index t = 0; t < terms; ++t) out[t * kPanel] = 0;
                continue;
            }
            const double* y = m.nodes + k * m.p;
            double square = 0;
            for (Index j = 0; j < m.p; ++j) {
                out[j * kPanel] = m.beta * y[j];
                if (m.missing) out[(m.p + j) * kPanel] = -0.5 * m.beta * y[j] * y[j];
                square += y[j] * y[j];
            }
            if (!m.missing) out[m.p * kPanel] = -0.5 * m.beta * square;
        }
        return true;
    }
};

// The terms of a block of rows (kBlock x stride) and their posteriors (kBlock x nodes.stride).
struct Block {
    double* terms;
    double* posteriors;
    double squares[kBlock];
};

template <class T>
static void fill_terms(const TopographicMixture<T>& m, Index first, Index rows, Index stride,
                       Block& block) {
    for (Index i = 0; i < kBlock; ++i) {
        double* out = block.terms + i * stride;
        for (Index t = 0; t < stride; ++t) out[t] = 0;
        block.squares[i] = 0;
        if (i >= rows) continue;
        const T* x = m.x + (first + i) * m.p;
        double square = 0;
        for (Index j = 0; j < m.p; ++j) {
            const double value = static_cast<double>(x[j]) - m.mean[j];
            const bool known = !m.missing || !(value != value);
            out[j] = known ? value : 0;
            if (m.missing) out[m.p + j] = known;
            square += out[j] * out[j];
        }
        if (!m.missing) out[m.p] = 1;
        block.squares[i] = square;
    }
}

// Products of all rows of the block and all nodes.
static void fill_scores(const Nodes& nodes, Index rows, Index stride, Block& block) {
    for (Index e = 0; e < kBlock * nodes.stride; ++e) block.posteriors[e] = 0;
    for (Index t = 0; t < nodes.terms; t += kDepth) {
        const Index depth = min_of(kDepth, nodes.terms - t);
        for (Index j = 0; j < nodes.n_panels; ++j) {
            const double* panel = nodes.data + (j * nodes.terms + t) * kPanel;
            for (Index i = 0; i < rows; i += kRows) {
                tile<double, kVectors>(depth, All(), block.terms + i * stride + t, stride, 1, panel,
                                       kPanel, block.posteriors + i * nodes.stride + j * kPanel,
                                       nodes.stride);
            }
        }
    }
}

// Scores of one row to posteriors; returns the log of the sum of exp(score).
static double normalize(double* row, const Nodes& nodes) {
    double top = row[0];
    bool fine = true;
    for (Index k = 0; k < nodes.count; ++k) {
        top = row[k] > top ? row[k] : top;
        fine &= row[k] - row[k] == 0;
    }
    if (!fine) {  // of values that overflow: NaN reports it to the caller
        for (Index k = 0; k < nodes.stride; ++k) row[k] = static_cast<double>(NAN);
        return static_cast<double>(NAN);
    }
    for (Index k = nodes.count; k < nodes.stride; ++k) row[k] = -static_cast<double>(INFINITY);
    Vector total{};
    for (Index k = 0; k < nodes.stride; k += kWidth) {
        Vector& here = *reinterpret_cast<Vector*>(row + k);
        const Vector score = here - top;
        const auto counts = score > -kCutoff;
        if (any_lane(counts)) {
            const Vector value = exp_of_negative<double>(score);
            here = counts ? value : Vector{};
            total += here;
        } else {
            here = Vector{};
        }
    }
    const double sum = sum_of(total);
    const double inverse = 1 / sum;
    for (Index k = 0; k < nodes.stride; k += kWidth) *reinterpret_cast<Vector*>(row + k) *= inverse;
    return top + log(sum);
}

// The E step of rows first .. first + rows.
template <class T>
static void posteriors_of(const TopographicMixture<T>& m, const Nodes& nodes, Index first, Index rows,
                          Index stride, Block& block, double* logs) {
    fill_terms(m, first, rows, stride, block);
    fill_scores(nodes, rows, stride, block);
    for (Index i = 0; i < rows; ++i) {
        logs[first + i] =
            normalize(block.posteriors + i * nodes.stride, nodes) - 0.5 * m.beta * block.squares[i];
    }
}

// totals (nodes.stride x stride) += posteriors^T terms, over the rows that count for four nodes.
static void add_block(const Nodes& nodes, Index rows, Index stride, const Block& block,
                      double* totals) {
    std::uint16_t counting[kBlock];
    for (Index k = 0; k < nodes.count; k += kRows) {
        Index used = 0;
        for (Index i = 0; i < rows; ++i) {
            const double* r = block.posteriors + i * nodes.stride + k;
            counting[used] = static_cast<std::uint16_t>(i);
            used += !(r[0] == 0 && r[1] == 0 && r[2] == 0 && r[3] == 0);
        }
        if (used == 0) continue;
        for (Index t = 0; t < stride; t += kPanel) {
            const Index vectors = min_of(kVectors, (stride - t) / kWidth);
            tile_of<double>(vectors, used, Listed{counting}, block.posteriors + k, 1, nodes.stride,
                            block.terms + t, stride, totals + k * stride + t, stride);
        }
    }
}

static_assert(kRows == 4, "add_block looks at four nodes");

// Memory of all slots, at one address each.
struct Workspace {
    double* data = nullptr;
    Index terms, posteriors;
    bool reserve(Index stride, const Nodes& nodes, int n_threads) {
        terms = kBlock * stride, posteriors = kBlock * nodes.stride;
        data = allocate<double>(n_threads * (terms + posteriors));
        return data;
    }
    Block block(int slot) const {
        Block own;
        own.terms = data + slot * (terms + posteriors);
        own.posteriors = own.terms + terms;
        return own;
    }
};

static Index chunk_rows(Index n, Index n_sums) {
    Index chunks = kSumBytes / (n_sums * static_cast<Index>(sizeof(double)));
    chunks = chunks < 4 ? 4 : min_of(chunks, kChunks);
    return padded(ceil_div(n, chunks), kBlock);
}

}  // namespace

template <class T>
bool gtm_sums(const TopographicMixture<T>& m, double* logs, double* sums, double* masses,
              int n_threads) {
    Nodes nodes;
    Workspace workspace;
    if (!nodes.pack(m)) return false;
    const Index stride = padded(nodes.terms, kWidth), n_sums = nodes.stride * stride;
    const Index per_chunk = chunk_rows(m.n, n_sums), chunks = ceil_div(m.n, per_chunk);
    double* totals = allocate<double>(chunks * n_sums);
    const bool enough = workspace.reserve(stride, nodes, n_threads) && totals;
    if (enough) {
        parallel(chunks, n_threads, [&](Index chunk, int slot) {
            Block block = workspace.block(slot);
            double* own = totals + chunk * n_sums;
            for (Index e = 0; e < n_sums; ++e) own[e] = 0;
            const Index end = min_of(m.n, (chunk + 1) * per_chunk);
            for (Index first = chunk * per_chunk; first < end; first += kBlock) {
                const Index rows = min_of(kBlock, end - first);
                posteriors_of(m, nodes, first, rows, stride, block, logs);
                add_block(nodes, rows, stride, block, own);
            }
        });
        const Index n_masses = nodes.terms - m.p;
        parallel(nodes.count, n_threads, [&](Index k, int) {
            for (Index t = 0; t < nodes.terms; ++t) {
                double total = 0;
                for (Index c = 0; c < chunks; ++c) total += totals[c * n_sums + k * stride + t];
                if (t < m.p) {
                    sums[k * m.p + t] = total;
                } else {
                    masses[k * n_masses + t - m.p] = total;
                }
            }
        });
    }
    std::free(nodes.data), std::free(totals), std::free(workspace.data);
    return enough;
}

template <class T>
bool gtm_posteriors(const TopographicMixture<T>& m, double* logs, double* posteriors, int n_threads) {
    Nodes nodes;
    Workspace workspace;
    if (!nodes.pack(m)) return false;
    const Index stride = padded(nodes.terms, kWidth);
    const bool enough = workspace.reserve(stride, nodes, n_threads);
    if (enough) {
        parallel(ceil_div(m.n, kBlock), n_threads, [&](Index task, int slot) {
            Block block = workspace.block(slot);
            const Index first = task * kBlock, rows = min_of(kBlock, m.n - first);
            posteriors_of(m, nodes, first, rows, stride, block, logs);
            for (Index i = 0; i < rows; ++i) {
                const double* from = block.posteriors + i * nodes.stride;
                double* to = posteriors + (first + i) * nodes.count;
                for (Index k = 0; k < nodes.count; ++k) to[k] = from[k];
            }
        });
    }
    std::free(nodes.data), std::free(workspace.data);
    return enough;
}

#define LOWLAND_INSTANTIATE_GTM(T)                                                                  \
    template bool gtm_sums<T>(const TopographicMixture<T>&, double*, double*, double*, int);        \
    template bool gtm_posteriors<T>(const TopographicMixture<T>&, double*, double*, int);

LOWLAND_INSTANTIATE_GTM(float)
LOWLAND_INSTANTIATE_GTM(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
