// exp, expm1, log1p and powers of whole vectors, from their series; about one unit in the last place,
// powers some units.
//
// Arguments are first brought near 0 by powers of two, which are exact, so that a few terms suffice.
#pragma once
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

// What the series and the layout of the bits need to know about T.
template <class T>
struct Format;

template <>
struct Format<float> {
    typedef std::uint32_t Word;
    typedef Word words __attribute__((vector_size(kVectorBytes)));
    static constexpr int mantissa = 23, bias = 127;
    static constexpr int exp_terms = 7, log_terms = 4;
    static constexpr float huge = 0x1p126f;  // where log1p ends
    // ln 2 in two parts, the first with zeros at its end: small integers times it are exact
    static constexpr float ln2_high = 6.9314575195e-01f, ln2_low = 1.4286067653e-06f;
    static constexpr Word half_root = 0x3f3504f3;  // the bits of sqrt(1/2)
};

template <>
struct Format<double> {
    typedef std::uint64_t Word;
    typedef Word words __attribute__((vector_size(kVectorBytes)));
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr int exp_terms = 13, log_terms = 9;
    static constexpr double huge = 0x1p1022;
    static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    static constexpr Word half_root = 0x3fe6a09e667f3bcd;
};

// A vector whose lanes are all the same.
template <class T>
static inline typename Lanes<T>::vector fill(T value) {
    return value - typename Lanes<T>::vector{};
}

template <class T>
constexpr T inverse_factorial(int k) {
    double product = 1;
    for (int i = 2; i <= k; ++i) product *= i;
    return static_cast<T>(1 / product);
}

// exp(x) for x <= 0:  x = k ln 2 + r with |r| <= ln 2 / 2,  exp(x) = 2^k sum r^i / i!.
// exp(0) is 1 exactly; what lies below the smallest normal number is 0.
template <class T>
static inline typename Lanes<T>::vector exp_of_negative(typename Lanes<T>::vector x) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Format<T>::words Words;
    constexpr T log2_e = T(1.44269504088896340736);
    constexpr T lowest = T(1 - Format<T>::bias) * T(0.6931471805599453);
    constexpr T rounder = T(1.5) * T(typename Format<T>::Word(1) << Format<T>::mantissa);
    const auto vanishes = x < lowest;
    x = vanishes ? fill<T>(0) : x;
    const Vector shifted = x * log2_e + rounder;  // the last bits of the sum are the integer k
    const Vector k = shifted - rounder;
    const Vector r = (x - k * Format<T>::ln2_high) - k * Format<T>::ln2_low;
    Vector sum = fill<T>(inverse_factorial<T>(Format<T>::exp_terms));
#pragma GCC unroll 16
    for (int i = Format<T>::exp_terms - 1; i >= 0; --i) sum = sum * r + inverse_factorial<T>(i);
    const Words scaled = reinterpret_cast<Words>(sum) +
                         (reinterpret_cast<Words>(shifted) << Format<T>::mantissa);
    return vanishes ? fill<T>(0) : reinterpret_cast<Vector>(scaled);
}

// exp(x) - 1 for x <= 0, precise also near 0: with k and r as above it is 2^k (exp(r) - 1) + (2^k - 1).
// What lies below the smallest normal number's logarithm is -1.
template <class T>
static inline typename Lanes<T>::vector expm1_of_negative(typename Lanes<T>::vector x) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Format<T>::words Words;
    constexpr T log2_e = T(1.44269504088896340736);
    constexpr T lowest = T(1 - Format<T>::bias) * T(0.6931471805599453);
    constexpr T rounder = T(1.5) * T(typename Format<T>::Word(1) << Format<T>::mantissa);
    const auto vanishes = x < lowest;
    x = vanishes ? fill<T>(0) : x;
    const Vector shifted = x * log2_e + rounder;
    const Vector k = shifted - rounder;
    const Vector r = (x - k * Format<T>::ln2_high) - k * Format<T>::ln2_low;
    Vector sum = fill<T>(inverse_factorial<T>(Format<T>::exp_terms));
#pragma GCC unroll 16
    for (int i = Format<T>::exp_terms - 1; i >= 1; --i) sum = sum * r + inverse_factorial<T>(i);
    const Words one = reinterpret_cast<Words>(fill<T>(1));
    const Vector power =
        reinterpret_cast<Vector>(one + (reinterpret_cast<Words>(shifted) << Format<T>::mantissa));
    return vanishes ? fill<T>(-1) : power * (sum * r) + (power - T(1));
}

// log(1 + x) for 0 <= x <= huge, precise also where 1 + x rounds to 1.
// 1 + x = 2^k (1 + f),  log(1 + f) = 2 artanh(s) = 2 s + 2/3 s^3 + ...  with s = f / (2 + f).
template <class T>
static inline typename Lanes<T>::vector log1p_of_positive(typename Lanes<T>::vector x) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Format<T>::words Words;
    typedef typename Format<T>::Word Word;
    constexpr int mantissa = Format<T>::mantissa;
    constexpr T whole = T(Word(1) << mantissa);  // from here on T counts by ones
    constexpr Word whole_bits = Word(Format<T>::bias + mantissa) << mantissa;
    const Vector u = T(1) + x;
    const Words bits = reinterpret_cast<Words>(u);
    const Words exponent = (bits - Format<T>::half_root) >> mantissa;
    const Vector k = reinterpret_cast<Vector>(exponent | whole_bits) - whole;
    const Vector m = reinterpret_cast<Vector>(bits - (exponent << mantissa));
    const Vector shrink = reinterpret_cast<Vector>((Word(Format<T>::bias) - exponent) << mantissa);
    const Vector f = (m - T(1)) + (x - (u - T(1))) * shrink;  // with what 1 + x lost to rounding
    const Vector s = f / (T(2) + f), z = s * s;
    Vector sum = fill<T>(T(2) / T(2 * Format<T>::log_terms + 1));
#pragma GCC unroll 16
    for (int i = Format<T>::log_terms - 1; i >= 1; --i) sum = sum * z + T(2) / T(2 * i + 1);
    // 2 s = f - f^2/2 + s f^2/2: so the large part, f, is added last and unrounded
    const Vector half_square = T(0.5) * f * f;
    const Vector rest = half_square - (s * (half_square + z * sum) + k * Format<T>::ln2_low);
    return k * Format<T>::ln2_high - (rest - f);
}

// x^b for normal numbers x > 0 and results that are normal numbers:  x^b = exp(b log x).
// x = 2^k (1 + f) as above;  b log2(x) = m + r with |r| <= 1/2,  x^b = 2^m exp(r ln 2).
template <class T>
static inline typename Lanes<T>::vector power_of_positive(typename Lanes<T>::vector x, T b) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Format<T>::words Words;
    typedef typename Format<T>::Word Word;
    constexpr int mantissa = Format<T>::mantissa;
    constexpr T log2_e = T(1.44269504088896340736), ln2 = T(0.69314718055994530942);
    constexpr T rounder = T(1.5) * T(Word(1) << mantissa);
    constexpr T middle = T(Word(1) << mantissa) + T(Format<T>::bias);  // exponents are counted from here
    constexpr Word whole_bits = Word(Format<T>::bias + mantissa) << mantissa;
    const Words bits = reinterpret_cast<Words>(x);
    const Words exponent = (bits - Format<T>::half_root + (Word(Format<T>::bias) << mantissa)) >> mantissa;
    const Vector k = reinterpret_cast<Vector>(exponent | whole_bits) - middle;
    const Vector m = reinterpret_cast<Vector>(bits - (exponent << mantissa) + (Word(Format<T>::bias) << mantissa));
    const Vector f = m - T(1), s = f / (T(2) + f), z = s * s;
    Vector sum = fill<T>(T(2) / T(2 * Format<T>::log_terms + 1));
#pragma GCC unroll 16
    for (int i = Format<T>::log_terms - 1; i >= 0; --i) sum = sum * z + T(2) / T(2 * i + 1);
    const Vector power = b * (k + sum * s * log2_e);
    const Vector shifted = power + rounder;
    const Vector r = (power - (shifted - rounder)) * ln2;
    Vector series = fill<T>(inverse_factorial<T>(Format<T>::exp_terms));
#pragma GCC unroll 16
    for (int i = Format<T>::exp_terms - 1; i >= 0; --i) series = series * r + inverse_factorial<T>(i);
    const Words scaled = reinterpret_cast<Words>(series) + (reinterpret_cast<Words>(shifted) << mantissa);
    return reinterpret_cast<Vector>(scaled);
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
