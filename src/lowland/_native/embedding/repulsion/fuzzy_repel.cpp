// fuzzy_repel and fuzzy_sample: UMAP's repulsion over all pairs, and over drawn pairs (see FuzzyLaw).
//
// A vector's worth of points is compared at a time, coordinate by coordinate. The power is computed by series;
// the potential, which is needed now and then only, is read from a table.
#include <math.h>

#include "common/elementary.h"
#include "common/points.h"
#include "embedding/attraction/fuzzy.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 32, kMostInRegisters = 3;

template <class T>
struct Repelling {
    typedef typename Lanes<T>::vector Vector;
    static constexpr T kLeast = T(1e-12), kMost = T(1e12), kFlat = T(1e18);  // as in FuzzyPull
    T a, b, soft;

    explicit Repelling(const FuzzyLaw& law)
        : a(static_cast<T>(law.a)), b(static_cast<T>(law.b)), soft(static_cast<T>(law.soft)) {}

    Vector operator()(Vector u) const {
        u = u > kLeast ? u : fill<T>(kLeast);
        u = u < kMost ? u : fill<T>(kMost);
        Vector power = a * power_of_positive<T>(u, b);
        power = power < kFlat ? power : fill<T>(kFlat);
        return 2 * b / ((soft + u) * (T(1) + power));
    }
};

double height_at(const FuzzyLaw& law, double u) {
    if (!(u > 0)) return law.heights[0];
    const double place = (log2(u) - static_cast<double>(law.first)) * static_cast<double>(law.per_octave);
    if (!(place > 0)) return law.heights[0];
    if (!(place < static_cast<double>(law.n_heights - 1))) return 0;
    const Index e = static_cast<Index>(place);
    const double t = place - static_cast<double>(e);
    return (1 - t) * law.heights[e] + t * law.heights[e + 1];
}

// The force on one point in D dimensions (d of them if D is 0); `own` is the number of the point itself or -1.
template <class T, int D>
void repel_row(const Repelling<T>& law, const T* here, const Coordinates<T>& points, Index n, Index own, Index d,
               T* differences, T* force) {
    typedef typename Lanes<T>::vector Vector;
    constexpr int W = Lanes<T>::width;
    const Index axes = D > 0 ? D : d;
    Vector total[kMostInRegisters] = {};
    if (D == 0) {
        for (Index k = 0; k < axes; ++k) force[k] = 0;
    }
    for (Index j = 0; j < n; j += W) {
        Vector square = {}, apart[kMostInRegisters] = {};
        for (Index k = 0; k < axes; ++k) {
            const Vector gap = here[k] - *reinterpret_cast<const Vector*>(points.data + k * points.stride + j);
            if constexpr (D > 0) apart[k] = gap;
            else *reinterpret_cast<typename Lanes<T>::loose*>(differences + k * W) = gap;
            square += gap * gap;
        }
        Vector push = law(square);
        if (j + W > n || (own >= j && own < j + W)) {
            for (int lane = 0; lane < W; ++lane) {
                if (j + lane >= n || j + lane == own) push[lane] = 0;
            }
        }
        for (Index k = 0; k < axes; ++k) {
            if constexpr (D > 0) total[k] += push * apart[k];
            else force[k] += sum_of(push * *reinterpret_cast<typename Lanes<T>::loose*>(differences + k * W));
        }
    }
    if constexpr (D > 0) {
        for (int k = 0; k < D; ++k) force[k] = static_cast<T>(sum_of(total[k]));
    }
}

template <class T, int D>
bool repel_in(const T* from, Index m, const T* y, Index n, Index d, const FuzzyLaw& law, bool same, double* potential,
              T* forces, int n_threads) {
    Coordinates<T> points;
    T* differences = allocate<T>(n_threads * d * Lanes<T>::width);
    const bool enough = points.pack(y, n, d) && differences != nullptr;
    const Repelling<T> repelling(law);
    parallel(enough ? ceil_div(m, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        T* own_differences = differences + slot * d * Lanes<T>::width;
        for (Index i = task * kRowsPerTask; i < min_of(m, (task + 1) * kRowsPerTask); ++i) {
            const T* here = from + i * d;
            repel_row<T, D>(repelling, here, points, n, same ? i : -1, d, own_differences, forces + i * d);
            if (potential == nullptr) continue;
            double height = 0;
            for (Index j = 0; j < n; ++j) {
                if (same && j == i) continue;
                double u = 0;
                for (Index k = 0; k < d; ++k) {
                    const double gap = static_cast<double>(here[k]) - static_cast<double>(y[j * d + k]);
                    u += gap * gap;
                }
                height += height_at(law, u);
            }
            potential[i] = height;
        }
    });
    std::free(points.data), std::free(differences);
    return enough;
}

// The number of a draw: SplitMix64 of a counter, so that no draw depends on another one.
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

}  // namespace

template <class T>
bool fuzzy_repel(const T* from, Index m, const T* y, Index n, Index d, FuzzyLaw law, bool same, double* potential,
                 T* forces, int n_threads) {
    if (d == 1) return repel_in<T, 1>(from, m, y, n, d, law, same, potential, forces, n_threads);
    if (d == 2) return repel_in<T, 2>(from, m, y, n, d, law, same, potential, forces, n_threads);
    if (d == 3) return repel_in<T, 3>(from, m, y, n, d, law, same, potential, forces, n_threads);
    return repel_in<T, 0>(from, m, y, n, d, law, same, potential, forces, n_threads);
}

// Each point is compared with draws.count others; the sums are scaled to all n - 1.
template <class T>
bool fuzzy_sample(const T* y, Index n, Index d, FuzzyLaw law, Draws draws, double* potential, T* forces,
                  int n_threads) {
    typedef typename Lanes<T>::vector Vector;
    constexpr int W = Lanes<T>::width;
    const Repelling<T> repelling(law);
    parallel(ceil_div(n, Index(256)), n_threads, [&](Index task, int) {
        for (Index i = task * 256; i < min_of(n, (task + 1) * 256); ++i) {
            const T* here = y + i * d;
            T* force = forces + i * d;
            for (Index k = 0; k < d; ++k) force[k] = 0;
            double height = 0;
            const std::uint64_t key = mixed(draws.seed ^ mixed(static_cast<std::uint64_t>(i)));
            for (Index first = 0; first < draws.count; first += W) {
                Index other[W];
                Vector square = {};
                const int lanes = static_cast<int>(min_of(W, draws.count - first));
                for (int lane = 0; lane < lanes; ++lane) {
                    // 32 bits times n - 1, shifted: a number below n - 1; the point itself is passed over
                    const std::uint64_t word = mixed(key + static_cast<std::uint64_t>(first + lane)) >> 32;
                    const Index drawn = static_cast<Index>((word * static_cast<std::uint64_t>(n - 1)) >> 32);
                    other[lane] = drawn + (drawn >= i);
                    T u = 0;
                    for (Index k = 0; k < d; ++k) {
                        const T gap = here[k] - y[other[lane] * d + k];
                        u += gap * gap;
                    }
                    square[lane] = u;
                }
                const Vector push = repelling(square);
                for (int lane = 0; lane < lanes; ++lane) {
                    for (Index k = 0; k < d; ++k) force[k] += push[lane] * (here[k] - y[other[lane] * d + k]);
                    if (potential != nullptr) height += height_at(law, static_cast<double>(square[lane]));
                }
            }
            const double scale = static_cast<double>(n - 1) / static_cast<double>(draws.count);
            for (Index k = 0; k < d; ++k) force[k] *= static_cast<T>(scale);
            if (potential != nullptr) potential[i] = height * scale;
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                                     \
    template bool fuzzy_repel<T>(const T*, Index, const T*, Index, Index, FuzzyLaw, bool, double*, T*, int);       \
    template bool fuzzy_sample<T>(const T*, Index, Index, FuzzyLaw, Draws, double*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
