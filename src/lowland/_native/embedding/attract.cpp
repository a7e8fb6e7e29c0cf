// attract: the pull of neighbors,  sum_j p_ij (z_i - y_j) / (1 + r_ij^2 / v),  and on request
// sums_i = (sum_j p_ij v log(1 + r_ij^2 / v),  sum_j p_ij / (1 + r_ij^2 / v)): its potential, of which
// the pull is half the gradient, and its stiffness. The z are the y themselves, or new points.
//
// Rows have some dozens of edges. A vector's worth of them is taken at a time: the only slow part is
// to fetch the neighbors' coordinates, so points are loaded whole and turned in registers.
#include "common/elementary.h"
#include "embedding/embedding.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace lowland {
namespace LOWLAND_ISA {

// Numbers per point in memory: three coordinates are padded to four, so that one load takes a point.
template <class T, int D>
constexpr Index stride_of = (D == 3 && sizeof(T) == 4) ? 4 : D;

// x[k][lane] = coordinate k of the point columns[lane].
template <class T, int D>
static inline void load_points(const T* y, const std::int32_t* columns,
                               typename Lanes<T>::vector* x) {
    constexpr Index S = stride_of<T, D>;
#ifdef __AVX2__
    if constexpr (sizeof(T) == 4 && D == 2) {
        const double* points = reinterpret_cast<const double*>(y);  // a point is as wide as one
        const auto two = [&](int a) {  // two columns by one load: loads are what this loop waits for
            std::uint64_t pair;
            __builtin_memcpy(&pair, columns + a, sizeof(pair));
            const __m128d low = _mm_load_sd(points + static_cast<std::uint32_t>(pair));
            return _mm_loadh_pd(low, points + (pair >> 32));
        };
        const __m256 a = _mm256_castpd_ps(_mm256_set_m128d(two(4), two(0)));
        const __m256 b = _mm256_castpd_ps(_mm256_set_m128d(two(6), two(2)));
        x[0] = _mm256_shuffle_ps(a, b, 0x88);
        x[1] = _mm256_shuffle_ps(a, b, 0xDD);
        return;
    }
    if constexpr (sizeof(T) == 4 && D == 3) {
        const auto two = [&](int a, int b) {
            return _mm256_set_m128(_mm_loadu_ps(y + S * columns[b]), _mm_loadu_ps(y + S * columns[a]));
        };
        const __m256 a = two(0, 4), b = two(1, 5), c = two(2, 6), d = two(3, 7);
        const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);  // x x y y
        x[0] = _mm256_shuffle_ps(ab, cd, 0x44);
        x[1] = _mm256_shuffle_ps(ab, cd, 0xEE);
        x[2] = _mm256_shuffle_ps(_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d), 0x44);
        return;
    }
#endif
    for (int lane = 0; lane < Lanes<T>::width; ++lane) {
        for (int k = 0; k < D; ++k) x[k][lane] = y[S * columns[lane] + k];
    }
}

// One row of a map of D dimensions.
template <class T, int D, bool WithSums>
static void attract_row(const Edges<T>& edges, Index i, const T* here, const T* y, T inverse_dof,
                        T* force, double* sums) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr int W = Lanes<T>::width;
    Vector pull[D] = {}, potential = {}, stiffness = {}, there[D] = {};
    const auto add = [&](const std::int32_t* columns, const Vector& p) __attribute__((always_inline)) {
        load_points<T, D>(y, columns, there);
        Vector square = {};
        for (int k = 0; k < D; ++k) {
            there[k] = here[k] - there[k];
            square += there[k] * there[k];
        }
        const Vector scaled = square * inverse_dof;
        const Vector weight = p / (T(1) + scaled);
        for (int k = 0; k < D; ++k) pull[k] += weight * there[k];
        if constexpr (WithSums) {
            potential += p * (inverse_dof > 0 ? log1p_of_positive<T>(scaled) / inverse_dof : square);
            stiffness += weight;
        }
    };
    Index e = edges.starts[i];
    const Index end = edges.starts[i + 1];
    for (; e + W <= end; e += W) {
        const Vector p = *reinterpret_cast<const Loose*>(edges.weights + e);
        add(edges.columns + e, p);
    }
    if (e < end) {  // the rest, filled up with edges without weight
        std::int32_t columns[W];
        Vector p = {};
        for (int lane = 0; lane < W; ++lane) columns[lane] = edges.columns[min_of(e + lane, end - 1)];
        for (int lane = 0; e + lane < end; ++lane) p[lane] = edges.weights[e + lane];
        add(columns, p);
    }
    for (int k = 0; k < D; ++k) force[k] = sum_of(pull[k]);
    if constexpr (WithSums) {
        sums[0] = static_cast<double>(sum_of(potential));
        sums[1] = static_cast<double>(sum_of(stiffness));
    }
}

// The same, plainly, for maps of many dimensions.
template <class T>
static void attract_row_of_many(const Edges<T>& edges, Index i, const T* here, const T* y, Index d,
                                T inverse_dof, T* force, double* sums) {
    double potential = 0, stiffness = 0;
    for (Index k = 0; k < d; ++k) force[k] = 0;
    for (Index e = edges.starts[i]; e < edges.starts[i + 1]; ++e) {
        const T* there = y + edges.columns[e] * d;
        T square = 0;
        for (Index k = 0; k < d; ++k) square += (here[k] - there[k]) * (here[k] - there[k]);
        const T weight = edges.weights[e] / (1 + square * inverse_dof);
        for (Index k = 0; k < d; ++k) force[k] += weight * (here[k] - there[k]);
        if (sums == nullptr) continue;
        const double scaled = static_cast<double>(square) * inverse_dof;
        const double height = inverse_dof > 0 ? __builtin_log1p(scaled) / inverse_dof : double(square);
        potential += edges.weights[e] * height;
        stiffness += weight;
    }
    if (sums) sums[0] = potential, sums[1] = stiffness;
}

template <class T, int D>
static bool attract_in(const Edges<T>& edges, const T* z, const T* y, Index n, T inverse_dof, T* forces,
                       double* sums, int n_threads) {
    constexpr Index kRowsPerTask = 256, S = stride_of<T, D>;
    T* padded = S != D ? allocate<T>(n * S) : nullptr;
    if (S != D && padded == nullptr) return false;
    if (padded) {
        parallel(ceil_div(n, kRowsPerTask), n_threads, [&](Index task, int) {
            for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) {
                for (Index k = 0; k < S; ++k) padded[i * S + k] = k < D ? y[i * D + k] : T(0);
            }
        });
    }
    const T* points = padded ? padded : y;
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            const T* here = z + i * D;
            T* force = forces + i * D;
            if (sums) {
                attract_row<T, D, true>(edges, i, here, points, inverse_dof, force, sums + 2 * i);
            } else {
                attract_row<T, D, false>(edges, i, here, points, inverse_dof, force, nullptr);
            }
        }
    });
    std::free(padded);
    return true;
}

// Edges lead from the points z to the n points y; sums may be null.
template <class T>
bool attract(Edges<T> edges, const T* z, const T* y, Index n, Index d, double inverse_dof, T* forces,
             double* sums, int n_threads) {
    const T inverse = static_cast<T>(inverse_dof);
    if (d == 1) return attract_in<T, 1>(edges, z, y, n, inverse, forces, sums, n_threads);
    if (d == 2) return attract_in<T, 2>(edges, z, y, n, inverse, forces, sums, n_threads);
    if (d == 3) return attract_in<T, 3>(edges, z, y, n, inverse, forces, sums, n_threads);
    parallel(edges.n, n_threads, [&](Index i, int) {
        attract_row_of_many(edges, i, z + i * d, y, d, inverse, forces + i * d, sums ? sums + 2 * i : nullptr);
    });
    return true;
}

// The edges of points in a new order: row i of the result is row order[i], place[order[i]] = i.
// `starts` of the result are given. Points near each other in the map should be near in memory.
template <class T>
bool permute_edges(Edges<T> edges, const std::int32_t* order, const std::int32_t* place,
                   std::int64_t* starts, std::int32_t* columns, T* weights, int n_threads) {
    constexpr Index kRowsPerTask = 256;
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            Index to = starts[i];
            for (Index e = edges.starts[order[i]]; e < edges.starts[order[i] + 1]; ++e, ++to) {
                columns[to] = place[edges.columns[e]];
                weights[to] = edges.weights[e];
            }
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template bool attract<T>(Edges<T>, const T*, const T*, Index, Index, double, T*, double*, int); \
    template bool permute_edges<T>(Edges<T>, const std::int32_t*, const std::int32_t*,              \
                                   std::int64_t*, std::int32_t*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
