// stress_rows, stress_pairs: stress and its gradient in one pass over the pairs, no matrix in between.
//
// The points y lie coordinate by coordinate, so that a vector holds as many pairs as it has lanes; the
// targets are read once, in order. A row is summed by one task, in T over a bounded number of terms
// and then in double: the number of threads does not change a bit.
#include <math.h>

#include "common/elementary.h"
#include "common/isa.h"
#include "common/points.h"
#include "stress/stress.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr Index kRowsPerTask = 8;
constexpr Index kColumns = 512;  // terms that are summed in T
constexpr int kAnyDimension = 0;

template <class T>
struct Weighted {
    typedef typename Lanes<T>::vector Vector;
    Vector gap, weight;
};

// The gap and the weight of one vector of pairs; both 0 where delta is not known or does not count.
template <class T>
static inline Weighted<T> weighted(typename Lanes<T>::vector delta, typename Lanes<T>::vector given,
                                   typename Lanes<T>::vector distance, bool has_weights, int power) {
    typedef typename Lanes<T>::vector Vector;
    const Vector zero{};
    Vector weight = fill<T>(1);
    auto counts = delta == delta;
    if (has_weights) {
        weight = given;
        counts &= weight > zero;  // also where delta is infinite
    } else if (power > 0) {
        counts &= delta > zero;
        weight = T(1) / delta;
        if (power == 2) weight *= weight;
    }
    return {counts ? delta - distance : zero, counts ? weight : zero};
}

// Stress and forces of one row over the columns begin .. end, added to sums: stress, then forces.
template <int D, class T>
static void add_columns(const T* z, const Coordinates<T>& y, Index d, const T* delta, const T* given,
                        int power, Index begin, Index end, double* sums) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = Lanes<T>::width;
    constexpr int kKept = D == kAnyDimension ? 1 : D;
    Vector stress{}, force[kKept] = {};
    T rest_delta[W], rest_given[W];
    for (Index j = begin; j < end; j += W) {
        Vector target, known{};
        if (end - j >= W) {
            target = *reinterpret_cast<const Loose*>(delta + j);
            if (given) known = *reinterpret_cast<const Loose*>(given + j);
        } else {
            for (Index lane = 0; lane < W; ++lane) {
                rest_delta[lane] = j + lane < end ? delta[j + lane] : T(__builtin_nan(""));
                rest_given[lane] = given && j + lane < end ? given[j + lane] : T(0);
            }
            target = *reinterpret_cast<const Loose*>(rest_delta);
            known = *reinterpret_cast<const Loose*>(rest_given);
        }
        Vector gap_k[kKept], square{};
        for (Index k = 0; k < (D == kAnyDimension ? d : D); ++k) {
            const Vector along = z[k] - *reinterpret_cast<const Vector*>(y.data + k * y.stride + j);
            if (D != kAnyDimension) gap_k[k] = along;
            square += along * along;
        }
        const Vector distance = root_of<T>(square);
        const Weighted<T> pair = weighted<T>(target, known, distance, given != nullptr, power);
        const Vector pull = pair.weight * pair.gap;
        stress += pull * pair.gap;
        const Vector share = distance > Vector{} ? pull / distance : Vector{};
        if (D != kAnyDimension) {
            for (int k = 0; k < kKept; ++k) force[k] -= share * gap_k[k];
        } else {
            for (Index k = 0; k < d; ++k) {
                const Vector along = z[k] - *reinterpret_cast<const Vector*>(y.data + k * y.stride + j);
                sums[1 + k] -= sum_of(share * along);
            }
        }
    }
    sums[0] += sum_of(stress);
    if (D != kAnyDimension) {
        for (int k = 0; k < kKept; ++k) sums[1 + k] += sum_of(force[k]);
    }
}

template <int D, class T>
bool all_rows(const TwoMaps<T>& maps, const Targets<T>& targets, StressOut out, int n_threads) {
    const Index d = maps.d, n = maps.n;
    Coordinates<T> y;
    double* sums = allocate<double>(n_threads * (d + 1));
    const bool enough = y.pack(maps.y, n, d) && sums;
    parallel(enough ? ceil_div(maps.m, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        double* own = sums + slot * (d + 1);
        const Index end = min_of(maps.m, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            for (Index e = 0; e <= d; ++e) own[e] = 0;
            const T* given = targets.weights ? targets.weights + i * n : nullptr;
            for (Index j = 0; j < n; j += kColumns) {
                add_columns<D>(maps.z + i * d, y, d, targets.delta + i * n, given, targets.power, j,
                               min_of(n, j + kColumns), own);
            }
            out.stress[i] = own[0];
            for (Index k = 0; k < d; ++k) out.forces[i * d + k] = own[1 + k];
        }
    });
    std::free(y.data), std::free(sums);
    return enough;
}

// |y_i - y_j| in double: pairs are gathered one by one, and the loads are what costs.
template <int D, class T>
static inline double distance_of(const T* a, const T* b, Index d) {
    double square = 0;
    for (Index k = 0; k < (D == kAnyDimension ? d : D); ++k) {
        const double along = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        square += along * along;
    }
    return sqrt(square);
}

// Adds what pairs begin .. end do to their points: own has d + 1 numbers of each, forces and stress.
template <int D, class T>
static void add_pairs(const T* y, Index given_d, const PairList<T>& pairs, Index begin, Index end,
                      double* own) {
    const Index d = D == kAnyDimension ? given_d : D, wide = d + 1;
    for (Index p = begin; p < end; ++p) {
        const Index i = pairs.first[p], j = pairs.second[p];
        const T* a = y + i * d;
        const T* b = y + j * d;
        const double distance = distance_of<D>(a, b, d);
        const double gap = static_cast<double>(pairs.delta[p]) - distance;
        const double pull = pairs.weights ? gap * static_cast<double>(pairs.weights[p]) : gap;
        const double share = distance > 0 ? pull / distance : 0;
        own[i * wide + d] += pull * gap;
        own[j * wide + d] += pull * gap;
        for (Index k = 0; k < d; ++k) {
            const double along = share * (static_cast<double>(a[k]) - static_cast<double>(b[k]));
            own[i * wide + k] -= along;
            own[j * wide + k] += along;
        }
    }
}

template <int D, class T>
static void measure_pairs(const T* y, Index given_d, const PairList<T>& pairs, Index begin, Index end,
                          T* out) {
    const Index d = D == kAnyDimension ? given_d : D;
    for (Index p = begin; p < end; ++p) {
        const T* a = y + static_cast<Index>(pairs.first[p]) * d;
        const T* b = y + static_cast<Index>(pairs.second[p]) * d;
        out[p] = static_cast<T>(distance_of<D>(a, b, d));
    }
}

}  // namespace

template <class T>
bool stress_rows(TwoMaps<T> maps, Targets<T> targets, StressOut out, int n_threads) {
    const auto run = maps.d == 1   ? all_rows<1, T>
                     : maps.d == 2 ? all_rows<2, T>
                     : maps.d == 3 ? all_rows<3, T>
                                   : all_rows<kAnyDimension, T>;
    return run(maps, targets, out, n_threads);
}

// Pairs are cut into so many parts, whatever the number of threads; each part adds to points of its
// own, which stay in the near caches, and the parts are added up in order.
template <class T>
bool stress_pairs(TwoMaps<T> maps, PairList<T> pairs, StressOut out, int n_threads) {
    constexpr Index kFewest = 1 << 14;
    const Index d = maps.d, wide = d + 1, size = maps.n * wide;
    const Index n_parts = min_of(16, ceil_div(pairs.count, kFewest));
    double* sums = allocate<double>(n_parts * size);
    if (!sums) return false;
    parallel(n_parts, n_threads, [&](Index part, int) {
        double* own = sums + part * size;
        for (Index e = 0; e < size; ++e) own[e] = 0;
        const Index begin = part * pairs.count / n_parts, end = (part + 1) * pairs.count / n_parts;
        (d == 2 ? add_pairs<2, T> : add_pairs<kAnyDimension, T>)(maps.y, d, pairs, begin, end, own);
    });
    constexpr Index kPointsPerTask = 256;
    parallel(ceil_div(maps.n, kPointsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(maps.n, (task + 1) * kPointsPerTask);
        for (Index i = task * kPointsPerTask; i < end; ++i) {
            for (Index k = 0; k <= d; ++k) {
                double total = 0;
                for (Index part = 0; part < n_parts; ++part) total += sums[part * size + i * wide + k];
                (k < d ? out.forces[i * d + k] : out.stress[i]) = total;
            }
        }
    });
    std::free(sums);
    return true;
}

template <class T>
bool pair_distances(TwoMaps<T> maps, PairList<T> pairs, T* out, int n_threads) {
    constexpr Index kPairsPerTask = 1 << 14;
    const Index d = maps.d;
    parallel(ceil_div(pairs.count, kPairsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(pairs.count, (task + 1) * kPairsPerTask);
        const auto measure = d == 2 ? measure_pairs<2, T> : measure_pairs<kAnyDimension, T>;
        measure(maps.y, d, pairs, task * kPairsPerTask, end, out);
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                         \
    template bool stress_rows<T>(TwoMaps<T>, Targets<T>, StressOut, int);              \
    template bool stress_pairs<T>(TwoMaps<T>, PairList<T>, StressOut, int);            \
    template bool pair_distances<T>(TwoMaps<T>, PairList<T>, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
