// The pull of the neighbors on one point of a map of 1, 2 or 3 dimensions; see attract.cpp.
//
// A row has some dozens of edges. A vector's worth of them is taken at a time: the only slow part is to
// fetch the neighbors' coordinates, so points are loaded whole and turned in registers. Every edge is
// read once in a pass: it is fetched ahead past the caches, which then hold points only (a sixth less
// time for 70 000 rows).
#pragma once
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

constexpr Index kEdgesAhead = 128;  // it may lie beyond the last edge: a prefetch never faults

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

// Laws of the pull of points at a squared distance (see Pull): `weighted` is the factor of their difference
// in the pull, times the weight p of the edge; `height` is the potential.
template <class T>
struct StudentPull {
    typedef typename Lanes<T>::vector Vector;
    T inverse_dof;

    explicit StudentPull(const Pull& pull) : inverse_dof(static_cast<T>(pull.inverse_dof)) {}
    Vector weighted(const Vector& p, const Vector& square) const { return p / (T(1) + square * inverse_dof); }
    Vector height(const Vector& square) const {
        return inverse_dof > 0 ? log1p_of_positive<T>(square * inverse_dof) / inverse_dof : square;
    }
};

template <class T>
struct FuzzyPull {  // UMAP's: 2 a b r^(2b-2) / (1 + a r^2b)
    typedef typename Lanes<T>::vector Vector;
    // Between these squared distances powers up to kSteepest are float32 numbers; beyond kFlat the pull is 2 b / r^2.
    static constexpr T kLeast = T(1e-12), kMost = T(1e12), kFlat = T(1e18);
    T a, b;

    explicit FuzzyPull(const Pull& pull) : a(static_cast<T>(pull.a)), b(static_cast<T>(pull.b)) {}
    static Vector bounded(const Vector& square) {
        const Vector above = square > kLeast ? square : fill<T>(kLeast);
        return above < kMost ? above : fill<T>(kMost);
    }
    Vector scaled_power(const Vector& u) const {
        const Vector power = a * power_of_positive<T>(u, b);
        return power < kFlat ? power : fill<T>(kFlat);
    }
    Vector weighted(const Vector& p, const Vector& square) const {
        const Vector u = bounded(square), power = scaled_power(u);
        return p * (2 * b) * power / (u * (T(1) + power));
    }
    Vector height(const Vector& square) const {
        return T(2) * log1p_of_positive<T>(scaled_power(bounded(square)));
    }
};

// One row of a map of D dimensions.
template <class T, int D, bool WithSums, class Law>
static void attract_row(const Edges<T>& edges, Index i, const T* here, const T* y, const Law& law, T* force,
                        double* sums) {
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
        const Vector weight = law.weighted(p, square);
        for (int k = 0; k < D; ++k) pull[k] += weight * there[k];
        if constexpr (WithSums) {
            potential += p * law.height(square);
            stiffness += weight;
        }
    };
    Index e = edges.starts[i];
    const Index end = edges.starts[i + 1];
    for (; e + W <= end; e += W) {
        __builtin_prefetch(edges.columns + e + kEdgesAhead, 0, 0);
        __builtin_prefetch(edges.weights + e + kEdgesAhead, 0, 0);
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

}  // namespace LOWLAND_ISA
}  // namespace lowland
