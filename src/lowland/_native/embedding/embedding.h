// Entry points of the neighbor-embedding kernels.
//
// A map Y (n x d) has the similarity  w = (1 + r^2/v)^-v  of two points at distance r, with v degrees of
// freedom; inverse_dof = 1/v is 1 for t-SNE and 0 for the Gaussian exp(-r^2). UMAP's is 1 / (1 + a r^2b).
#pragma once
#include <cstdint>

namespace lowland {

// Weights p_ij of neighbors, row by row: columns[e], weights[e] for starts[i] <= e < starts[i + 1].
template <class T>
struct Edges {
    const std::int64_t* starts;
    const std::int32_t* columns;
    const T* weights;
    std::int64_t n;
};

// The potential of the pull between neighbors at distance r, of which the pull is half the gradient:
// v log(1 + r^2/v) with inverse_dof = 1/v if a is 0, else UMAP's 2 log(1 + a r^2b).
struct Pull {
    double inverse_dof, a, b;
};

// A grid of nodes, `pitch` apart, the first at `low`; nodes[k] of them along axis k, the last axis
// contiguous in memory. Every point needs two nodes before it and six behind it on each axis.
struct Grid {
    std::int64_t nodes[3];
    double low[3];
    double pitch;
};

// A plane of rows x columns in the first corner of a periodic one of 2 high x 2 wide nodes. The spectrum
// has a block for each 8 of the frequencies 0 .. wide of the rows; a block has the even frequencies of the
// columns, then the odd ones, both in the order of fourier_order, 8 numbers each.
struct Plane {
    std::int64_t rows, columns, high, wide, blocks;
    const float* charges;
    const float* spectrum;
    float* field;
};

// What a point contributes to the field at its own place: mean + wave * sum_k cos(2 pi t_k), where t_k
// is its place between two nodes of axis k.
struct Own {
    double mean, wave;
};

// A fixed map of n points for new rows: their field on a grid, and the potential of an average point, by
// which the field is divided (0: its logarithm is taken).
struct Frozen {
    const float* y;
    std::int64_t n;
    Pull pull;
    double mean_potential;
    Grid grid;
    const float* field;
};

// Neighbors of m new rows, k each, and their weights; a number below 0 is not a neighbor.
template <class T>
struct NearRows {
    const std::int32_t* ids;
    const T* weights;
    std::int64_t m, k;
};

// One step of momentum descent with gains.
struct Step {
    double exaggeration, inverse_total, learning_rate, momentum, longest;
};

#define LOWLAND_DECLARE_EMBEDDING(isa)                                                             \
    namespace isa {                                                                                \
    template <class T>                                                                             \
    bool attract(Edges<T> edges, const T* z, const T* y, std::int64_t n, std::int64_t d,           \
                 Pull pull, T* forces, double* sums, int n_threads);                               \
    template <class T>                                                                             \
    bool permute_edges(Edges<T> edges, const std::int32_t* order, const std::int32_t* place,       \
                       std::int64_t* starts, std::int32_t* columns, T* weights, int n_threads);    \
    template <class T>                                                                             \
    bool spread(const T* y, std::int64_t n, std::int64_t d, Grid grid, float* charges,             \
                int n_threads);                                                                    \
    template <class T>                                                                             \
    bool gather(const T* y, std::int64_t n, std::int64_t d, Grid grid, Own own,                    \
                const float* field, double* potential, T* forces, int n_threads);                  \
    /* Lengths have no prime factor above 5. */                                                    \
    bool fourier_order(std::int64_t n, std::int32_t* frequency);                                   \
    bool convolve(Plane plane, int n_threads);                                                     \
    template <class T>                                                                             \
    bool settle_rows(Frozen map, NearRows<T> near, std::int64_t d, std::int64_t steps,             \
                     double close, float* z, int n_threads);                                       \
    template <class T>                                                                             \
    bool descend(Step step, std::int64_t n, std::int64_t d, const T* attraction,                   \
                 const T* repulsion, T* y, T* velocity, T* gains, int n_threads);                  \
    }

LOWLAND_DECLARE_EMBEDDING(baseline)
LOWLAND_DECLARE_EMBEDDING(avx2)

}  // namespace lowland
