// Fourier transforms in place, of 8 sequences at a time: one per lane.
//
// Forward, a stage of radix F splits a block of length L into F blocks of the frequencies k = 0 .. F - 1
// modulo F; the frequencies end up in the order of their digits (see fourier_order). Backward, the same
// stages run in reverse, from that order to the natural one. A convolution needs no other order.
#pragma once
#include <math.h>

#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

typedef Lanes<float>::vector Wide;
constexpr Index kLanes = Lanes<float>::width;
constexpr int kMostStages = 40;
constexpr double kPi = 3.14159265358979323846;

struct Complex {
    Wide re, im;
};

static inline Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
static inline Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
static inline Complex operator*(float a, const Complex& b) { return {a * b.re, a * b.im}; }

// exp(-2 pi i x) for a wave that goes forward, its conjugate for one that goes back.
struct Wave {
    float cosine, sine;
};

template <bool Forward>
static inline __attribute__((always_inline)) Complex turned(const Complex& z, Wave w) {
    if constexpr (Forward) return {z.re * w.cosine + z.im * w.sine, z.im * w.cosine - z.re * w.sine};
    return {z.re * w.cosine - z.im * w.sine, z.im * w.cosine + z.re * w.sine};
}

// a -+ i b: a quarter of a turn.
template <bool Forward>
static inline __attribute__((always_inline)) Complex less_i(const Complex& a, const Complex& b) {
    if constexpr (Forward) return {a.re + b.im, a.im - b.re};
    return {a.re - b.im, a.im + b.re};
}

// The transform of F numbers.
template <int F, bool Forward>
static inline __attribute__((always_inline)) void butterfly(Complex* x) {
    static_assert(F >= 2 && F <= 5, "radices are 2, 3, 4 and 5");
    if constexpr (F == 2) {
        const Complex a = x[0];
        x[0] = a + x[1];
        x[1] = a - x[1];
    } else if constexpr (F == 3) {
        const Complex sum = x[1] + x[2], difference = 0.8660254037844386f * (x[1] - x[2]);
        const Complex rest = x[0] - 0.5f * sum;
        x[0] = x[0] + sum;
        x[1] = less_i<Forward>(rest, difference);
        x[2] = less_i<!Forward>(rest, difference);
    } else if constexpr (F == 4) {
        const Complex even = x[0] + x[2], odd = x[1] + x[3], rest = x[0] - x[2], other = x[1] - x[3];
        x[0] = even + odd;
        x[2] = even - odd;
        x[1] = less_i<Forward>(rest, other);
        x[3] = less_i<!Forward>(rest, other);
    } else {
        constexpr float c1 = 0.30901699437494745f, c2 = -0.8090169943749475f;  // cos(2 pi k / 5)
        constexpr float s1 = 0.9510565162951535f, s2 = 0.5877852522924731f;
        const Complex a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
        const Complex near = x[0] + (c1 * a + c2 * b), far = x[0] + (c2 * a + c1 * b);
        const Complex up = s1 * c + s2 * d, down = s2 * c - s1 * d;
        x[0] = x[0] + (a + b);
        x[1] = less_i<Forward>(near, up);
        x[4] = less_i<!Forward>(near, up);
        x[2] = less_i<Forward>(far, down);
        x[3] = less_i<!Forward>(far, down);
    }
}

// One stage on `blocks` blocks of length F * part. waves[j * (F - 1) + k - 1] turns by j k / (F part).
template <int F, bool Forward>
static void run_stage(Complex* x, Index blocks, Index part, const Wave* waves) {
    for (Index block = 0; block < blocks; ++block, x += F * part) {
        for (Index j = 0; j < part; ++j) {
            Complex some[F];
            for (int k = 0; k < F; ++k) some[k] = x[j + k * part];
            if (!Forward && part > 1) {
                for (int k = 1; k < F; ++k) some[k] = turned<Forward>(some[k], waves[j * (F - 1) + k - 1]);
            }
            butterfly<F, Forward>(some);
            if (Forward && part > 1) {
                for (int k = 1; k < F; ++k) some[k] = turned<Forward>(some[k], waves[j * (F - 1) + k - 1]);
            }
            for (int k = 0; k < F; ++k) x[j + k * part] = some[k];
        }
    }
}

// Stages for one length: its factors, and what each turns by. `half[i]` is half as fast as the slowest
// wave: it makes the odd frequencies of a sequence that is as long again, with zeros.
struct Fourier {
    Index n = 0;
    int n_stages = 0;
    int radix[kMostStages] = {};
    Wave* waves[kMostStages] = {};
    Wave* half = nullptr;

    // False if the length has a prime factor above 5.
    bool factor(Index length) {
        n = length;
        n_stages = 0;
        if (length < 1) return false;
        constexpr int kRadices[] = {4, 2, 3, 5};
        for (int f : kRadices) {
            for (; length % f == 0; length /= f) radix[n_stages++] = f;
        }
        return length == 1;
    }

    // How many waves `prepare` needs room for.
    Index n_waves() const {
        Index count = n;
        Index length = n;
        for (int s = 0; s < n_stages; ++s) {
            count += length / radix[s] * (radix[s] - 1);
            length /= radix[s];
        }
        return count;
    }

    void prepare(Wave* room) {
        half = room;
        room += n;
        for (Index i = 0; i < n; ++i) {
            const double angle = kPi * static_cast<double>(i) / static_cast<double>(n);
            half[i] = {static_cast<float>(cos(angle)), static_cast<float>(sin(angle))};
        }
        Index length = n;
        for (int s = 0; s < n_stages; ++s) {
            const Index f = radix[s], part = length / f, step = n / length;
            waves[s] = room;
            for (Index j = 0; j < part; ++j) {
                for (Index k = 1; k < f; ++k) {
                    const Index at = 2 * (step * j * k % n);  // half has half a turn only
                    *room++ = at < n ? half[at] : Wave{-half[at - n].cosine, -half[at - n].sine};
                }
            }
            length = part;
        }
    }

    template <bool Forward>
    void stage(int s, Complex* x, Index blocks, Index part) const {
        if (radix[s] == 2) return run_stage<2, Forward>(x, blocks, part, waves[s]);
        if (radix[s] == 3) return run_stage<3, Forward>(x, blocks, part, waves[s]);
        if (radix[s] == 4) return run_stage<4, Forward>(x, blocks, part, waves[s]);
        run_stage<5, Forward>(x, blocks, part, waves[s]);
    }

    // The first stage goes over all; after it each of its blocks is finished while it is in the cache.
    void forward(Complex* x) const {
        if (n_stages == 0) return;
        Index part = n / radix[0];
        stage<true>(0, x, 1, part);
        for (Index block = 0; block < radix[0]; ++block) {
            Index length = part, blocks = 1;
            for (int s = 1; s < n_stages; ++s) {
                length /= radix[s];
                stage<true>(s, x + block * part, blocks, length);
                blocks *= radix[s];
            }
        }
    }

    void back(Complex* x) const {
        if (n_stages == 0) return;
        const Index part = n / radix[0];
        for (Index block = 0; block < radix[0]; ++block) {
            Index length = 1, blocks = part;
            for (int s = n_stages - 1; s > 0; --s) {
                blocks /= radix[s];
                stage<false>(s, x + block * part, blocks, length);
                length *= radix[s];
            }
        }
        stage<false>(0, x, 1, part);
    }

    // The frequency at each place of a transform.
    void order(std::int32_t* frequency) const {
        for (Index place = 0; place < n; ++place) {
            Index rest = place, length = n, stride = 1, sum = 0;
            for (int s = 0; s < n_stages; ++s) {
                length /= radix[s];
                sum += rest / length * stride;
                rest %= length;
                stride *= radix[s];
            }
            frequency[place] = static_cast<std::int32_t>(sum);
        }
    }
};

// Rows and columns of 8 vectors exchanged.
static inline __attribute__((always_inline)) void transpose_square(Wide* v) {
    Wide a[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    Wide b[8];
    for (int i = 0; i < 8; i += 4) {
        for (int k = 0; k < 2; ++k) {
            b[i + 2 * k] = __builtin_shufflevector(a[i + k], a[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            b[i + 2 * k + 1] = __builtin_shufflevector(a[i + k], a[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < 4; ++i) {
        v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
