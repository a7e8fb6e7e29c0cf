// What one vector of pairs adds: the laws of local stress, see local_stress.h.
#pragma once
#include "common/elementary.h"
#include "common/isa.h"
#include "common/points.h"
#include "local_stress/local_stress.h"

namespace lowland {
namespace LOWLAND_ISA {

// exp(x^2) erfc(x) for x >= 0 is t Q(2 t - 1) with t = 1 / (1 + x / 2); Q interpolates at Chebyshev nodes
// with a relative error of 3e-8 (float) or 2e-14 (double).
template <class T>
struct Tail;
template <>
struct Tail<float> {
    static constexpr int terms = 11;
    static constexpr float Q[terms] = {
        0.5107913526f, 0.3435803125f, 0.1397359458f, 0.0182217491f, -0.0107533109f, -0.0032437331f,
        0.0015338470f, 0.0004310400f, -0.0003047191f, -3.67643617e-05f, 4.42884145e-05f};
};
template <>
struct Tail<double> {
    static constexpr int terms = 23;
    static constexpr double Q[terms] = {
        0.5107913526210123,      0.3435803422069319,      0.13973604627779215,     0.018221115751026355,
        -0.010755330933564275,   -0.003239592467863447,   0.0015453058258291775,   0.0004186471985226007,
        -0.00033153486412049546, -1.7179894603736524e-05, 7.2225145052461e-05,     -1.7099282877592014e-05,
        -1.0813142511245173e-05, 8.128382190712411e-06,   -6.415503262162573e-07,  -1.9435107946185823e-06,
        1.1204384740583762e-06,  1.405664395702922e-07,   -4.081733135061097e-07,  5.961982938258545e-08,
        8.226514024579012e-08,   -1.4455746049466341e-08, -8.022534134595291e-09};
};

// Terms of one vector of pairs; the force is pull times (z - y) / d.
template <class T>
struct Terms {
    typedef typename Lanes<T>::vector Vector;
    Vector stress, potential, weight, pull;
};

template <class T>
static inline typename Lanes<T>::vector lesser(typename Lanes<T>::vector a, typename Lanes<T>::vector b) {
    return a < b ? a : b;
}

// F(d) of a radial law with radius s, F(delta), and twice the integral of (u - delta) F(u) from delta to
// d: the potential of the force F(d) (d - delta), 0 at d = delta and never negative.
template <int Kind, class T>
struct Radial {
    typedef typename Lanes<T>::vector Vector;
    Vector near, given, potential;

    Radial(Vector d, Vector delta, Vector s) {
        const Vector one = fill<T>(1), zero{};
        if constexpr (Kind == kStep) {
            near = d <= s ? one : zero;
            given = delta <= s ? one : zero;
            const Vector inner = lesser<T>(d, s) - delta, edge = s - delta;
            potential = inner * inner - (delta < s ? zero : edge * edge);
        } else if constexpr (Kind == kExp) {
            near = exp_of_negative<T>(-d / s);
            given = exp_of_negative<T>(-delta / s);
            const Vector both = s * (s * given - near * (d - delta + s));
            potential = T(2) * (both > zero ? both : zero);
        } else {
            near = falling(d, s);
            given = falling(delta, s);
            const Vector both = integral(d, delta, s) - integral(delta, delta, s);
            potential = both > zero ? both : zero;
        }
    }

    // 1 - 3 t^2 + 2 t^3, where t goes from 0 at s / 2 to 1 at 3 s / 2.
    static Vector share(Vector u, Vector s) {
        const Vector t = u / s - T(0.5), zero{};
        return lesser<T>(t > zero ? t : zero, fill<T>(1));
    }
    static Vector falling(Vector u, Vector s) {
        const Vector t = share(u, s);
        return T(1) + t * t * (T(2) * t - T(3));
    }
    static Vector integral(Vector u, Vector delta, Vector s) {
        const Vector t = share(u, s), t2 = t * t, half = T(0.5) * s;
        const Vector flat = lesser<T>(u, half) - delta;
        const Vector first = t * (T(1) + t2 * (T(0.5) * t - T(1)));
        const Vector second = t2 * (T(0.5) + t2 * (T(0.4) * t - T(0.75)));
        return flat * flat + T(2) * s * ((half - delta) * first + s * second);
    }
};

template <int Kind, bool Two, class T>
static inline Terms<T> terms_of(typename Lanes<T>::vector d, typename Lanes<T>::vector delta,
                                typename Lanes<T>::vector s, typename Lanes<T>::vector s_other,
                                const Law& law) {
    typedef typename Lanes<T>::vector Vector;
    const Vector gap = d - delta, square = gap * gap, zero{};
    if constexpr (Kind == kSymmetric) {
        const T rounding = static_cast<T>(law.rounding), width = static_cast<T>(law.width * 1.4142135623730951);
        const Vector x = (lesser<T>(d, delta) - static_cast<T>(law.center)) / width;
        const Vector size = x < zero ? -x : x, t = T(1) / (T(1) + T(0.5) * size), u = T(2) * t - T(1);
        const Vector bell = exp_of_negative<T>(-x * x);
        Vector Q = fill<T>(Tail<T>::Q[Tail<T>::terms - 1]);
#pragma GCC unroll 32
        for (int k = Tail<T>::terms - 2; k >= 0; --k) Q = Q * u + Tail<T>::Q[k];
        const Vector tail = T(0.5) * bell * t * Q;
        const Vector F = x < zero ? T(1) - tail : tail;
        const Vector slope = static_cast<T>(0.5641895835477563) * bell / width;  // -F', by x
        const Vector soft = root_of<T>(square + rounding * rounding), rounded = soft - rounding;
        const Vector fall = d < delta ? rounded * slope : zero;
        const Vector inverse = T(1) / (soft > zero ? soft : fill<T>(1));
        return {(gap < zero ? -gap : gap) * F, rounded * F, T(0.5) * F * inverse,
                T(0.5) * (gap * inverse * F - fall)};
    } else {
        const T kept = static_cast<T>(law.tradeoff);
        Radial<Kind, T> F(d, delta, s);
        if constexpr (Two) {
            const Radial<Kind, T> G(d, delta, s_other);
            F.near = T(0.5) * (F.near + G.near);
            F.given = T(0.5) * (F.given + G.given);
            F.potential = T(0.5) * (F.potential + G.potential);
        }
        const Vector weight = (T(1) - kept) * F.near + kept * F.given;
        return {weight * square, (T(1) - kept) * F.potential + kept * F.given * square, weight,
                weight * gap};
    }
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
