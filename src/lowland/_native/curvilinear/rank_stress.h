// Entry points of the rank kernels: how far the ranks of neighbors in a map are from those in the data.
#pragma once
#include <cstdint>

namespace lowland {

// A map y (n x d), coordinates finite.
struct PlacedPoints {
    const double* y;
    std::int64_t n, d;
};

// For each of m rows the numbers of its nearest points, nearest first, and whether each of them is
// as near as the next one. Ranks above `length` are not distinguished: all of them are length + 1.
struct RankLists {
    const std::int32_t* points;  // (m, length), each below n
    const std::uint8_t* ties;    // (m, length)
    std::int64_t m, length;
    std::int64_t k;  // neighbors that count, 1 <= k <= length
};

struct RankOptions {
    double push;     // weight of pairs that should be farther apart
    double even;     // weight of the pairs that make the map even, 0: none
    double spacing;  // distance of the k-th neighbor in an even map
};

struct RankForces {
    double* reach;    // (n,) in: the squared radius to search at first, or 0; out: one for a next call
    double* stress;   // (n,)
    double* forces;   // (n, d) sum of w (1 - t / d) (y_j - y_i) over the pairs of a point
    double* weights;  // (n,) sum of w
};

#define LOWLAND_DECLARE_RANK_STRESS(isa)                                                              \
    namespace isa {                                                                                   \
    /* Stress of all points of a map, and where their pairs pull them; see rank_forces.cpp. */        \
    bool rank_forces(PlacedPoints map, RankLists lists, RankOptions options, RankForces out,          \
                     int n_threads);                                                                  \
    /* The stress of each place z (m, d) of a new row against the map. */                             \
    bool rank_heights(PlacedPoints map, RankLists lists, const double* z, double* out, int n_threads);\
    /* Places z (m, d) of low stress; a row with equal[i] > 0 gets one of its first equal[i] points. */\
    bool rank_places(PlacedPoints map, RankLists lists, const std::int32_t* equal, double* z,         \
                     int n_threads);                                                                  \
    }

LOWLAND_DECLARE_RANK_STRESS(baseline)
LOWLAND_DECLARE_RANK_STRESS(avx2)

}  // namespace lowland
