// Entry point of mean_cosines: how far the neighbors of each vertex of a graph lie to one side of it.
//
//     c_v = mean over pairs j, l of the cosine of the angle at v between j and l
//         = |mean over j of u_j|^2,  u_j the unit vector from v to j, where the neighborhood is flat
//
// The k vertices nearest to v along the graph are j and l; the cosines follow from the lengths of the
// shortest paths among them that stay among them and v.
#pragma once
#include <cstdint>

#include "graphs/geodesics.h"

namespace lowland {

#define LOWLAND_DECLARE_MEAN_COSINES(isa)                                                         \
    namespace isa {                                                                               \
    /* out (n,); all lengths are positive. A vertex that reaches no other gets 0. */              \
    bool mean_cosines(EdgeLists<double> graph, std::int64_t k, double* out, int n_threads);       \
    }

LOWLAND_DECLARE_MEAN_COSINES(baseline)
LOWLAND_DECLARE_MEAN_COSINES(avx2)

}  // namespace lowland
