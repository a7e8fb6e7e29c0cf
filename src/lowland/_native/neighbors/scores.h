// Scores of pairs of panels, and a quick look for those that pass a threshold.
#pragma once
#include <math.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <math.h>

#include "neighbors/best.h"
#include "neighbors/knn.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

// The larger of two vectors, lane by lane; a NaN in the first gives the second.
template <class Vector>
static inline __attribute__((always_inline)) void raise(Vector& a, const Vector& b) {
#ifdef __AVX2__
    if constexpr (sizeof(a[0]) == 4) {
        a = _mm256_max_ps(a, b);
    } else {
        a = _mm256_max_pd(a, b);
    }
#else
    a = a > b ? a : b;
#endif
}

// Whether any lane of a comparison's result is set.
template <class Mask>
static inline bool any(const Mask& mask) {
#ifdef __AVX2__
    return _mm256_movemask_epi8(reinterpret_cast<const __m256i&>(mask)) != 0;
#else
    bool set = false;
    for (unsigned lane = 0; lane < sizeof(Mask) / sizeof(mask[0]); ++lane) set |= mask[lane] != 0;
    return set;
#endif
}

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

// Scores of kRows points (r ..) of a left panel against a right panel, one row of W after another.
template <class T>
static inline void score_all(const T* left, const T* right, Index q, const T* left_halves,
                             const T* right_halves, Index r, T* scores) {
    constexpr Index W = panel_width<T>;
    for (Index row = 0; row < kRows; ++row) {
        for (Index c = 0; c < W; ++c) {
            scores[row * W + c] = -(left_halves[r + row] + right_halves[c]);
        }
    }
    tile<T, kVectors>(q, All(), left + r, 1, W, right, W, scores, W);
}

// One side of a tile: points next to each other in a panel, and the scores they ask for.
template <class T>
struct Side {
    const T* panel;
    const T* halves;
    const T* tails;
    const T* thresholds;
};

// The scores of kRows x panel_width pairs, held in registers. Returns whether one of them reaches a
// threshold of its column or the lowest of the rows; only then are they written. The look after `lead`
// terms bounds the rest of x.y by Cauchy and Schwarz; `slack` covers the rounding of bound and score.
template <class T>
__attribute__((noinline))  // inlined it would have to share its registers
static bool score_tile(const Side<T>& left, const Side<T>& right, Index q, Index lead, T slack,
                       T* scores) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    typedef decltype(Vector() >= Vector()) Mask;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    const auto load = [](const T* at, int v) -> const Loose& {
        return *reinterpret_cast<const Loose*>(at + v * kWidth);
    };
    Vector total[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) total[r][v] = -left.halves[r] - load(right.halves, v);
    }
    const auto add_terms = [&](Index k, Index end) __attribute__((always_inline)) {
        do {
#pragma GCC unroll 4
            for (int r = 0; r < kRows; ++r) {
                const T value = left.panel[k * W + r];
#pragma GCC unroll 3
                for (int v = 0; v < kVectors; ++v) total[r][v] += value * load(right.panel + k * W, v);
            }
        } while (++k < end);
    };
    T lowest = left.thresholds[0];
    for (int r = 1; r < kRows; ++r) lowest = left.thresholds[r] < lowest ? left.thresholds[r] : lowest;
    // Whether the best of a column, with what may still come, reaches its or the rows' threshold.
    const auto reached = [&](int v, const Vector& best, T less) __attribute__((always_inline)) {
        return (best >= load(right.thresholds, v) - less) | (best >= lowest - less);
    };
    add_terms(0, lead);
    Mask hit = {};
    if (lead < q) {
        for (int v = 0; v < kVectors; ++v) {
            const Vector tail = load(right.tails, v);
            Vector best = total[0][v] + left.tails[0] * tail;
            for (int r = 1; r < kRows; ++r) raise(best, total[r][v] + left.tails[r] * tail);
            hit |= reached(v, best, slack);
        }
        if (!any(hit)) return false;
        add_terms(lead, q);
        hit = Mask{};
    }
    for (int v = 0; v < kVectors; ++v) {
        Vector best = total[0][v];
        for (int r = 1; r < kRows; ++r) raise(best, total[r][v]);
        hit |= reached(v, best, T(0));
    }
    if (!any(hit)) return false;
    for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
            *reinterpret_cast<Vector*>(scores + r * W + v * kWidth) = total[r][v];
        }
    }
    return true;
}

// The largest half square of a panel; empty places do not count.
template <class T>
static inline T top_half(const T* halves) {
    T top = 0;
    for (Index i = 0; i < panel_width<T>; ++i) {
        const T half = halves[i] < static_cast<T>(INFINITY) ? halves[i] : T(0);
        top = half > top ? half : top;
    }
    return top;
}

// Calls hit(row lane, column lane, score) for the pairs of two panels (the first `rows` of the left
// one) whose score passes the threshold of its row or its column. Each tile of kRows rows is scored
// before its hits are called: thresholds that rise meanwhile are the caller's business.
template <class T, class Hit>
static inline void scan_panels(const Side<T>& left, Index rows, const Side<T>& right,
                               const Points<T>& points, const Hit& hit) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    const T slack = static_cast<T>(4.01 * points.rounding) * (top_half(left.halves) + top_half(right.halves));
    alignas(kVectorBytes) T scores[kRows * W];
    for (Index r = 0; r < rows; r += kRows) {
        const Side<T> some{left.panel + r, left.halves + r, left.tails + r, left.thresholds + r};
        if (!score_tile(some, right, points.q, points.lead, slack, scores)) continue;
        for (Index row = 0; row < kRows; ++row) {
            for (Index v = 0; v < kVectors; ++v) {
                const T* here = scores + row * W + v * kWidth;
                const Vector columns = *reinterpret_cast<const Loose*>(right.thresholds + v * kWidth);
                unsigned bits = passing<T>(*reinterpret_cast<const Vector*>(here),
                                           left.thresholds[r + row], columns);
                for (; bits != 0; bits &= bits - 1) {
                    const Index lane = __builtin_ctz(bits);
                    hit(r + row, v * kWidth + lane, here[lane]);
                }
            }
        }
    }
}

// |a - b|^2 in double, whatever the data's types: the exact arithmetic that decides.
template <class A, class B>
static inline double exact_square(const A* a, const B* b, Index d) {
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

// Panel i of the points as a side of a tile.
template <class T>
static inline Side<T> side_of(const Points<T>& points, Index i, const T* thresholds) {
    constexpr Index W = panel_width<T>;
    const T* tails = points.tails ? points.tails + i * W : points.halves;  // any, when not looked at
    return {points.panels + i * points.q * W, points.halves + i * W, tails, thresholds};
}

// How far the score of a pair at a distance up to `reach` can be off: |y| is at most |x| + reach.
static inline double slack_of(double half, double reach, double rounding) {
    const double x = sqrt(2 * half), y = x + reach;
    return rounding * (x * x + y * y);
}

// A T not above x (and not below the lowest).
template <class T>
static inline T rounded_down(double x) {
    if (!(x > static_cast<double>(lowest<T>()))) return lowest<T>();
    const T y = static_cast<T>(x);
    return static_cast<double>(y) <= x ? y : static_cast<T>(x - fabs(x) * 2.5e-7);
}

template <class T>
static inline Best<T> best_of(const Kept<T>& kept) {
    return {static_cast<Entry<T>*>(kept.entries), kept.counts, kept.thresholds, kept.capacity,
            kept.keep};
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
