// repel_pairs and repel_from: all pairs, exactly.
//
// Why it is fast. Points are copied to panels of one vector's width, coordinate by coordinate, so that
// a few vector instructions and one division serve 8 pairs (4 in double); four rows go over a panel
// together, which hides the latency of the division. Each pair is computed twice, once for
// each of its points: every sum then belongs to one thread and has one order.
#include "common/isa.h"
#include "embedding/repulsion/repulsion.h"
#include "embedding/repulsion/similarity.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRows = 4;           // rows that share the loads of a panel
constexpr Index kRowsPerTask = 32;
constexpr Index kPanels = 128;       // panels summed in T before the sum goes on in double
constexpr int kAnyDimension = 0;
static_assert(Lanes<float>::width % kRows == 0 && Lanes<double>::width % kRows == 0,
              "rows that go together must lie in one panel");

// Panel p holds points p*W .. p*W + W-1: coordinate k is vector k of the panel, the weight vector d.
template <class T>
struct Panels {
    typedef typename Lanes<T>::vector Vector;
    static constexpr Index W = Lanes<T>::width;
    Vector* data;
    Index n, d;

    Index count() const { return ceil_div(n, W); }
    Vector* at(Index panel) const { return data + panel * (d + 1); }

    bool pack(const Map<T>& y, const T* weights) {
        n = y.n, d = y.d;
        data = reinterpret_cast<Vector*>(allocate<T>(count() * W * (d + 1)));
        if (!data) return false;
        for (Index i = 0; i < count() * W; ++i) {
            T* place = reinterpret_cast<T*>(at(i / W)) + i % W;
            for (Index k = 0; k < d; ++k) place[k * W] = i < n ? y.points[i * d + k] : T(0);
            place[d * W] = i < n && weights ? weights[i] : T(0);
        }
        return true;
    }
};

// The rows that go together and where their sums are. Of a panel that holds a row itself or empty
// places, `keep` names the lanes that count (else it is null).
template <class T>
struct Rows {
    typedef typename Lanes<T>::vector Vector;
    typedef decltype(Vector{} < Vector{}) Mask;
    const T* y[kRows];
    T weight[kRows];
    const Mask* keep;
    double* sums;  // potential and d forces of each row
};

template <class T, class Kernel>
inline Similarity<T> similarity(const Kernel& kernel, typename Lanes<T>::vector r2, const Rows<T>& rows,
                                Index r, bool weighted, typename Lanes<T>::vector weight) {
    Similarity<T> pair = kernel(r2);
    if (rows.keep) {
        pair.K = rows.keep[r] ? pair.K : fill<T>(0);
        pair.G = rows.keep[r] ? pair.G : fill<T>(0);
    }
    if (weighted) pair.G *= rows.weight[r] + weight;
    return pair;
}

// Adds panels first .. last-1 to the sums of the rows: few dimensions stay in registers.
template <int D>
struct Add {
    template <class T, class Kernel>
    __attribute__((noinline))  // inlined it would have to share its registers
    static void run(const Panels<T>& panels, const Kernel& kernel, bool weighted, const Rows<T>& rows,
                    Index first, Index last) {
        typedef typename Lanes<T>::vector Vector;
        Vector potential[kRows] = {}, force[kRows][D] = {}, own[kRows][D];
        for (Index r = 0; r < kRows; ++r) {
            for (int k = 0; k < D; ++k) own[r][k] = fill<T>(rows.y[r][k]);
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
                const auto pair = similarity<T>(kernel, r2, rows, r, weighted, other[D]);
                potential[r] += pair.K;
#pragma GCC unroll 3
                for (int k = 0; k < D; ++k) force[r][k] += pair.G * gap[k];
            }
        }
        for (Index r = 0; r < kRows; ++r) {
            double* sums = rows.sums + r * (D + 1);
            sums[0] += total<T>(potential[r]);
            for (int k = 0; k < D; ++k) sums[1 + k] += total<T>(force[r][k]);
        }
    }
};

// Many dimensions: first all G of the panels, then the force one coordinate after another.
template <>
struct Add<kAnyDimension> {
    template <class T, class Kernel>
    __attribute__((noinline))
    static void run(const Panels<T>& panels, const Kernel& kernel, bool weighted, const Rows<T>& rows,
                    Index first, Index last) {
        typedef typename Lanes<T>::vector Vector;
        const Index d = panels.d;
        Vector G[kPanels][kRows], potential[kRows] = {};
        for (Index p = first; p < last; ++p) {
            const Vector* other = panels.at(p);
            Vector r2[kRows] = {};
            for (Index k = 0; k < d; ++k) {
#pragma GCC unroll 4
                for (Index r = 0; r < kRows; ++r) {
                    const Vector gap = rows.y[r][k] - other[k];
                    r2[r] += gap * gap;
                }
            }
            for (Index r = 0; r < kRows; ++r) {
                const auto pair = similarity<T>(kernel, r2[r], rows, r, weighted, other[d]);
                potential[r] += pair.K;
                G[p - first][r] = pair.G;
            }
        }
        for (Index r = 0; r < kRows; ++r) rows.sums[r * (d + 1)] += total<T>(potential[r]);
        for (Index k = 0; k < d; ++k) {
            Vector force[kRows] = {};
            for (Index p = first; p < last; ++p) {
                const Vector other = panels.at(p)[k];
#pragma GCC unroll 4
                for (Index r = 0; r < kRows; ++r) force[r] += G[p - first][r] * (rows.y[r][k] - other);
            }
            for (Index r = 0; r < kRows; ++r) rows.sums[r * (d + 1) + 1 + k] += total<T>(force[r]);
        }
    }
};

// All panels for the rows `begin` and following. Runs of ordinary panels are cut at the panel that
// holds the rows themselves (if `exclude_self`) and before a last panel that is not full.
template <int D, class T, class Kernel>
void sum_rows(const Panels<T>& panels, const Kernel& kernel, bool weighted, Rows<T> rows, Index begin,
              bool exclude_self) {
    typedef typename Rows<T>::Mask Mask;
    constexpr Index W = Panels<T>::W;
    const Index n_panels = panels.count();
    const Index own = exclude_self ? begin / W : -1, ragged = panels.n % W ? n_panels - 1 : -1;
    for (Index e = 0; e < kRows * (panels.d + 1); ++e) rows.sums[e] = 0;
    for (Index first = 0, last; first < n_panels; first = last) {
        if (first == own || first == ragged) {
            Mask keep[kRows];
            for (Index r = 0; r < kRows; ++r) {
                for (Index lane = 0; lane < W; ++lane) {
                    const Index j = first * W + lane;
                    keep[r][lane] = j < panels.n && !(exclude_self && j == begin + r) ? -1 : 0;
                }
            }
            last = first + 1;
            rows.keep = keep;
            Add<D>::run(panels, kernel, weighted, rows, first, last);
        } else {
            last = min_of(n_panels, first + kPanels);
            if (first < own) last = min_of(last, own);
            if (first < ragged) last = min_of(last, ragged);
            rows.keep = nullptr;
            Add<D>::run(panels, kernel, weighted, rows, first, last);
        }
    }
}

template <int D, class T, class Kernel>
bool repel(const Map<T>& from, const Map<T>& y, const Kernel& kernel, const T* weights,
           bool exclude_self, Repulsion<T> out, int n_threads) {
    const Index d = y.d, sums_per_task = kRows * (d + 1);
    Panels<T> panels;
    double* sums = allocate<double>(n_threads * sums_per_task);
    const bool enough = panels.pack(y, weights) && sums;
    const Index n_tasks = ceil_div(from.n, kRowsPerTask);
    parallel(enough ? n_tasks : 0, n_threads, [&](Index task, int slot) {
        Rows<T> rows;
        rows.sums = sums + slot * sums_per_task;
        const Index end = min_of(from.n, (task + 1) * kRowsPerTask);
        for (Index begin = task * kRowsPerTask; begin < end; begin += kRows) {
            for (Index r = 0; r < kRows; ++r) {
                const Index i = min_of(begin + r, from.n - 1);  // the last row fills up the four
                rows.y[r] = from.points + i * d;
                rows.weight[r] = weights ? weights[i] : T(0);
            }
            sum_rows<D>(panels, kernel, weights != nullptr, rows, begin, exclude_self);
            for (Index i = begin; i < min_of(end, begin + kRows); ++i) {
                const double* own = rows.sums + (i - begin) * (d + 1);
                out.potential[i] = own[0];
                for (Index k = 0; k < d; ++k) out.forces[i * d + k] = static_cast<T>(own[1 + k]);
            }
        }
    });
    std::free(panels.data), std::free(sums);
    return enough;
}

template <class T, class Kernel>
bool choose_dimension(const Map<T>& from, const Map<T>& y, const Kernel& kernel, const T* weights,
                      bool exclude_self, Repulsion<T> out, int n_threads) {
    const auto run = y.d == 1   ? repel<1, T, Kernel>
                     : y.d == 2 ? repel<2, T, Kernel>
                     : y.d == 3 ? repel<3, T, Kernel>
                                : repel<kAnyDimension, T, Kernel>;
    return run(from, y, kernel, weights, exclude_self, out, n_threads);
}

template <class T>
bool choose_kernel(const Map<T>& from, const Map<T>& y, Decay decay, const T* weights,
                   bool exclude_self, Repulsion<T> out, int n_threads) {
    if (decay.gaussian) {
        return choose_dimension(from, y, Gaussian<T>{}, weights, exclude_self, out, n_threads);
    }
    if (decay.dof == 1) {
        return choose_dimension(from, y, Cauchy<T>{}, weights, exclude_self, out, n_threads);
    }
    return choose_dimension(from, y, Student<T>(decay.dof), weights, exclude_self, out, n_threads);
}

}  // namespace

template <class T>
bool repel_pairs(Map<T> y, Decay decay, const T* weights, Repulsion<T> out, int n_threads) {
    return choose_kernel(y, y, decay, weights, true, out, n_threads);
}

template <class T>
bool repel_from(Map<T> from, Map<T> y, Decay decay, Repulsion<T> out, int n_threads) {
    return choose_kernel<T>(from, y, decay, nullptr, false, out, n_threads);
}

#define LOWLAND_INSTANTIATE(T)                                                      \
    template bool repel_pairs<T>(Map<T>, Decay, const T*, Repulsion<T>, int);       \
    template bool repel_from<T>(Map<T>, Map<T>, Decay, Repulsion<T>, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
