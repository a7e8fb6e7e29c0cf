// covariance_matrix and covariance_slopes: one row at a time, its partners in chunks of 64.
//
// The sums of a row have one order, whatever the number of threads. Sums over rows, for the slopes by
// the partners, are formed in blocks of rows that depend on the sizes only, and added block by block.
#include "gaussian_processes/covariance.h"

#include "common/elementary.h"
#include "common/isa.h"
#include "common/points.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
typedef Lanes<double>::loose Loose;
constexpr Index kWidth = Lanes<double>::width;
constexpr Index kVectors = 16;  // of a chunk of partners
constexpr Index kChunk = kVectors * kWidth;
constexpr Index kRowsPerTask = 8;
constexpr Index kMostBlocks = 64;
constexpr Index kMostSums = Index(1) << 22;  // numbers in the sums of all blocks
constexpr double kFarthest = 1e6;            // all functions are 0 there

// The partners v and b, coordinate by coordinate.
struct Partners {
    Coordinates<double> v, b;
    bool pack(const CovariancePairs& pairs) {
        return v.pack(pairs.v, pairs.m, pairs.q) && b.pack(pairs.b, pairs.m, pairs.r);
    }
    ~Partners() { std::free(v.data), std::free(b.data); }
};

static inline const Vector* vectors_of(const Coordinates<double>& points, Index k, Index first) {
    return reinterpret_cast<const Vector*>(points.data + k * points.stride + first);
}

// f and f' of squared distances D.
template <Shape shape>
static inline void values_of(Vector D, Vector& f, Vector& slope) {
    D = D < kFarthest ? D : fill<double>(kFarthest);
    if (shape == Shape::rbf) {
        f = exp_of_negative<double>(-0.5 * D);
        slope = -0.5 * f;
        return;
    }
    const Vector a = root_of<double>((shape == Shape::matern32 ? 3.0 : 5.0) * D);
    const Vector e = exp_of_negative<double>(-a);
    if (shape == Shape::matern32) {
        f = (1.0 + a) * e;
        slope = -1.5 * e;
    } else {
        f = (1.0 + a + a * a * (1.0 / 3.0)) * e;
        slope = (-5.0 / 6.0) * ((1.0 + a) * e);
    }
}

// f and f' of a row and the partners from `first` on.
template <Shape shape>
static inline void fill_chunk(const CovariancePairs& pairs, const Partners& partners, const double* u,
                              Index first, Index count, Vector* f, Vector* slope) {
    Vector D[kVectors];
    for (Index j = 0; j < count; ++j) D[j] = Vector{};
    for (Index k = 0; k < pairs.q; ++k) {
        const Vector* v = vectors_of(partners.v, k, first);
        for (Index j = 0; j < count; ++j) {
            const Vector d = u[k] - v[j];
            D[j] += d * d;
        }
    }
    for (Index j = 0; j < count; ++j) values_of<shape>(D[j], f[j], slope[j]);
}

static inline void fill_any(const CovariancePairs& pairs, const Partners& partners, const double* u,
                            Index first, Index count, Vector* f, Vector* slope) {
    if (pairs.shape == Shape::rbf) {
        fill_chunk<Shape::rbf>(pairs, partners, u, first, count, f, slope);
    } else if (pairs.shape == Shape::matern32) {
        fill_chunk<Shape::matern32>(pairs, partners, u, first, count, f, slope);
    } else if (pairs.shape == Shape::matern52) {
        fill_chunk<Shape::matern52>(pairs, partners, u, first, count, f, slope);
    } else {
        for (Index j = 0; j < count; ++j) f[j] = slope[j] = Vector{};
    }
}

static inline void store(const Vector* from, Index length, double* to) {
    const Index whole = length / kWidth;
    for (Index j = 0; j < whole; ++j) *reinterpret_cast<Loose*>(to + j * kWidth) = from[j];
    for (Index j = whole * kWidth; j < length; ++j) to[j] = from[j / kWidth][j % kWidth];
}

// The first partner of a row, at a whole vector.
static inline Index first_partner(const CovariancePairs& pairs, Index i) {
    return pairs.upper ? i / kWidth * kWidth : 0;
}

static void one_row(const CovariancePairs& pairs, const Partners& partners, Index i,
                    const CovarianceValues& out) {
    const double *u = pairs.u + i * pairs.q, *a = pairs.a + i * pairs.r;
    for (Index first = first_partner(pairs, i); first < pairs.m; first += kChunk) {
        const Index length = min_of(kChunk, pairs.m - first), count = ceil_div(length, kWidth);
        Vector f[kVectors], slope[kVectors];
        fill_any(pairs, partners, u, first, count, f, slope);
        for (Index j = 0; j < count; ++j) f[j] = pairs.bias + pairs.variance * f[j];
        for (Index k = 0; k < pairs.r; ++k) {
            const Vector* b = vectors_of(partners.b, k, first);
            for (Index j = 0; j < count; ++j) f[j] += a[k] * b[j];
        }
        store(f, length, out.values + i * pairs.m + first);
        if (!out.radial) continue;
        for (Index j = 0; j < count; ++j) slope[j] *= pairs.variance;
        store(slope, length, out.radial + i * pairs.m + first);
    }
}

// With `upper`, a pair i < j stands for itself and for its mirror image, and pairs i > j do not count.
static inline void count_twice(Vector* G, Index count, Index i, Index first) {
    for (Index j = 0; j < count; ++j) G[j] *= 2.0;
    for (Index j = first; j < i; ++j) G[0][j - first] = 0;
    if (i >= first) G[0][i - first] *= 0.5;
}

// The part of the sums of row i that belongs to one chunk; `columns` may be nullptr.
static inline void add_chunk(const CovariancePairs& pairs, const Partners& partners, Index i,
                             const double* g, Index first, Index length, double* sums,
                             double* columns) {
    const double *u = pairs.u + i * pairs.q, *a = pairs.a + i * pairs.r;
    const Index count = ceil_div(length, kWidth), q = pairs.q, r = pairs.r;
    Vector G[kVectors], f[kVectors], h[kVectors];
    const Index whole = length / kWidth;
    for (Index j = 0; j < whole; ++j) G[j] = *reinterpret_cast<const Loose*>(g + j * kWidth);
    if (whole < count) {
        G[whole] = Vector{};
        for (Index j = whole * kWidth; j < length; ++j) G[whole][j % kWidth] = g[j];
    }
    if (pairs.upper) count_twice(G, count, i, first);
    fill_any(pairs, partners, u, first, count, f, h);
    Vector values{}, total{};
    for (Index j = 0; j < count; ++j) {
        values += G[j] * f[j];
        total += G[j];
        h[j] *= G[j];
    }
    sums[0] += sum_of(values), sums[1] += sum_of(total);
    for (Index k = 0; k < q; ++k) {
        const Vector* v = vectors_of(partners.v, k, first);
        Vector* own = columns ? reinterpret_cast<Vector*>(columns + k * partners.v.stride + first) : nullptr;
        Vector pull{}, squares{};
        for (Index j = 0; j < count; ++j) {
            const Vector d = u[k] - v[j], hd = h[j] * d;
            pull += hd;
            squares += hd * d;
            if (own) own[j] += hd;
        }
        sums[2 + k] += sum_of(pull), sums[2 + q + k] += sum_of(squares);
    }
    for (Index k = 0; k < r; ++k) {
        const Vector* b = vectors_of(partners.b, k, first);
        Vector* own =
            columns ? reinterpret_cast<Vector*>(columns + (q + k) * partners.v.stride + first) : nullptr;
        Vector sum{};
        for (Index j = 0; j < count; ++j) {
            sum += G[j] * b[j];
            if (own) own[j] += G[j] * a[k];
        }
        sums[2 + 2 * q + k] += sum_of(sum);
    }
}

static void row_slopes(const CovariancePairs& pairs, const Partners& partners, const CovarianceSlopes& slopes,
                       Index i, double* columns) {
    const Index width = 2 + 2 * pairs.q + pairs.r;
    double* sums = slopes.by_row + i * width;
    for (Index k = 0; k < width; ++k) sums[k] = 0;
    for (Index first = first_partner(pairs, i); first < pairs.m; first += kChunk) {
        add_chunk(pairs, partners, i, slopes.g + i * pairs.m + first, first,
                  min_of(kChunk, pairs.m - first), sums, columns);
    }
}

}  // namespace

bool covariance_matrix(CovariancePairs pairs, CovarianceValues out, int n_threads) {
    Partners partners;
    if (!partners.pack(pairs)) return false;
    parallel(ceil_div(pairs.n, kRowsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(pairs.n, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) one_row(pairs, partners, i, out);
    });
    return true;
}

bool covariance_slopes(CovariancePairs pairs, CovarianceSlopes slopes, int n_threads) {
    Partners partners;
    if (!partners.pack(pairs)) return false;
    const Index width = pairs.q + pairs.r, stride = partners.v.stride, own = width * stride;
    Index rows = kRowsPerTask, blocks = ceil_div(pairs.n, rows);
    double* columns = nullptr;
    if (slopes.by_column && own) {
        const Index most = own * kMostBlocks <= kMostSums ? kMostBlocks : kMostSums / own;
        rows = ceil_div(pairs.n, min_of(pairs.n, most > 0 ? most : 1));
        blocks = ceil_div(pairs.n, rows);
        columns = allocate<double>(blocks * own);
        if (!columns) return false;
    }
    parallel(blocks, n_threads, [&](Index block, int) {
        double* sums = columns ? columns + block * own : nullptr;
        for (Index e = 0; sums && e < own; ++e) sums[e] = 0;
        const Index end = min_of(pairs.n, (block + 1) * rows);
        for (Index i = block * rows; i < end; ++i) row_slopes(pairs, partners, slopes, i, sums);
    });
    if (columns) {
        for (Index j = 0; j < pairs.m; ++j) {
            for (Index k = 0; k < width; ++k) {
                double sum = 0;
                for (Index block = 0; block < blocks; ++block) sum += columns[block * own + k * stride + j];
                slopes.by_column[j * width + k] = sum;
            }
        }
    }
    std::free(columns);
    return true;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
