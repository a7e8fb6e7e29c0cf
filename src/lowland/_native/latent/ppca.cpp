// ppca_sums, ppca_posteriors: posteriors of rows with missing values, and the sums of the M step.
//
// Few values are missing as a rule, so W_o^T W_o is W^T W minus the outer products of the missing
// columns; in a row whose missing columns hold more than half of |W|^2, known columns are summed
// instead, which no cancellation can spoil. The sums of a column are treated alike. So a step costs
// two products with the table and q^2 operations per missing value.
//
// Rows are processed in chunks. First the rows of a chunk, each by one task, leave their posteriors
// in a buffer; then tasks of eight columns each add the whole chunk to their sums. So each sum has
// one order, and no thread needs separate sums.
#include "latent/ppca.h"

#include <math.h>

#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
constexpr Index kWidth = Lanes<double>::width;
constexpr Index kTask = 32;              // rows of a task
constexpr Index kColumns = 8;            // columns of a task: a cache line of the table
constexpr Index kChunkBytes = 6'000'000;  // of the buffers of a chunk
constexpr double kLogTwoPi = 1.8378770664093454836;
static_assert(kTask % kRows == 0 && kColumns % kRows == 0, "tiles must cover a task");

static inline Index padded(Index n, Index to) { return ceil_div(n, to) * to; }
static inline Index triangle(Index n) { return n * (n + 1) / 2; }

// y += a x, over n numbers
static inline void add_to(double* y, double a, const double* x, Index n) {
    for (Index k = 0; k < n; ++k) y[k] += a * x[k];
}

// The posterior of one row is computed in these; all matrices are q x q, lower triangles only.
struct Factors {
    double *gram, *inverse, *covariance, *column;
    double log_determinant;
};

// The model in the form that rows need: padded weights, squares of their rows, the factors of a
// complete row.
struct Prepared {
    double* data = nullptr;
    double *weights, *lengths, *whole;  // p_stride x q_stride, p, q x q
    Index p, q, q_stride, p_stride;
    double noise, log_noise, length;
    Factors complete;

    static Index factor_size(Index q) { return 3 * q * q + q; }

    static Factors factors_at(double* at, Index q) {
        return {at, at + q * q, at + 2 * q * q, at + 3 * q * q, 0};
    }

    template <class T>
    bool prepare(const LatentGaussian<T>& m) {
        p = m.p, q = m.q, noise = m.noise, log_noise = log(m.noise);
        q_stride = padded(q, kWidth), p_stride = padded(p, kColumns);
        data = allocate<double>(p_stride * q_stride + p + q * q + factor_size(q));
        if (!data) return false;
        weights = data, lengths = weights + p_stride * q_stride, whole = lengths + p;
        complete = factors_at(whole + q * q, q);
        for (Index e = 0; e < p_stride * q_stride; ++e) weights[e] = 0;
        for (Index e = 0; e < q * q; ++e) whole[e] = 0;
        length = 0;
        for (Index j = 0; j < p; ++j) {
            const double* w = m.weights + j * q;
            lengths[j] = 0;
            for (Index a = 0; a < q; ++a) {
                weights[j * q_stride + a] = w[a];
                lengths[j] += w[a] * w[a];
                add_to(whole + a * q, w[a], w, a + 1);
            }
            length += lengths[j];
        }
        for (Index e = 0; e < q * q; ++e) complete.gram[e] = whole[e];
        factor(complete);
        return true;
    }

    // gram -> L^-1 (inverse), C = noise M^-1 (covariance) and log |M|, where M = gram + noise I = L L^T.
    // All loops add multiples of rows, in one order whatever the vector width.
    void factor(Factors& f) const {
        double* M = f.gram;
        double log_det = 0;
        for (Index a = 0; a < q; ++a) M[a * q + a] += noise;
        for (Index k = 0; k < q; ++k) {
            const double root = sqrt(M[k * q + k]), scale = 1 / root;
            log_det += log(root);
            M[k * q + k] = root;
            for (Index a = k + 1; a < q; ++a) f.column[a] = M[a * q + k] *= scale;
            for (Index a = k + 1; a < q; ++a) {
                add_to(M + a * q + k + 1, -f.column[a], f.column + k + 1, a - k);
            }
        }
        f.log_determinant = 2 * log_det;
        for (Index a = 0; a < q; ++a) {
            double* row = f.inverse + a * q;
            for (Index b = 0; b <= a; ++b) row[b] = a == b;
            for (Index k = 0; k < a; ++k) add_to(row, -M[a * q + k], f.inverse + k * q, k + 1);
            const double scale = 1 / M[a * q + a];
            for (Index b = 0; b <= a; ++b) row[b] *= scale;
            for (Index b = 0; b <= a; ++b) f.covariance[a * q + b] = 0;
        }
        for (Index k = 0; k < q; ++k) {
            const double* row = f.inverse + k * q;
            for (Index a = 0; a <= k; ++a) {
                add_to(f.covariance + a * q, noise * row[a], row, a + 1);
            }
        }
    }

    // gram += sign sum_j w_j w_j^T over the listed columns
    void add_outer(double* gram, double sign, const std::int32_t* columns, Index count) const {
        Index i = 0;
        for (; i + 4 <= count; i += 4) {
            const double* w0 = weights + columns[i] * q_stride;
            const double* w1 = weights + columns[i + 1] * q_stride;
            const double* w2 = weights + columns[i + 2] * q_stride;
            const double* w3 = weights + columns[i + 3] * q_stride;
            for (Index a = 0; a < q; ++a) {
                const double s0 = sign * w0[a], s1 = sign * w1[a], s2 = sign * w2[a], s3 = sign * w3[a];
                double* row = gram + a * q;
                for (Index b = 0; b <= a; ++b) {
                    row[b] += (s0 * w0[b] + s1 * w1[b]) + (s2 * w2[b] + s3 * w3[b]);
                }
            }
        }
        for (; i < count; ++i) {
            const double* w = weights + columns[i] * q_stride;
            for (Index a = 0; a < q; ++a) add_to(gram + a * q, sign * w[a], w, a + 1);
        }
    }
};

// What a task needs: factors of a row, a list of columns, W^T r of its rows.
struct Scratch {
    Factors factors;
    double* scores;  // kTask x q_stride
    std::int32_t* columns;

    static Index size(const Prepared& m) {
        return padded(Prepared::factor_size(m.q), kWidth) + kTask * m.q_stride + m.p;
    }
    static Scratch at(double* data, const Prepared& m) {
        Scratch own;
        own.scores = data;
        own.factors = Prepared::factors_at(data + kTask * m.q_stride, m.q);
        own.columns = reinterpret_cast<std::int32_t*>(
            data + kTask * m.q_stride + padded(Prepared::factor_size(m.q), kWidth));
        return own;
    }
};

// r = x - mean of a row, 0 where unknown and up to p_stride; its square and the number of gaps.
template <class T>
static double center_row(const T* x, const double* mean, const Prepared& m, double* r, Index& gaps) {
    std::int64_t missing = 0;
    for (Index j = 0; j < m.p; ++j) {
        const bool gap = x[j] != x[j];
        r[j] = gap ? 0 : static_cast<double>(x[j]) - mean[j];
        missing += gap;
    }
    for (Index j = m.p; j < m.p_stride; ++j) r[j] = 0;
    Vector square{};
    for (Index j = 0; j < m.p_stride; j += kWidth) {
        const Vector value = *reinterpret_cast<const Vector*>(r + j);
        square += value * value;
    }
    gaps = missing;
    return sum_of(square);
}

// W_o^T W_o of a row
template <class T>
static void fill_gram(const T* x, const Prepared& m, const Scratch& own, Index gaps) {
    Index count = 0;
    double lost = 0;
    for (Index j = 0; j < m.p; ++j) {
        const bool gap = x[j] != x[j];
        own.columns[count] = static_cast<std::int32_t>(j);
        count += gap;
        lost += gap ? m.lengths[j] : 0;
    }
    const bool few = 2 * gaps <= m.p && 2 * lost <= m.length;
    double* gram = own.factors.gram;
    for (Index e = 0; e < m.q * m.q; ++e) gram[e] = few ? m.whole[e] : 0;
    if (!few) {
        count = 0;
        for (Index j = 0; j < m.p; ++j) {
            own.columns[count] = static_cast<std::int32_t>(j);
            count += x[j] == x[j];
        }
    }
    m.add_outer(gram, few ? -1 : 1, own.columns, count);
}

// The posterior mean (q numbers) of a row whose W^T r is given; returns log p, and the factors that
// hold C.
template <class T>
static double posterior(const T* x, const Prepared& m, Scratch& own, const double* scores,
                        double square, Index gaps, double* mean, const Factors*& found) {
    const Index q = m.q, n_known = m.p - gaps;
    found = &m.complete;
    if (gaps) {
        fill_gram(x, m, own, gaps);
        m.factor(own.factors);
        found = &own.factors;
    }
    double explained = 0;
    for (Index a = 0; a < q; ++a) mean[a] = 0;
    for (Index a = 0; a < q; ++a) {
        const double* row = found->inverse + a * q;
        double whitened = 0;
        for (Index b = 0; b <= a; ++b) whitened += row[b] * scores[b];
        explained += whitened * whitened;
        add_to(mean, whitened, row, a + 1);
    }
    return -0.5 * (n_known * kLogTwoPi + (n_known - q) * m.log_noise + found->log_determinant +
                   (square - explained) / m.noise);
}

// scores (kTask x q_stride) = r W, for the first rows of r
static void fill_scores(const Prepared& m, const double* r, Index rows, double* scores) {
    for (Index e = 0; e < kTask * m.q_stride; ++e) scores[e] = 0;
    for (Index t = 0; t < m.p; t += kDepth) {
        const Index depth = min_of(kDepth, m.p - t);
        for (Index a = 0; a < m.q_stride; a += kVectors * kWidth) {
            const Index vectors = min_of(kVectors, (m.q_stride - a) / kWidth);
            for (Index i = 0; i < rows; i += kRows) {
                tile_of<double>(vectors, depth, All(), r + i * m.p_stride + t, m.p_stride, 1,
                                m.weights + t * m.q_stride + a, m.q_stride,
                                scores + i * m.q_stride + a, m.q_stride);
            }
        }
    }
}

// The rows of a chunk: r, their moments E[u u^T] as triangles, u itself, and which values their
// column counts.
struct Chunk {
    double* data = nullptr;
    double *r, *moments, *u;
    std::uint8_t* counted;
    Index rows, moment_stride, u_stride;

    bool reserve(const Prepared& m, Index n) {
        moment_stride = padded(triangle(m.q + 1), kWidth), u_stride = padded(m.q + 1, kWidth);
        const Index per_row = m.p_stride + moment_stride + u_stride + m.p_stride / 8;
        rows = kChunkBytes / (per_row * static_cast<Index>(sizeof(double)));
        rows = padded(min_of(n, rows < 2 * kTask ? 2 * kTask : rows), kTask);
        data = allocate<double>(rows * per_row);
        if (!data) return false;
        r = data, moments = r + rows * m.p_stride, u = moments + rows * moment_stride;
        counted = reinterpret_cast<std::uint8_t*>(u + rows * u_stride);
        return true;
    }
};

// Sums of all columns, padded.
struct Totals {
    double* data = nullptr;
    double *squares, *products, *grams, *total;
    bool reserve(const Prepared& m, const Chunk& c) {
        const Index n = m.p_stride * (1 + c.u_stride + c.moment_stride) + c.moment_stride;
        data = allocate<double>(n);
        if (!data) return false;
        for (Index e = 0; e < n; ++e) data[e] = 0;
        squares = data, products = squares + m.p_stride, grams = products + m.p_stride * c.u_stride;
        total = grams + m.p_stride * c.moment_stride;
        return true;
    }
};

static inline void add_vectors(double* to, const double* from, Index n) {
    for (Index e = 0; e < n; e += kWidth) {
        *reinterpret_cast<Vector*>(to + e) += *reinterpret_cast<const Vector*>(from + e);
    }
}

// Rows `first` .. of the table, which are rows `at` .. of the chunk.
template <class T>
static void fill_rows(const LatentGaussian<T>& model, const Prepared& m, const std::uint8_t* rare,
                      Index first, Index at, Index rows, const Chunk& c, Scratch& own, double* logs) {
    double squares[kTask];
    Index gaps[kTask];
    double* r = c.r + at * m.p_stride;
    for (Index i = 0; i < kTask; ++i) {
        std::uint8_t* counted = c.counted + (at + i) * m.p_stride;
        for (Index j = 0; j < m.p_stride; ++j) counted[j] = 0;
        if (i >= rows) {
            for (Index j = 0; j < m.p_stride; ++j) r[i * m.p_stride + j] = 0;
            continue;
        }
        const T* x = model.x + (first + i) * m.p;
        squares[i] = center_row(x, model.mean, m, r + i * m.p_stride, gaps[i]);
        for (Index j = 0; j < m.p; ++j) counted[j] = (x[j] != x[j]) != (rare[j] != 0);
    }
    fill_scores(m, r, kTask, own.scores);
    for (Index i = 0; i < kTask; ++i) {
        double* u = c.u + (at + i) * c.u_stride;
        double* moments = c.moments + (at + i) * c.moment_stride;
        for (Index e = 0; e < c.u_stride; ++e) u[e] = 0;
        for (Index e = 0; e < c.moment_stride; ++e) moments[e] = 0;
        if (i >= rows) continue;
        const Factors* found;
        logs[first + i] = posterior(model.x + (first + i) * m.p, m, own, own.scores + i * m.q_stride,
                                    squares[i], gaps[i], u, found);
        u[m.q] = 1;
        double* out = moments;
        for (Index a = 0; a < m.q; ++a) {
            const double* C = found->covariance + a * m.q;
            for (Index b = 0; b <= a; ++b) out[b] = C[b] + u[a] * u[b];
            out += a + 1;
        }
        for (Index a = 0; a <= m.q; ++a) out[a] = u[a];
    }
}

// Adds the chunk to the sums of columns `first` .. first + kColumns.
static void add_columns(const Prepared& m, const Chunk& c, Index first, Index rows, Totals& t) {
    for (Index a = 0; a < c.u_stride; a += kVectors * kWidth) {
        const Index vectors = min_of(kVectors, (c.u_stride - a) / kWidth);
        for (Index j = first; j < first + kColumns; j += kRows) {
            tile_of<double>(vectors, rows, All(), c.r + j, 1, m.p_stride, c.u + a, c.u_stride,
                            t.products + j * c.u_stride + a, c.u_stride);
        }
    }
    for (Index i = 0; i < rows; ++i) {
        const double* r = c.r + i * m.p_stride + first;
        for (Index j = 0; j < kColumns; ++j) t.squares[first + j] += r[j] * r[j];
        const std::uint8_t* counted = c.counted + i * m.p_stride + first;
        std::uint64_t some;
        __builtin_memcpy(&some, counted, sizeof some);
        if (!some) continue;
        for (Index j = 0; j < kColumns; ++j) {
            if (!counted[j]) continue;
            add_vectors(t.grams + (first + j) * c.moment_stride, c.moments + i * c.moment_stride,
                        c.moment_stride);
        }
    }
}

static_assert(kColumns == sizeof(std::uint64_t), "add_columns looks at eight marks at a time");

}  // namespace

template <class T>
bool ppca_sums(const LatentGaussian<T>& model, const std::uint8_t* rare, double* logs,
               RegressionSums sums, int n_threads) {
    Prepared m;
    Chunk c;
    Totals t;
    double* scratch = nullptr;
    bool enough = m.prepare(model) && c.reserve(m, model.n) && t.reserve(m, c);
    const Index size = enough ? padded(Scratch::size(m), 8) : 0;
    if (enough) scratch = allocate<double>(n_threads * size);
    enough = enough && scratch;
    if (enough) {
        const Index n_blocks = m.p_stride / kColumns;
        for (Index first = 0; first < model.n; first += c.rows) {
            const Index rows = min_of(c.rows, model.n - first);
            parallel(ceil_div(rows, kTask), n_threads, [&](Index task, int slot) {
                Scratch own = Scratch::at(scratch + slot * size, m);
                const Index at = task * kTask, some = min_of(kTask, rows - at);
                fill_rows(model, m, rare, first + at, at, some, c, own, logs);
            });
            parallel(n_blocks + 1, n_threads, [&](Index task, int) {
                if (task < n_blocks) {
                    add_columns(m, c, task * kColumns, rows, t);
                    return;
                }
                for (Index i = 0; i < rows; ++i) {
                    add_vectors(t.total, c.moments + i * c.moment_stride, c.moment_stride);
                }
            });
        }
        const Index n_moments = triangle(m.q + 1);
        for (Index e = 0; e < n_moments; ++e) sums.total[e] = t.total[e];
        for (Index j = 0; j < m.p; ++j) {
            sums.squares[j] = t.squares[j];
            for (Index a = 0; a <= m.q; ++a) {
                sums.products[j * (m.q + 1) + a] = t.products[j * c.u_stride + a];
            }
            const double* counted = t.grams + j * c.moment_stride;
            double* out = sums.grams + j * n_moments;
            for (Index e = 0; e < n_moments; ++e) {
                out[e] = rare[j] ? counted[e] : t.total[e] - counted[e];
            }
        }
    }
    std::free(m.data), std::free(c.data), std::free(t.data), std::free(scratch);
    return enough;
}

template <class T>
bool ppca_posteriors(const LatentGaussian<T>& model, double* places, double* logs,
                     double* covariances, int n_threads) {
    Prepared m;
    double* scratch = nullptr;
    bool enough = m.prepare(model);
    const Index own_size = enough ? padded(Scratch::size(m), 8) : 0;
    const Index size = enough ? own_size + kTask * m.p_stride : 0;
    if (enough) scratch = allocate<double>(n_threads * size);
    enough = enough && scratch;
    if (enough) {
        parallel(ceil_div(model.n, kTask), n_threads, [&](Index task, int slot) {
            Scratch own = Scratch::at(scratch + slot * size, m);
            double* r = scratch + slot * size + own_size;
            const Index first = task * kTask, rows = min_of(kTask, model.n - first);
            double squares[kTask];
            Index gaps[kTask];
            for (Index i = 0; i < kTask; ++i) {
                double* row = r + i * m.p_stride;
                const T* x = model.x + (first + i) * m.p;
                if (i < rows) {
                    squares[i] = center_row(x, model.mean, m, row, gaps[i]);
                } else {
                    for (Index j = 0; j < m.p_stride; ++j) row[j] = 0;
                }
            }
            fill_scores(m, r, kTask, own.scores);
            for (Index i = 0; i < rows; ++i) {
                const Factors* found;
                logs[first + i] =
                    posterior(model.x + (first + i) * m.p, m, own, own.scores + i * m.q_stride,
                              squares[i], gaps[i], places + (first + i) * m.q, found);
                if (!covariances) continue;
                double* out = covariances + (first + i) * triangle(m.q);
                for (Index a = 0; a < m.q; ++a) {
                    for (Index b = 0; b <= a; ++b) *out++ = found->covariance[a * m.q + b];
                }
            }
        });
    }
    std::free(m.data), std::free(scratch);
    return enough;
}

#define LOWLAND_INSTANTIATE_PPCA(T)                                                              \
    template bool ppca_sums<T>(const LatentGaussian<T>&, const std::uint8_t*, double*,           \
                               RegressionSums, int);                                             \
    template bool ppca_posteriors<T>(const LatentGaussian<T>&, double*, double*, double*, int);

LOWLAND_INSTANTIATE_PPCA(float)
LOWLAND_INSTANTIATE_PPCA(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
