// local_stress_rows, local_stress_pairs: objective, potential, weights and forces in one pass over pairs.
//
// As in stress.cpp, the points y lie coordinate by coordinate, so that a vector holds as many pairs as it
// has lanes. Listed pairs are gathered into such vectors, because the laws cost more than the loads. Sums
// are in T over a bounded number of terms and then in double, in an order that no thread changes.
#include "local_stress/laws.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 8;
constexpr Index kColumns = 512;  // terms that are summed in T
constexpr int kAnyDimension = 0;
constexpr Index kSums = 3;  // stress, potential, degree; the forces follow

// A vector of numbers from j on; those beyond the end are 1, which is a valid radius and distance.
template <class T>
static inline typename Lanes<T>::vector load(const T* from, Index j, Index end) {
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = Lanes<T>::width;
    if (end - j >= W) return *reinterpret_cast<const Loose*>(from + j);
    T rest[W];
    for (Index lane = 0; lane < W; ++lane) rest[lane] = j + lane < end ? from[j + lane] : T(1);
    return *reinterpret_cast<const Loose*>(rest);
}

template <class T>
static inline void drop_beyond(Terms<T>& pair, Index kept) {
    for (Index lane = kept; lane < Lanes<T>::width; ++lane) {
        pair.stress[lane] = pair.potential[lane] = pair.weight[lane] = pair.pull[lane] = 0;
    }
}

// What the columns begin .. end add to the sums of row i.
template <int Kind, bool Two, int D, class T>
static void add_columns(const LocalRows<T>& maps, const Coordinates<T>& y, const Law& law, Index i,
                        Index begin, Index end, double* sums) {
    typedef typename Lanes<T>::vector Vector;
    constexpr Index W = Lanes<T>::width;
    constexpr int kKept = D == kAnyDimension ? 1 : D;
    const Index d = D == kAnyDimension ? maps.d : D;
    const T* z = maps.z + i * d;
    const T* delta = maps.delta + i * maps.n;
    const Vector own = Kind == kSymmetric ? fill<T>(1) : fill<T>(maps.radii_z[i]);
    Vector stress{}, potential{}, degree{}, force[kKept] = {};
    for (Index j = begin; j < end; j += W) {
        const Vector target = load(delta, j, end);
        const Vector other = Two ? load(maps.radii_y, j, end) : own;
        Vector along[kKept], square{};
        for (Index k = 0; k < d; ++k) {
            const Vector gap = z[k] - *reinterpret_cast<const Vector*>(y.data + k * y.stride + j);
            if (D != kAnyDimension) along[k] = gap;
            square += gap * gap;
        }
        const Vector distance = root_of<T>(square);
        Terms<T> pair = terms_of<Kind, Two, T>(distance, target, own, other, law);
        if (end - j < W) drop_beyond(pair, end - j);
        stress += pair.stress, potential += pair.potential, degree += pair.weight;
        const Vector share = distance > Vector{} ? pair.pull / distance : Vector{};
        if (D != kAnyDimension) {
            for (int k = 0; k < kKept; ++k) force[k] += share * along[k];
        } else {
            for (Index k = 0; k < d; ++k) {
                const Vector gap = z[k] - *reinterpret_cast<const Vector*>(y.data + k * y.stride + j);
                sums[kSums + k] += sum_of(share * gap);
            }
        }
    }
    sums[0] += sum_of(stress), sums[1] += sum_of(potential), sums[2] += sum_of(degree);
    if (D != kAnyDimension) {
        for (int k = 0; k < kKept; ++k) sums[kSums + k] += sum_of(force[k]);
    }
}

static inline void put(const double* sums, Index i, Index d, const LocalOut& out) {
    out.stress[i] = sums[0], out.potential[i] = sums[1], out.degrees[i] = sums[2];
    for (Index k = 0; k < d; ++k) out.forces[i * d + k] = sums[kSums + k];
}

template <int Kind, bool Two, int D, class T>
static bool all_rows(const LocalRows<T>& maps, const Law& law, LocalOut out, int n_threads) {
    const Index d = maps.d, n = maps.n, wide = d + kSums;
    Coordinates<T> y;
    double* sums = allocate<double>(n_threads * wide);
    const bool enough = y.pack(maps.y, n, d) && sums;
    parallel(enough ? ceil_div(maps.m, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        double* own = sums + slot * wide;
        const Index end = min_of(maps.m, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            for (Index e = 0; e < wide; ++e) own[e] = 0;
            for (Index j = 0; j < n; j += kColumns) {
                add_columns<Kind, Two, D>(maps, y, law, i, j, min_of(n, j + kColumns), own);
            }
            put(own, i, d, out);
        }
    });
    std::free(y.data), std::free(sums);
    return enough;
}

template <int Kind, bool Two, class T>
static bool rows_of_law(const LocalRows<T>& maps, const Law& law, LocalOut out, int n_threads) {
    const auto run = maps.d == 1   ? all_rows<Kind, Two, 1, T>
                     : maps.d == 2 ? all_rows<Kind, Two, 2, T>
                     : maps.d == 3 ? all_rows<Kind, Two, 3, T>
                                   : all_rows<Kind, Two, kAnyDimension, T>;
    return run(maps, law, out, n_threads);
}

// Whether one radius serves all points, which halves the work of a law.
template <class T>
static bool one_radius(const T* a, Index m, const T* b, Index n) {
    bool same = true;
    for (Index i = 0; i < m; ++i) same &= a[i] == a[0];
    for (Index j = 0; j < n; ++j) same &= b[j] == a[0];
    return same;
}

// Adds what the pairs begin .. end do to their points: own has d + kSums numbers of each.
template <int Kind, bool Two, int D, class T>
static void add_pairs(const LocalPairs<T>& pairs, const Law& law, Index begin, Index end, double* own) {
    typedef typename Lanes<T>::vector Vector;
    constexpr Index W = Lanes<T>::width;
    constexpr int kKept = D == kAnyDimension ? 1 : D;
    const Index d = D == kAnyDimension ? pairs.d : D, wide = d + kSums;
    for (Index p = begin; p < end; p += W) {
        const Index kept = min_of(W, end - p);
        Vector along[kKept], square{}, target = fill<T>(1), count{}, s = fill<T>(1), other = fill<T>(1);
        for (Index lane = 0; lane < kept; ++lane) {
            const Index i = pairs.first[p + lane], j = pairs.second[p + lane];
            target[lane] = pairs.delta[p + lane], count[lane] = pairs.stands_for[p + lane];
            if (Kind != kSymmetric) s[lane] = pairs.radii[i];
            if (Two) other[lane] = pairs.radii[j];
            T sum = 0;
            for (Index k = 0; k < d; ++k) {
                const T gap = pairs.y[i * d + k] - pairs.y[j * d + k];
                if (D != kAnyDimension) along[k][lane] = gap;
                sum += gap * gap;
            }
            square[lane] = sum;
        }
        const Vector distance = root_of<T>(square);
        const Terms<T> pair = terms_of<Kind, Two, T>(distance, target, s, other, law);
        const Vector share = distance > Vector{} ? count * pair.pull / distance : Vector{};
        const Vector stress = count * pair.stress, potential = count * pair.potential;
        const Vector weight = count * pair.weight;
        for (Index lane = 0; lane < kept; ++lane) {
            const Index i = pairs.first[p + lane], j = pairs.second[p + lane];
            double* a = own + i * wide;
            double* b = own + j * wide;
            const double terms[kSums] = {double(stress[lane]), double(potential[lane]), double(weight[lane])};
            for (Index e = 0; e < kSums; ++e) a[e] += terms[e], b[e] += terms[e];
            for (Index k = 0; k < d; ++k) {
                const T gap = D != kAnyDimension ? along[k][lane] : pairs.y[i * d + k] - pairs.y[j * d + k];
                const double push = static_cast<double>(share[lane] * gap);
                a[kSums + k] += push, b[kSums + k] -= push;
            }
        }
    }
}

// Pairs are cut into parts, whatever the number of threads; each part adds to points of its own, and the
// parts are added up in order. Many points have few parts, which bounds the memory.
template <int Kind, bool Two, class T>
static bool pairs_of_law(const LocalPairs<T>& pairs, const Law& law, LocalOut out, int n_threads) {
    constexpr Index kFewest = 1 << 14, kNumbers = Index(1) << 23;
    const Index d = pairs.d, wide = d + kSums, size = pairs.n * wide;
    const Index most = kNumbers / (size + 1), by_size = most < 2 ? 2 : most;
    const Index n_parts = min_of(min_of(16, by_size), ceil_div(pairs.count, kFewest));
    double* sums = allocate<double>(n_parts * size);
    if (!sums) return false;
    parallel(n_parts, n_threads, [&](Index part, int) {
        double* own = sums + part * size;
        for (Index e = 0; e < size; ++e) own[e] = 0;
        const Index begin = part * pairs.count / n_parts, end = (part + 1) * pairs.count / n_parts;
        const auto add = d == 1   ? add_pairs<Kind, Two, 1, T>
                         : d == 2 ? add_pairs<Kind, Two, 2, T>
                         : d == 3 ? add_pairs<Kind, Two, 3, T>
                                  : add_pairs<Kind, Two, kAnyDimension, T>;
        add(pairs, law, begin, end, own);
    });
    constexpr Index kPointsPerTask = 256;
    parallel(ceil_div(pairs.n, kPointsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(pairs.n, (task + 1) * kPointsPerTask);
        for (Index i = task * kPointsPerTask; i < end; ++i) {
            double* total = n_parts ? sums + i * wide : nullptr;  // of the first part, which becomes the sum
            for (Index part = 1; part < n_parts; ++part) {
                for (Index e = 0; e < wide; ++e) total[e] += sums[part * size + i * wide + e];
            }
            if (total) put(total, i, d, out);
        }
    });
    for (Index i = 0; n_parts == 0 && i < pairs.n; ++i) {
        out.stress[i] = out.potential[i] = out.degrees[i] = 0;
        for (Index k = 0; k < d; ++k) out.forces[i * d + k] = 0;
    }
    std::free(sums);
    return true;
}

}  // namespace

template <class T>
bool local_stress_rows(LocalRows<T> maps, Law law, LocalOut out, int n_threads) {
    if (law.kind == kSymmetric) return rows_of_law<kSymmetric, false>(maps, law, out, n_threads);
    const bool one = one_radius(maps.radii_z, maps.m, maps.radii_y, maps.n);
    if (law.kind == kStep) return (one ? rows_of_law<kStep, false, T> : rows_of_law<kStep, true, T>)(maps, law, out, n_threads);
    if (law.kind == kExp) return (one ? rows_of_law<kExp, false, T> : rows_of_law<kExp, true, T>)(maps, law, out, n_threads);
    return (one ? rows_of_law<kSigmoid, false, T> : rows_of_law<kSigmoid, true, T>)(maps, law, out, n_threads);
}

template <class T>
bool local_stress_pairs(LocalPairs<T> pairs, Law law, LocalOut out, int n_threads) {
    if (law.kind == kSymmetric) return pairs_of_law<kSymmetric, false>(pairs, law, out, n_threads);
    const bool one = one_radius(pairs.radii, pairs.n, pairs.radii, pairs.n);
    if (law.kind == kStep) return (one ? pairs_of_law<kStep, false, T> : pairs_of_law<kStep, true, T>)(pairs, law, out, n_threads);
    if (law.kind == kExp) return (one ? pairs_of_law<kExp, false, T> : pairs_of_law<kExp, true, T>)(pairs, law, out, n_threads);
    return (one ? pairs_of_law<kSigmoid, false, T> : pairs_of_law<kSigmoid, true, T>)(pairs, law, out, n_threads);
}

#define LOWLAND_INSTANTIATE(T)                                                  \
    template bool local_stress_rows<T>(LocalRows<T>, Law, LocalOut, int);       \
    template bool local_stress_pairs<T>(LocalPairs<T>, Law, LocalOut, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
