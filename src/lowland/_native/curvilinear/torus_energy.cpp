// torus_energy: energy, forces and stiffness in one pass over the pairs, no matrix in between.
//
// The points y lie coordinate by coordinate, so that a vector holds as many pairs as it has lanes. A
// row is summed by one task, in T over a bounded number of terms and then in double: the number of
// threads does not change a bit.
#include "curvilinear/torus_energy.h"

#include "common/elementary.h"
#include "common/isa.h"
#include "common/points.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr Index kRowsPerTask = 8;
constexpr Index kColumns = 512;  // terms that are summed in T
constexpr Index kMostAxes = 64;  // axes whose signs are kept; more are computed again

// Rigidities whose powers need no series.
enum Kind { kLogarithm, kInverse, kLinear, kRoot, kFourthRoot, kPower };

// Selections are written with bits: SSE2 has no instruction for a ? b : c of vectors.
template <class T>
static inline typename Format<T>::words bits_of(typename Lanes<T>::vector x) {
    return reinterpret_cast<typename Format<T>::words>(x);
}

template <class T>
static inline typename Lanes<T>::vector from_bits(typename Format<T>::words x) {
    return reinterpret_cast<typename Lanes<T>::vector>(x);
}

template <class T>
constexpr typename Format<T>::Word sign_bit() {
    return typename Format<T>::Word(1) << (8 * sizeof(T) - 1);
}

template <class T>
static inline typename Lanes<T>::vector absolute(typename Lanes<T>::vector x) {
    return from_bits<T>(bits_of<T>(x) & ~sign_bit<T>());
}

template <class T>
static inline typename Lanes<T>::vector at_least(typename Lanes<T>::vector x, T low) {
    typedef typename Format<T>::words Words;
    const Words above = reinterpret_cast<Words>(x > low);
    return from_bits<T>((bits_of<T>(x) & above) | (bits_of<T>(fill<T>(low)) & ~above));
}

// The shorter way from y to z along one axis, with its sign: positive if z lies ahead.
template <class T>
static inline typename Lanes<T>::vector shorter_way(T z, const T* y, T side, T inverse_side) {
    typedef typename Lanes<T>::vector Vector;
    constexpr T rounder = T(1.5) * T(typename Format<T>::Word(1) << Format<T>::mantissa);
    const Vector along = z - *reinterpret_cast<const Vector*>(y);
    const Vector rounds = (along * inverse_side + rounder) - rounder;  // -1, 0 or 1
    return along - rounds * side;
}

// h f: the force of one vector of pairs along one axis; none where both ways are equal.
template <class T>
static inline typename Lanes<T>::vector directed(typename Lanes<T>::vector way, T side,
                                                 typename Lanes<T>::vector force) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Format<T>::words Words;
    const Vector length = absolute<T>(way), zero{};
    const Words pushes = reinterpret_cast<Words>((length > zero) & (length + length < side));
    return from_bits<T>((bits_of<T>(force) ^ (bits_of<T>(way) & sign_bit<T>())) & pushes);
}

template <class T>
struct Repulsion {
    typedef typename Lanes<T>::vector Vector;
    Vector energy, force, stiffness;  // for delta = 1
};

// 1 / (p d^p) or -ln d, and 1 / d^(p + 1), 1 / d^(p + 2).
template <Kind K, class T>
static inline Repulsion<T> repulsion(typename Lanes<T>::vector d, T p, T nearest, T log_nearest) {
    typedef typename Lanes<T>::vector Vector;
    const Vector inverse = T(1) / d;
    if (K == kInverse) {
        const Vector square = inverse * inverse;
        return {inverse, square, square * inverse};
    }
    if (K == kLinear) return {-d, fill<T>(1), inverse};
    if (K == kRoot || K == kFourthRoot) {
        const Vector root = root_of<T>(d), power = K == kRoot ? root : root_of<T>(root);
        return {power * (T(1) / p), power * inverse, power * inverse * inverse};
    }
    // ln d = ln(d / nearest) + ln nearest, because the series is for logarithms of numbers above 1
    const Vector beyond = d * (T(1) / nearest) - T(1);
    const Vector logarithm = log1p_of_positive<T>(at_least<T>(beyond, T(0))) + log_nearest;
    if (K == kLogarithm) return {-logarithm, inverse, inverse * inverse};
    // d^-p is above 1 or below; the series is for the one below
    const Vector exponent = -p * logarithm, small = exp_of_negative<T>(-absolute<T>(exponent));
    typedef typename Format<T>::words Words;
    const Words grows = reinterpret_cast<Words>(exponent > Vector{});
    const Vector power = from_bits<T>((bits_of<T>(T(1) / small) & grows) | (bits_of<T>(small) & ~grows));
    return {power * (T(1) / p), power * inverse, power * inverse * inverse};
}

template <class T>
struct Pass {
    Torus<T> torus;
    Coordinates<T> y;
    const T* sides;
    const T* inverse_sides;
    T p, nearest, log_nearest;
    typename Lanes<T>::vector way(const T* z, Index k, Index j) const {
        return shorter_way<T>(z[k], y.data + k * y.stride + j, sides[k], inverse_sides[k]);
    }
};

// One row over the columns begin .. end, added to sums: energy, stiffness, forces.
template <Kind K, int Q, class T>
static void add_columns(const Pass<T>& pass, const T* z, const T* delta, Index begin, Index end,
                        double* sums) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = Lanes<T>::width;
    constexpr int kKept = Q ? Q : kMostAxes;
    const Index q = Q ? Q : pass.torus.q, kept = min_of(q, kKept);
    Vector energy{}, stiffness{}, force[kKept], way[kKept];
    for (Index k = 0; k < kept; ++k) force[k] = Vector{};
    T rest[W];
    for (Index j = begin; j < end; j += W) {
        Vector weight;
        if (end - j >= W) {
            weight = *reinterpret_cast<const Loose*>(delta + j);
        } else {
            for (Index lane = 0; lane < W; ++lane) rest[lane] = j + lane < end ? delta[j + lane] : T(0);
            weight = *reinterpret_cast<const Loose*>(rest);
        }
        Vector d{};
        for (Index k = 0; k < q; ++k) {
            const Vector w = pass.way(z, k, j);
            if (k < kept) way[k] = w;
            d += absolute<T>(w);
        }
        d = at_least<T>(d, pass.nearest);
        const Repulsion<T> one = repulsion<K, T>(d, pass.p, pass.nearest, pass.log_nearest);
        const Vector push = weight * one.force;
        energy += weight * one.energy;
        stiffness += weight * one.stiffness;
        for (Index k = 0; k < kept; ++k) force[k] += directed<T>(way[k], pass.sides[k], push);
        for (Index k = kept; k < q; ++k) {
            sums[2 + k] += sum_of(directed<T>(pass.way(z, k, j), pass.sides[k], push));
        }
    }
    sums[0] += sum_of(energy);
    sums[1] += sum_of(stiffness);
    for (Index k = 0; k < kept; ++k) sums[2 + k] += sum_of(force[k]);
}

template <Kind K, int Q, class T>
static void all_rows(const Pass<T>& pass, TorusOut out, double* sums, int n_threads) {
    const Torus<T>& torus = pass.torus;
    const Index q = torus.q, n = torus.n;
    parallel(ceil_div(torus.m, kRowsPerTask), n_threads, [&](Index task, int slot) {
        double* own = sums + slot * (q + 2);
        const Index end = min_of(torus.m, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            for (Index e = 0; e < q + 2; ++e) own[e] = 0;
            const T* delta = torus.delta + i / torus.repeats * n;
            for (Index j = 0; j < n; j += kColumns) {
                add_columns<K, Q>(pass, torus.z + i * q, delta, j, min_of(n, j + kColumns), own);
            }
            out.energy[i] = own[0];
            out.stiffness[i] = own[1];
            for (Index k = 0; k < q; ++k) out.forces[i * q + k] = own[2 + k];
        }
    });
}

template <Kind K, class T>
static void of_kind(const Pass<T>& pass, TorusOut out, double* sums, int n_threads) {
    const Index q = pass.torus.q;
    const auto run = q == 1   ? all_rows<K, 1, T>
                     : q == 2 ? all_rows<K, 2, T>
                     : q == 3 ? all_rows<K, 3, T>
                              : all_rows<K, 0, T>;
    run(pass, out, sums, n_threads);
}

}  // namespace

template <class T>
bool torus_energy(Torus<T> torus, TorusOut out, int n_threads) {
    const double p = torus.rigidity;
    T* sides = allocate<T>(2 * torus.q);
    double* sums = allocate<double>(n_threads * (torus.q + 2));
    Pass<T> pass{torus, {}, sides, sides + torus.q, T(p), T(torus.nearest), T(log(torus.nearest))};
    const bool enough = sides && sums && pass.y.pack(torus.y, torus.n, torus.q);
    if (enough) {
        for (Index k = 0; k < torus.q; ++k) {
            sides[k] = static_cast<T>(torus.sides[k]);
            sides[torus.q + k] = T(1) / sides[k];
        }
        const auto run = p == 0       ? of_kind<kLogarithm, T>
                         : p == 1     ? of_kind<kInverse, T>
                         : p == -1    ? of_kind<kLinear, T>
                         : p == -0.5  ? of_kind<kRoot, T>
                         : p == -0.25 ? of_kind<kFourthRoot, T>
                                      : of_kind<kPower, T>;
        run(pass, out, sums, n_threads);
    }
    std::free(pass.y.data), std::free(sides), std::free(sums);
    return enough;
}

template bool torus_energy<float>(Torus<float>, TorusOut, int);
template bool torus_energy<double>(Torus<double>, TorusOut, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
