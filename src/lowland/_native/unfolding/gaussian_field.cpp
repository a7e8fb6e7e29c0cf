// gaussian_field: sums of Gaussians and their gradients in one pass over the pairs.
//
// Four points share each load of a center. Centers are taken in chunks: first the Gaussians of a
// chunk, then the sums, coordinate by coordinate, with the totals in registers. The order of a sum
// depends neither on the other points nor on the number of threads; a group of fewer than four
// points is filled up with copies of its last one.
#include "unfolding/gaussian_field.h"

#include "common/elementary.h"
#include "common/isa.h"
#include "common/points.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
constexpr Index kWidth = Lanes<double>::width;
constexpr int kPoints = 4;
constexpr Index kVectors = 16;  // of a chunk of centers
constexpr Index kGroupsPerTask = 4;

struct Chunk {
    Vector gauss[kPoints][kVectors];  // k_ij
    Vector along[kPoints][kVectors];  // k_ij (b_i . w_j)
};

static inline const Vector* vectors_of(const Coordinates<double>& points, Index k, Index first) {
    return reinterpret_cast<const Vector*>(points.data + k * points.stride) + first;
}

// The Gaussians of the centers beyond the last one are 0.
static inline void clear_rest(Vector* gauss, Index first, Index count, Index m) {
    for (Index lane = m - first * kWidth; lane < count * kWidth; ++lane) {
        gauss[lane / kWidth][lane % kWidth] = 0;
    }
}

template <bool kPulls>
static void fill_chunk(const GaussianField& field, const Coordinates<double>& v,
                       const Coordinates<double>& w, const double* const* u, const double* const* b,
                       Index first, Index count, Chunk& chunk) {
    for (Index j = 0; j < count; ++j) {
        Vector square[kPoints] = {}, dot[kPoints] = {};
        for (Index k = 0; k < field.d; ++k) {
            const Vector center = vectors_of(v, k, first)[j];
            for (int i = 0; i < kPoints; ++i) {
                const Vector gap = u[i][k] - center;
                square[i] += gap * gap;
            }
            if (kPulls) {
                const Vector weight = vectors_of(w, k, first)[j];
                for (int i = 0; i < kPoints; ++i) dot[i] += b[i][k] * weight;
            }
        }
        for (int i = 0; i < kPoints; ++i) {
            chunk.gauss[i][j] = exp_of_negative<double>(-0.5 * square[i]);
            if (kPulls) chunk.along[i][j] = dot[i];
        }
    }
    for (int i = 0; i < kPoints; ++i) {
        clear_rest(chunk.gauss[i], first, count, field.m);
        if (kPulls) {
            for (Index j = 0; j < count; ++j) chunk.along[i][j] *= chunk.gauss[i][j];
        }
    }
}

// totals[i] += sum_j factors_ij points_jk of one chunk, for each coordinate k.
static inline void add_products(const Vector (*factors)[kVectors], const Coordinates<double>& points,
                                Index d, Index first, Index count, double* totals) {
    for (Index k = 0; k < d; ++k) {
        const Vector* column = vectors_of(points, k, first);
        Vector sum[kPoints] = {};
        for (Index j = 0; j < count; ++j) {
            for (int i = 0; i < kPoints; ++i) sum[i] += factors[i][j] * column[j];
        }
        for (int i = 0; i < kPoints; ++i) totals[i * d + k] += sum_of(sum[i]);
    }
}

template <bool kPulls>
static void one_group(const GaussianField& field, const Coordinates<double>& v,
                      const Coordinates<double>& w, Index group, double* totals, double* sums,
                      double* pulls) {
    const Index d = field.d, begin = group * kPoints, vectors = v.stride / kWidth;
    const double *u[kPoints], *b[kPoints];
    for (int i = 0; i < kPoints; ++i) {
        const Index point = min_of(begin + i, field.n - 1);
        u[i] = field.u + point * d;
        b[i] = kPulls ? field.b + point * d : nullptr;
    }
    double *fields = totals, *moments = totals + kPoints * d, mass[kPoints] = {};
    for (Index e = 0; e < (kPulls ? 2 : 1) * kPoints * d; ++e) totals[e] = 0;
    Chunk chunk;
    for (Index first = 0; first < vectors; first += kVectors) {
        const Index count = min_of(kVectors, vectors - first);
        fill_chunk<kPulls>(field, v, w, u, b, first, count, chunk);
        add_products(chunk.gauss, w, d, first, count, fields);
        if (kPulls) {
            add_products(chunk.along, v, d, first, count, moments);
            for (int i = 0; i < kPoints; ++i) {
                Vector sum{};
                for (Index j = 0; j < count; ++j) sum += chunk.along[i][j];
                mass[i] += sum_of(sum);
            }
        }
    }
    for (int i = 0; i < kPoints && begin + i < field.n; ++i) {
        for (Index k = 0; k < d; ++k) {
            const Index e = (begin + i) * d + k;
            sums[e] = fields[i * d + k];
            if (kPulls) pulls[e] = moments[i * d + k] - mass[i] * u[i][k];
        }
    }
}

template <bool kPulls>
static void all_groups(const GaussianField& field, const Coordinates<double>& v,
                       const Coordinates<double>& w, double* totals, double* sums, double* pulls,
                       int n_threads) {
    const Index groups = ceil_div(field.n, kPoints);
    parallel(ceil_div(groups, kGroupsPerTask), n_threads, [&](Index task, int slot) {
        double* own = totals + slot * 2 * kPoints * field.d;
        const Index end = min_of(groups, (task + 1) * kGroupsPerTask);
        for (Index group = task * kGroupsPerTask; group < end; ++group) {
            one_group<kPulls>(field, v, w, group, own, sums, pulls);
        }
    });
}

}  // namespace

bool gaussian_field(GaussianField field, double* sums, double* pulls, int n_threads) {
    Coordinates<double> v, w;
    double* totals = allocate<double>(n_threads * 2 * kPoints * field.d);
    const bool enough = totals && v.pack(field.v, field.m, field.d) && w.pack(field.w, field.m, field.d);
    if (enough) {
        const auto run = field.b ? all_groups<true> : all_groups<false>;
        run(field, v, w, totals, sums, pulls, n_threads);
    }
    std::free(v.data), std::free(w.data), std::free(totals);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
