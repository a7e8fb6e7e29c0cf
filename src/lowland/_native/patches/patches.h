// The entry points of the patch kernels, declared once per instruction set.
#pragma once
#include <cstdint>

namespace lowland {

// Patch i has the vertices members[i*size .. ], -1 where it has fewer. The transposed lists say where
// vertex v occurs: entries[starts[v]] .. entries[starts[v+1]] are places in `members`, ascending.
struct Patches {
    const std::int32_t* members;
    const std::int64_t* starts;
    const std::int64_t* entries;
    std::int64_t size;
    std::int64_t n;  // vertices
};

// Each patch's matrix is identity * I + sign * F F^T with F = factors[i], of size x width numbers.
template <class T>
struct PatchFactors {
    const T* values;
    std::int64_t width;
    T identity;
    T sign;
};

#define LOWLAND_DECLARE_PATCHES(isa)                                                               \
    namespace isa {                                                                                \
    bool patch_counts(Patches patches, std::int64_t* counts, int n_threads);                       \
    template <class T>                                                                             \
    bool patch_sums(Patches patches, PatchFactors<T> factors, const std::int64_t* out_starts,      \
                    std::int32_t* columns, T* values, int n_threads);                              \
    }

LOWLAND_DECLARE_PATCHES(baseline)
LOWLAND_DECLARE_PATCHES(avx2)

}  // namespace lowland
