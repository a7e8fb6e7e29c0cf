// Entry points of the kernels of maps by pairs of points (PaCMAP, LocalMAP).
//
// With s = 1 + |y_i - y_j|^2 a near pair adds w s / (10 + s) to the loss, a mid-near pair
// w s / (10^4 + s), and a far pair w / (1 + s). LocalMAP multiplies the force of near pairs by
// c / sqrt(s); their loss is then w c (sqrt(s) / (10 + s) + atan(sqrt(s / 10)) / sqrt(10)).
#pragma once
#include <cstdint>

#include "embedding/embedding.h"

namespace lowland {

// The partners of each point in both directions: columns[starts[i]] .. columns[starts[i + 1]]. Each list
// is filled up to a multiple of kPairLanes with the point itself, which has no force on itself.
constexpr std::int64_t kPairLanes = 8;

struct PairList {
    const std::int64_t* starts;
    const std::int32_t* columns;
};

struct PairLists {
    PairList near, mid, far;
    std::int64_t n;
};

// Weights of the three kinds; c of LocalMAP, or 0.
struct PairWeights {
    double near, mid, far, local;
};

// Ids (n, k) of partners.
struct Partners {
    const std::int32_t* ids;
    std::int64_t n, k;
};

// What new rows are placed by: the map, c of LocalMAP or 0, the weight of the repulsion by each point, the
// distance within which points repel (infinity: any), and the potential of the points of y / sqrt(2) on a
// grid, if `field` is not null.
struct PairMap {
    const double* y;
    std::int64_t n, d;
    double local, far, reach;
    Grid grid;
    const float* field;
};

#define LOWLAND_DECLARE_PAIR_MAPS(isa)                                                              \
    namespace isa {                                                                                 \
    bool draw_groups(std::int64_t first, std::int64_t rows, std::int64_t n, std::uint64_t seed,     \
                     std::int64_t groups, std::int64_t size, std::int32_t* out, int n_threads);     \
    bool draw_far(Partners near, std::uint64_t seed, std::int64_t count, std::int32_t* out,         \
                  int n_threads);                                                                   \
    template <class T>                                                                              \
    bool redraw_far(Partners near, const T* y, std::int64_t d, double reach, std::uint64_t seed,    \
                    std::int64_t count, std::int32_t* far, std::int32_t* within, int n_threads);    \
    template <class T>                                                                              \
    bool listed_squares(const T* x, std::int64_t p, Partners listed, std::int64_t first, T* out,    \
                        int n_threads);                                                             \
    bool pair_starts(Partners pairs, std::int64_t* starts, int n_threads);                          \
    bool pair_lists(Partners pairs, const std::int64_t* starts, std::int32_t* columns,              \
                    int n_threads);                                                                 \
    template <class T>                                                                              \
    bool pair_forces(PairLists lists, PairWeights weights, std::int64_t d, const T* y, T* gradient, \
                     double* losses, int n_threads);                                                \
    template <class T>                                                                              \
    bool pair_step(PairLists lists, PairWeights weights, double rate, std::int64_t d, const T* y,   \
                   T* next, T* means, T* squares, int n_threads);                                   \
    bool settle_pairs(PairMap map, Partners near, std::int64_t steps, double close, double* z,      \
                      int n_threads);                                                               \
    }

LOWLAND_DECLARE_PAIR_MAPS(baseline)
LOWLAND_DECLARE_PAIR_MAPS(avx2)

}  // namespace lowland
