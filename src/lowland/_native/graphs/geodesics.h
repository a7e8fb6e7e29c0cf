// The entry point of the geodesics kernel, declared once per instruction set.
#pragma once
#include <cstdint>

namespace lowland {

// Vertex v has the edges starts[v] .. starts[v+1] to columns[e], of length weights[e] >= 0.
template <class T>
struct EdgeLists {
    const std::int64_t* starts;
    const std::int32_t* columns;
    const T* weights;
    std::int64_t n;
};

// Row rows[i] of out (n wide) gets the distances from vertex sources[i]; its column j is the distance
// to vertex place[j]. Consecutive sources should be near each other.
template <class T>
struct PathRequest {
    const std::int32_t* sources;
    const std::int64_t* rows;
    std::int64_t n_sources;
    const std::int32_t* place;
    T* out;
};

#define LOWLAND_DECLARE_GEODESICS(isa)                                                  \
    namespace isa {                                                                     \
    template <class T>                                                                  \
    bool shortest_paths(EdgeLists<T> graph, PathRequest<T> request, int n_threads);     \
    }

LOWLAND_DECLARE_GEODESICS(baseline)
LOWLAND_DECLARE_GEODESICS(avx2)

// Sources that are processed at once, in the lanes of vector registers.
constexpr std::int64_t kPathLanes = 32;

}  // namespace lowland
