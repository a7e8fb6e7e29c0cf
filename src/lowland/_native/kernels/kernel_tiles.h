// Kernel functions k(x, y) of packed points: their values, and their matrix times a block of vectors.
#pragma once
#include <cstdint>

namespace lowland {

// What is done with the product s = x.y of two points (or, for laplacian, s = sum |x - y|). Scales
// such as gamma are already in the points.
enum class KernelKind : int {
    product = 0,     // s
    gaussian = 1,    // exp(s - (x.x + y.y) / 2) = exp(-|x - y|^2 / 2)
    laplacian = 2,   // exp(-s)
    polynomial = 3,  // (s + offset)^degree
    sigmoid = 4,     // tanh(s + offset)
};

template <class T>
struct KernelFunction {
    KernelKind kind;
    T offset;
    int degree;
};

// Points as pack_points lays them out: panel i holds panel_width points, k-major.
template <class T>
struct PackedRows {
    const T* panels;
    std::int64_t n, d;
};

// Where the tiles of a symmetric matrix are kept: nowhere (none), or filled by one product and read
// by the next ones.
enum class TileUse : int { none = 0, fill = 1, read = 2 };

#define LOWLAND_DECLARE_KERNEL_TILES(isa)                                                           \
    namespace isa {                                                                                 \
    template <class T>                                                                              \
    std::int64_t tile_side();                                                                       \
    template <class T>                                                                              \
    bool kernel_rows(PackedRows<T> rows, PackedRows<T> points, KernelFunction<T> f, T* out,         \
                     int n_threads);                                                                \
    template <class T>                                                                              \
    bool kernel_times(PackedRows<T> points, KernelFunction<T> f, T* tiles, TileUse use, const T* v, \
                      std::int64_t q, double* out, int n_threads);                                  \
    }

LOWLAND_DECLARE_KERNEL_TILES(baseline)
LOWLAND_DECLARE_KERNEL_TILES(avx2)

}  // namespace lowland
