// attract: the pull of neighbors,  sum_j p_ij c(r_ij) (z_i - y_j),  and on request
// sums_i = (sum_j p_ij h(r_ij),  sum_j p_ij c(r_ij)): its potential, of which the pull is half the gradient,
// and its stiffness; h is that of Pull, for t-SNE log(1 + r^2). The z are the y themselves, or new points.
#include "embedding/attraction/attract_row.h"

namespace lowland {
namespace LOWLAND_ISA {

// As attract_row, plainly, for maps of many dimensions.
template <class T, class Law>
static void attract_row_of_many(const Edges<T>& edges, Index i, const T* here, const T* y, Index d,
                                const Law& law, T* force, double* sums) {
    double potential = 0, stiffness = 0;
    for (Index k = 0; k < d; ++k) force[k] = 0;
    for (Index e = edges.starts[i]; e < edges.starts[i + 1]; ++e) {
        const T* there = y + edges.columns[e] * d;
        T square = 0;
        for (Index k = 0; k < d; ++k) square += (here[k] - there[k]) * (here[k] - there[k]);
        const T weight = law.weighted(fill<T>(edges.weights[e]), fill<T>(square))[0];
        for (Index k = 0; k < d; ++k) force[k] += weight * (here[k] - there[k]);
        if (sums == nullptr) continue;
        potential += static_cast<double>(edges.weights[e]) * static_cast<double>(law.height(fill<T>(square))[0]);
        stiffness += weight;
    }
    if (sums) sums[0] = potential, sums[1] = stiffness;
}

template <class T, int D, class Law>
static bool attract_in(const Edges<T>& edges, const T* z, const T* y, Index n, const Law& law, T* forces,
                       double* sums, int n_threads) {
    constexpr Index kRowsPerTask = 256, S = stride_of<T, D>;
    T* padded = S != D ? allocate<T>(n * S) : nullptr;
    if (S != D && padded == nullptr) return false;
    if (padded) {
        parallel(ceil_div(n, kRowsPerTask), n_threads, [&](Index task, int) {
            for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) {
                for (Index k = 0; k < S; ++k) padded[i * S + k] = k < D ? y[i * D + k] : T(0);
            }
        });
    }
    const T* points = padded ? padded : y;
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            const T* here = z + i * D;
            T* force = forces + i * D;
            if (sums) {
                attract_row<T, D, true>(edges, i, here, points, law, force, sums + 2 * i);
            } else {
                attract_row<T, D, false>(edges, i, here, points, law, force, nullptr);
            }
        }
    });
    std::free(padded);
    return true;
}

template <class T, class Law>
static bool attract_by(const Law& law, const Edges<T>& edges, const T* z, const T* y, Index n, Index d, T* forces,
                       double* sums, int n_threads) {
    if (d == 1) return attract_in<T, 1>(edges, z, y, n, law, forces, sums, n_threads);
    if (d == 2) return attract_in<T, 2>(edges, z, y, n, law, forces, sums, n_threads);
    if (d == 3) return attract_in<T, 3>(edges, z, y, n, law, forces, sums, n_threads);
    parallel(edges.n, n_threads, [&](Index i, int) {
        attract_row_of_many(edges, i, z + i * d, y, d, law, forces + i * d, sums ? sums + 2 * i : nullptr);
    });
    return true;
}

// Edges lead from the points z to the n points y; sums may be null.
template <class T>
bool attract(Edges<T> edges, const T* z, const T* y, Index n, Index d, Pull pull, T* forces, double* sums,
             int n_threads) {
    if (pull.a > 0) return attract_by<T>(FuzzyPull<T>(pull), edges, z, y, n, d, forces, sums, n_threads);
    return attract_by<T>(StudentPull<T>(pull), edges, z, y, n, d, forces, sums, n_threads);
}

// The edges of points in a new order: row i of the result is row order[i], place[order[i]] = i.
// `starts` of the result are given. Points near each other in the map should be near in memory.
template <class T>
bool permute_edges(Edges<T> edges, const std::int32_t* order, const std::int32_t* place,
                   std::int64_t* starts, std::int32_t* columns, T* weights, int n_threads) {
    constexpr Index kRowsPerTask = 256;
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            Index to = starts[i];
            for (Index e = edges.starts[order[i]]; e < edges.starts[order[i] + 1]; ++e, ++to) {
                columns[to] = place[edges.columns[e]];
                weights[to] = edges.weights[e];
            }
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template bool attract<T>(Edges<T>, const T*, const T*, Index, Index, Pull, T*, double*, int);   \
    template bool permute_edges<T>(Edges<T>, const std::int32_t*, const std::int32_t*,              \
                                   std::int64_t*, std::int32_t*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
