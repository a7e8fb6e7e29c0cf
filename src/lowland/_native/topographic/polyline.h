// Entry point of projections on a polyline (principal curve).
//
//     j, s  minimize  |x - v_j - s u_j|^2,   u_j = (v_{j+1} - v_j) / h_j,   0 <= s <= h_j
//
// The first segment is prolonged by `before`, the last one by `after`.
#pragma once
#include <cstdint>

namespace lowland {

// Knots v (m x p), m >= 2, in the order of the polyline.
struct Polyline {
    const double* v;
    std::int64_t m, p;
    double before, after;
};

#define LOWLAND_DECLARE_POLYLINE(isa)                                                           \
    namespace isa {                                                                             \
    template <class T>                                                                          \
    bool project_on_polyline(const T* x, std::int64_t n, Polyline line, std::int64_t* segments, \
                             double* along, double* squares, int n_threads);                    \
    }

LOWLAND_DECLARE_POLYLINE(baseline)
LOWLAND_DECLARE_POLYLINE(avx2)

}  // namespace lowland
