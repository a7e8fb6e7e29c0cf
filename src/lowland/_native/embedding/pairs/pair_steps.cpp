// pair_starts, pair_lists, pair_forces, pair_step: the loss of pairs of points, and steps of Adam.
//
// Why it is fast. Each point sums the forces on it over lists of its partners in both directions. So
// every pair is computed twice, but no thread writes what another one reads, sums have one order, and
// the step of Adam is taken at once: a step is one pass over the map. Lists are whole vectors of
// partners, filled up with the point itself, whose force is 0.
#include <math.h>

#include "common/points.h"
#include "embedding/attraction/attract_row.h"
#include "embedding/pairs/pair_maps.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 256;
constexpr double kNear = 10, kMid = 10000;
constexpr double kFirst = 0.9, kSecond = 0.999, kLeast = 1e-7;  // betas and epsilon of Adam

// gradient_i = sum_j scale (y_i - y_j) / (offset + r^2)^2, times 1 / sqrt(1 + r^2) if Local.
template <class T>
struct Law {
    T scale, offset;
};

template <class T>
struct Laws {
    Law<T> near, mid, far;
    bool local;
    explicit Laws(const PairWeights& w)
        : near{static_cast<T>(2 * kNear * w.near * (w.local > 0 ? w.local : 1)), static_cast<T>(kNear + 1)},
          mid{static_cast<T>(2 * kMid * w.mid), static_cast<T>(kMid + 1)},
          far{static_cast<T>(-2 * w.far), T(2)},
          local(w.local > 0) {}
};

template <class T, int D, bool Local>
inline void add_forces(const PairList& list, Index i, const T* here, const T* points, Law<T> law,
                       typename Lanes<T>::vector* sums) {
    typedef typename Lanes<T>::vector Vector;
    constexpr int W = Lanes<T>::width;
    static_assert(kPairLanes % W == 0, "lists are whole vectors");
    Vector there[D] = {};
    for (Index e = list.starts[i]; e < list.starts[i + 1]; e += W) {
        load_points<T, D>(points, list.columns + e, there);
        Vector square = {};
        for (int k = 0; k < D; ++k) {
            there[k] = here[k] - there[k];
            square += there[k] * there[k];
        }
        const Vector below = law.offset + square;
        Vector force = law.scale / (below * below);
        if constexpr (Local) force /= root_of<T>(T(1) + square);
        for (int k = 0; k < D; ++k) sums[k] += force * there[k];
    }
}

// The gradient at point i of a map of 1, 2 or 3 dimensions.
template <class T, int D>
inline void forces_on(const PairLists& lists, const Laws<T>& laws, Index i, const T* points, T* gradient) {
    const T* here = points + i * stride_of<T, D>;
    typename Lanes<T>::vector sums[D] = {};
    if (laws.local) {
        add_forces<T, D, true>(lists.near, i, here, points, laws.near, sums);
    } else {
        add_forces<T, D, false>(lists.near, i, here, points, laws.near, sums);
    }
    add_forces<T, D, false>(lists.far, i, here, points, laws.far, sums);
    if (laws.mid.scale != 0) add_forces<T, D, false>(lists.mid, i, here, points, laws.mid, sums);
    for (int k = 0; k < D; ++k) gradient[k] = sum_of(sums[k]);
}

// The same for any number of dimensions, plainly.
template <class T>
void forces_on_many(const PairLists& lists, const Laws<T>& laws, Index i, const T* y, Index d, T* gradient) {
    for (Index k = 0; k < d; ++k) gradient[k] = 0;
    const T* here = y + i * d;
    const auto add = [&](const PairList& list, Law<T> law, bool local) {
        for (Index e = list.starts[i]; e < list.starts[i + 1]; ++e) {
            const T* there = y + list.columns[e] * d;
            T square = 0;
            for (Index k = 0; k < d; ++k) square += (here[k] - there[k]) * (here[k] - there[k]);
            T force = law.scale / ((law.offset + square) * (law.offset + square));
            if (local) force /= static_cast<T>(sqrt(1 + static_cast<double>(square)));
            for (Index k = 0; k < d; ++k) gradient[k] += force * (here[k] - there[k]);
        }
    };
    add(lists.near, laws.near, laws.local);
    add(lists.far, laws.far, false);
    if (laws.mid.scale != 0) add(lists.mid, laws.mid, false);
}

// Half of the loss of the pairs in the lists of point i: each pair is in two lists.
template <class T>
double loss_at(const PairLists& lists, const PairWeights& w, Index i, const T* y, Index d) {
    const T* here = y + i * d;
    double loss = 0;
    const auto add = [&](const PairList& list, const auto& law) {
        for (Index e = list.starts[i]; e < list.starts[i + 1]; ++e) {
            const Index j = list.columns[e];
            if (j == i) continue;  // filled up
            double s = 1;
            for (Index k = 0; k < d; ++k) {
                const double gap = static_cast<double>(here[k]) - static_cast<double>(y[j * d + k]);
                s += gap * gap;
            }
            loss += law(s);
        }
    };
    add(lists.near, [&](double s) {
        if (!(w.local > 0)) return w.near * s / (kNear + s);
        return w.near * w.local * (sqrt(s) / (kNear + s) + atan(sqrt(s / kNear)) / sqrt(kNear));
    });
    add(lists.far, [&](double s) { return w.far / (1 + s); });
    if (w.mid != 0) add(lists.mid, [&](double s) { return w.mid * s / (kMid + s); });
    return loss / 2;
}

// body(i, gradient of point i) for all points.
template <class T, int D, class Body>
bool each_gradient_in(const PairLists& lists, const Laws<T>& laws, const T* y, int n_threads, const Body& body) {
    constexpr Index S = stride_of<T, D>;
    const Index n = lists.n, n_tasks = ceil_div(n, kRowsPerTask);
    T* padded = S != D ? allocate<T>(n * S) : nullptr;
    if (S != D && padded == nullptr) return false;
    if (padded) {
        parallel(n_tasks, n_threads, [&](Index task, int) {
            for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) {
                for (Index k = 0; k < S; ++k) padded[i * S + k] = k < D ? y[i * D + k] : T(0);
            }
        });
    }
    const T* points = padded ? padded : y;
    parallel(n_tasks, n_threads, [&](Index task, int) {
        T gradient[D];
        for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) {
            forces_on<T, D>(lists, laws, i, points, gradient);
            body(i, gradient);
        }
    });
    std::free(padded);
    return true;
}

template <class T, class Body>
bool each_gradient(const PairLists& lists, const PairWeights& weights, Index d, const T* y, int n_threads,
                   const Body& body) {
    const Laws<T> laws(weights);
    if (d == 1) return each_gradient_in<T, 1>(lists, laws, y, n_threads, body);
    if (d == 2) return each_gradient_in<T, 2>(lists, laws, y, n_threads, body);
    if (d == 3) return each_gradient_in<T, 3>(lists, laws, y, n_threads, body);
    T* gradients = allocate<T>(n_threads * d);
    parallel(gradients ? lists.n : 0, n_threads, [&](Index i, int slot) {
        forces_on_many(lists, laws, i, y, d, gradients + slot * d);
        body(i, gradients + slot * d);
    });
    std::free(gradients);
    return gradients != nullptr;
}

// body(target, source) for all pairs whose target is in first .. last, by ascending source.
template <class Body>
inline void each_pair_to(const Partners& pairs, Index first, Index last, const Body& body) {
    for (Index i = 0; i < pairs.n; ++i) {
        for (Index e = 0; e < pairs.k; ++e) {
            const Index j = pairs.ids[i * pairs.k + e];
            if (j >= first && j < last) body(j, i);
        }
    }
}

}  // namespace

// Where the lists of partners in both directions start, each a multiple of kPairLanes long.
bool pair_starts(Partners pairs, Index* starts, int n_threads) {
    const Index n = pairs.n, part = ceil_div(n, n_threads);
    parallel(n_threads, n_threads, [&](Index task, int) {
        const Index first = min_of(n, task * part), last = min_of(n, first + part);
        for (Index i = first; i < last; ++i) starts[i + 1] = pairs.k;
        each_pair_to(pairs, first, last, [&](Index j, Index) { ++starts[j + 1]; });
    });
    starts[0] = 0;
    for (Index i = 0; i < n; ++i) starts[i + 1] = starts[i] + ceil_div(starts[i + 1], kPairLanes) * kPairLanes;
    return true;
}

// The lists: the partners of i, then the points whose partner i is, then i itself until the list is full.
bool pair_lists(Partners pairs, const Index* starts, std::int32_t* columns, int n_threads) {
    const Index n = pairs.n, part = ceil_div(n, n_threads);
    Index* next = allocate<Index>(n);
    if (next == nullptr) return false;
    bool fits = true;
    parallel(n_threads, n_threads, [&](Index task, int) {
        const Index first = min_of(n, task * part), last = min_of(n, first + part);
        for (Index i = first; i < last; ++i) {
            next[i] = starts[i];
            for (Index e = 0; e < pairs.k && next[i] < starts[i + 1]; ++e) columns[next[i]++] = pairs.ids[i * pairs.k + e];
        }
        each_pair_to(pairs, first, last, [&](Index j, Index i) {
            if (next[j] < starts[j + 1]) {
                columns[next[j]++] = static_cast<std::int32_t>(i);
            } else {
                __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
            }
        });
        for (Index i = first; i < last; ++i) {
            while (next[i] < starts[i + 1]) columns[next[i]++] = static_cast<std::int32_t>(i);
        }
    });
    std::free(next);
    return fits;
}

template <class T>
bool pair_forces(PairLists lists, PairWeights weights, Index d, const T* y, T* gradient, double* losses,
                 int n_threads) {
    return each_gradient<T>(lists, weights, d, y, n_threads, [&](Index i, const T* own) {
        for (Index k = 0; k < d; ++k) gradient[i * d + k] = own[k];
        losses[i] = loss_at(lists, weights, i, y, d);
    });
}

// One step of Adam from y to next; `rate` contains the corrections of the bias of both moments.
template <class T>
bool pair_step(PairLists lists, PairWeights weights, double rate, Index d, const T* y, T* next, T* means,
               T* squares, int n_threads) {
    const T first = static_cast<T>(1 - kFirst), second = static_cast<T>(1 - kSecond);
    const T step = static_cast<T>(rate), least = static_cast<T>(kLeast);
    return each_gradient<T>(lists, weights, d, y, n_threads, [&](Index i, const T* gradient) {
        for (Index k = 0; k < d; ++k) {
            const Index e = i * d + k;
            means[e] += first * (gradient[k] - means[e]);
            squares[e] += second * (gradient[k] * gradient[k] - squares[e]);
            const T root = sizeof(T) == 4 ? static_cast<T>(sqrtf(static_cast<float>(squares[e])))
                                          : static_cast<T>(sqrt(static_cast<double>(squares[e])));
            next[e] = y[e] - step * means[e] / (root + least);
        }
    });
}

#define LOWLAND_INSTANTIATE(T)                                                                             \
    template bool pair_forces<T>(PairLists, PairWeights, Index, const T*, T*, double*, int);               \
    template bool pair_step<T>(PairLists, PairWeights, double, Index, const T*, T*, T*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
