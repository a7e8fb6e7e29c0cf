// Scores of pairs of panels, and a quick look for those that pass a threshold.
#pragma once
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "best.h"
#include "knn.h"
#include "tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

// Bit i of the result: whether lane i passes either threshold.
template <class T>
static inline unsigned passing(const typename Lanes<T>::vector& scores, T row,
                               const typename Lanes<T>::vector& columns) {
#ifdef __AVX2__
    if constexpr (sizeof(T) == 4) {
        const __m256 hit = _mm256_or_ps(_mm256_cmp_ps(scores, _mm256_set1_ps(row), _CMP_GE_OQ),
                                        _mm256_cmp_ps(scores, columns, _CMP_GE_OQ));
        return static_cast<unsigned>(_mm256_movemask_ps(hit));
    } else {
        const __m256d hit = _mm256_or_pd(_mm256_cmp_pd(scores, _mm256_set1_pd(row), _CMP_GE_OQ),
                                         _mm256_cmp_pd(scores, columns, _CMP_GE_OQ));
        return static_cast<unsigned>(_mm256_movemask_pd(hit));
    }
#else
    unsigned bits = 0;
    for (int lane = 0; lane < Lanes<T>::width; ++lane) {
        bits |= static_cast<unsigned>(scores[lane] >= row || scores[lane] >= columns[lane]) << lane;
    }
    return bits;
#endif
}

// Computes the scores of kRows points (r ..) of a left panel against a right panel and calls
// hit(row lane, column lane, score) for those that pass the row's or the column's threshold.
template <class T, class Hit>
static inline void scan_tile(const T* left, const T* right, Index q, const T* left_halves,
                             const T* right_halves, Index r, const T* row_thresholds,
                             const T* column_thresholds, const Hit& hit) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    alignas(kVectorBytes) T scores[kRows * W];
    for (Index row = 0; row < kRows; ++row) {
        for (Index c = 0; c < W; ++c) {
            scores[row * W + c] = -(left_halves[r + row] + right_halves[c]);
        }
    }
    tile<T, kVectors>(q, All(), left + r, 1, W, right, W, scores, W);
    for (Index row = 0; row < kRows; ++row) {
        for (Index v = 0; v < kVectors; ++v) {
            const Vector s = *reinterpret_cast<const Vector*>(scores + row * W + v * kWidth);
            const Vector columns = *reinterpret_cast<const Loose*>(column_thresholds + v * kWidth);
            unsigned bits = passing<T>(s, row_thresholds[r + row], columns);
            for (; bits != 0; bits &= bits - 1) {
                const Index lane = __builtin_ctz(bits);
                hit(r + row, v * kWidth + lane, scores[row * W + v * kWidth + lane]);
            }
        }
    }
}

// |a - b|^2 in double, whatever the data's type: the exact arithmetic that decides.
template <class X>
static inline double exact_square(const X* a, const X* b, Index d) {
    constexpr Index kLanes = 8;  // fixed partial sums: vectors without a change of order
    double sums[kLanes] = {};
    Index k = 0;
    for (; k + kLanes <= d; k += kLanes) {
        for (Index i = 0; i < kLanes; ++i) {
            const double diff = static_cast<double>(a[k + i]) - static_cast<double>(b[k + i]);
            sums[i] += diff * diff;
        }
    }
    for (Index i = 0; k < d; ++k, ++i) {
        const double diff = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        sums[i] += diff * diff;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
static inline Best<T> best_of(const Kept<T>& kept) {
    return {static_cast<Entry<T>*>(kept.entries), kept.counts, kept.thresholds, kept.capacity,
            kept.keep};
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
