// local_stress_rows: objective, potential, weights and forces in one pass over the pairs.
//
// As in stress.cpp, the points y lie coordinate by coordinate, so that a vector holds as many pairs as it
// has lanes. A row is summed by one task, in T over a bounded number of terms and then in double.
#include "local_stress/laws.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 8;
constexpr Index kColumns = 512;  // terms that are summed in T
constexpr int kAnyDimension = 0;
constexpr Index kSums = 3;  // stress, potential, degree; the forces follow

// A vector of numbers from j on; those beyond the end are ``other``.
template <class T>
static inline typename Lanes<T>::vector load(const T* from, Index j, Index end, T other) {
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = Lanes<T>::width;
    if (end - j >= W) return *reinterpret_cast<const Loose*>(from + j);
    T rest[W];
    for (Index lane = 0; lane < W; ++lane) rest[lane] = j + lane < end ? from[j + lane] : other;
    return *reinterpret_cast<const Loose*>(rest);
}

// Terms of pairs whose distance is not known do not count.
template <class T, class Mask>
static inline void keep_only(Terms<T>& pair, const Mask& counts) {
    const typename Lanes<T>::vector zero{};
    pair.stress = counts ? pair.stress : zero;
    pair.potential = counts ? pair.potential : zero;
    pair.weight = counts ? pair.weight : zero;
    pair.pull = counts ? pair.pull : zero;
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
        const Vector target = load(delta, j, end, T(__builtin_nan("")));
        const Vector other = Two ? load(maps.radii_y, j, end, T(1)) : own;
        Vector along[kKept], square{};
        for (Index k = 0; k < d; ++k) {
            const Vector gap = z[k] - *reinterpret_cast<const Vector*>(y.data + k * y.stride + j);
            if (D != kAnyDimension) along[k] = gap;
            square += gap * gap;
        }
        const Vector distance = root_of<T>(square);
        Terms<T> pair = terms_of<Kind, Two, T>(distance, target, own, other, law);
        keep_only(pair, target == target);
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

}  // namespace

template <class T>
bool local_stress_rows(LocalRows<T> maps, Law law, LocalOut out, int n_threads) {
    if (law.kind == kSymmetric) return rows_of_law<kSymmetric, false>(maps, law, out, n_threads);
    const bool one = one_radius(maps.radii_z, maps.m, maps.radii_y, maps.n);
    if (law.kind == kStep) return (one ? rows_of_law<kStep, false, T> : rows_of_law<kStep, true, T>)(maps, law, out, n_threads);
    if (law.kind == kExp) return (one ? rows_of_law<kExp, false, T> : rows_of_law<kExp, true, T>)(maps, law, out, n_threads);
    return (one ? rows_of_law<kSigmoid, false, T> : rows_of_law<kSigmoid, true, T>)(maps, law, out, n_threads);
}

#define LOWLAND_INSTANTIATE(T) \
    template bool local_stress_rows<T>(LocalRows<T>, Law, LocalOut, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
