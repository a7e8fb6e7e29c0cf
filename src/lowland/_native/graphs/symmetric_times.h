// A symmetric matrix that is kept as tiles of its upper half, times a block of vectors.
#pragma once
#include <cstdint>

namespace lowland {

// Tile (I, J), I <= J, is tile_side x tile_side and lies at place I g - I (I - 1) / 2 + J - I of g
// groups of rows. Entries beyond row or column n must be finite; they are multiplied with zeros.
#define LOWLAND_DECLARE_SYMMETRIC_TIMES(isa)                                                         \
    namespace isa {                                                                                 \
    template <class T>                                                                              \
    bool symmetric_times(const T* tiles, std::int64_t n, const T* v, std::int64_t q, double* out,   \
                         int n_threads);                                                            \
    }

LOWLAND_DECLARE_SYMMETRIC_TIMES(baseline)
LOWLAND_DECLARE_SYMMETRIC_TIMES(avx2)

}  // namespace lowland
