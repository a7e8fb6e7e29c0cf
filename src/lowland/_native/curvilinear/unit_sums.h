// Entry point of unit_sums: distances and directions from points to all points of a map.
//
//     distances_i = sum_j |z_i - y_j|        units_i = sum_j (z_i - y_j) / |z_i - y_j|
//
// A pair at one place has no direction and adds 0 to both, so that a point may be among the y.
#pragma once
#include <cstdint>

namespace lowland {

// `n` points in `d` dimensions, row by row.
template <class T>
struct PointRows {
    const T* points;
    std::int64_t n, d;
};

struct UnitSums {
    double* distances;  // (m,)
    double* units;      // (m, d)
};

#define LOWLAND_DECLARE_UNIT_SUMS(isa)                                                         \
    namespace isa {                                                                            \
    template <class T>                                                                         \
    bool unit_sums(PointRows<T> z, PointRows<T> y, UnitSums out, int n_threads);               \
    }

LOWLAND_DECLARE_UNIT_SUMS(baseline)
LOWLAND_DECLARE_UNIT_SUMS(avx2)

}  // namespace lowland
