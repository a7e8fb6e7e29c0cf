// unit_sums: all pairs of two sets of points, exactly.
//
// Points y are copied to panels of one vector's width, coordinate by coordinate, so that one square
// root and one division serve 8 pairs (4 in double); four rows go over a panel together, which hides
// their latency. The last panel is filled up with NaN, which no comparison counts. A row is summed by
// one task, in T over a bounded number of panels and then in double: the number of threads does not
// change a bit.
#include <math.h>

#include "common/elementary.h"
#include "common/isa.h"
#include "curvilinear/unit_sums.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRows = 4;
constexpr Index kRowsPerTask = 32;
constexpr Index kPanels = 128;  // panels summed in T before the sum goes on in double
constexpr int kAnyDimension = 0;

template <class T>
struct PointPanels {
    typedef typename Lanes<T>::vector Vector;
    static constexpr Index W = Lanes<T>::width;
    Vector* data;
    Index n, d;

    Index count() const { return ceil_div(n, W); }
    const Vector* at(Index panel) const { return data + panel * d; }

    bool pack(const PointRows<T>& y) {
        n = y.n, d = y.d;
        data = reinterpret_cast<Vector*>(allocate<T>(count() * W * d));
        if (!data) return false;
        T* place = reinterpret_cast<T*>(data);
        for (Index i = 0; i < count() * W; ++i) {
            for (Index k = 0; k < d; ++k) {
                place[(i / W * d + k) * W + i % W] = i < n ? y.points[i * d + k] : T(__builtin_nan(""));
            }
        }
        return true;
    }
};

template <class T>
static inline typename Lanes<T>::vector square_root(typename Lanes<T>::vector x) {
    typename Lanes<T>::vector root;
    for (int lane = 0; lane < Lanes<T>::width; ++lane) root[lane] = sqrt(x[lane]);
    return root;
}

#if defined(__AVX2__)
template <>
inline Lanes<float>::vector square_root<float>(Lanes<float>::vector x) {
    return reinterpret_cast<Lanes<float>::vector>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
}
template <>
inline Lanes<double>::vector square_root<double>(Lanes<double>::vector x) {
    return reinterpret_cast<Lanes<double>::vector>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
}
#endif

template <class T>
struct Length {
    typename Lanes<T>::vector distance, inverse;
};

// The root of r2 and its inverse; both 0 where r2 is 0 or NaN.
template <class T>
static inline Length<T> length_of(typename Lanes<T>::vector r2) {
    typedef typename Lanes<T>::vector Vector;
    const Vector zero{};
    const auto apart = r2 > zero;
    const Vector root = square_root<T>(apart ? r2 : fill<T>(1));
    const Vector inverse = T(1) / root;
    return {apart ? root : zero, apart ? inverse : zero};
}

// Adds panels first .. last-1 to the sums of four rows z: few dimensions stay in registers.
template <int D>
struct AddPanels {
    template <class T>
    __attribute__((noinline))  // inlined it would have to share its registers
    static void run(const PointPanels<T>& panels, const T* const* z, Index first, Index last, double* sums) {
        typedef typename Lanes<T>::vector Vector;
        Vector distance[kRows] = {}, unit[kRows][D] = {}, own[kRows][D];
        for (Index r = 0; r < kRows; ++r) {
            for (int k = 0; k < D; ++k) own[r][k] = fill<T>(z[r][k]);
        }
        for (Index p = first; p < last; ++p) {
            const Vector* other = panels.at(p);
#pragma GCC unroll 4
            for (Index r = 0; r < kRows; ++r) {
                Vector gap[D], r2 = {};
#pragma GCC unroll 3
                for (int k = 0; k < D; ++k) {
                    gap[k] = own[r][k] - other[k];
                    r2 += gap[k] * gap[k];
                }
                const Length<T> length = length_of<T>(r2);
                distance[r] += length.distance;
#pragma GCC unroll 3
                for (int k = 0; k < D; ++k) {
                    // NaN of a place that is filled up, times 0, would be NaN
                    unit[r][k] += length.inverse * (gap[k] == gap[k] ? gap[k] : Vector{});
                }
            }
        }
        for (Index r = 0; r < kRows; ++r) {
            double* out = sums + r * (D + 1);
            out[0] += sum_of(distance[r]);
            for (int k = 0; k < D; ++k) out[1 + k] += sum_of(unit[r][k]);
        }
    }
};

// Many dimensions: first all inverse distances of the panels, then one coordinate after another.
template <>
struct AddPanels<kAnyDimension> {
    template <class T>
    __attribute__((noinline))
    static void run(const PointPanels<T>& panels, const T* const* z, Index first, Index last, double* sums) {
        typedef typename Lanes<T>::vector Vector;
        const Index d = panels.d;
        Vector inverse[kPanels][kRows], distance[kRows] = {};
        for (Index p = first; p < last; ++p) {
            const Vector* other = panels.at(p);
            Vector r2[kRows] = {};
            for (Index k = 0; k < d; ++k) {
#pragma GCC unroll 4
                for (Index r = 0; r < kRows; ++r) {
                    const Vector gap = z[r][k] - other[k];
                    r2[r] += gap * gap;
                }
            }
            for (Index r = 0; r < kRows; ++r) {
                const Length<T> length = length_of<T>(r2[r]);
                distance[r] += length.distance;
                inverse[p - first][r] = length.inverse;
            }
        }
        for (Index r = 0; r < kRows; ++r) sums[r * (d + 1)] += sum_of(distance[r]);
        for (Index k = 0; k < d; ++k) {
            Vector unit[kRows] = {};
            for (Index p = first; p < last; ++p) {
                const Vector other = panels.at(p)[k];
#pragma GCC unroll 4
                for (Index r = 0; r < kRows; ++r) {
                    const Vector gap = z[r][k] - other;
                    unit[r] += inverse[p - first][r] * (gap == gap ? gap : Vector{});
                }
            }
            for (Index r = 0; r < kRows; ++r) sums[r * (d + 1) + 1 + k] += sum_of(unit[r]);
        }
    }
};

template <int D, class T>
bool sum_rows(const PointRows<T>& z, const PointRows<T>& y, UnitSums out, int n_threads) {
    const Index d = y.d, wide = d + 1;
    PointPanels<T> panels;
    double* sums = allocate<double>(n_threads * kRows * wide);
    const bool enough = panels.pack(y) && sums;
    parallel(enough ? ceil_div(z.n, kRowsPerTask) : 0, n_threads, [&](Index task, int slot) {
        double* own = sums + slot * kRows * wide;
        const Index end = min_of(z.n, (task + 1) * kRowsPerTask);
        for (Index begin = task * kRowsPerTask; begin < end; begin += kRows) {
            const T* rows[kRows];
            for (Index r = 0; r < kRows; ++r) {  // the last row fills up the four
                rows[r] = z.points + min_of(begin + r, z.n - 1) * d;
            }
            for (Index e = 0; e < kRows * wide; ++e) own[e] = 0;
            for (Index p = 0; p < panels.count(); p += kPanels) {
                AddPanels<D>::template run<T>(panels, rows, p, min_of(panels.count(), p + kPanels), own);
            }
            for (Index i = begin; i < min_of(end, begin + kRows); ++i) {
                const double* from = own + (i - begin) * wide;
                out.distances[i] = from[0];
                for (Index k = 0; k < d; ++k) out.units[i * d + k] = from[1 + k];
            }
        }
    });
    std::free(panels.data), std::free(sums);
    return enough;
}

}  // namespace

template <class T>
bool unit_sums(PointRows<T> z, PointRows<T> y, UnitSums out, int n_threads) {
    const auto run = y.d == 1   ? sum_rows<1, T>
                     : y.d == 2 ? sum_rows<2, T>
                     : y.d == 3 ? sum_rows<3, T>
                                : sum_rows<kAnyDimension, T>;
    return run(z, y, out, n_threads);
}

template bool unit_sums<float>(PointRows<float>, PointRows<float>, UnitSums, int);
template bool unit_sums<double>(PointRows<double>, PointRows<double>, UnitSums, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
