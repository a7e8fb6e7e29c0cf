// Python bindings of the tiles of kernel matrices.
#include <new>

#include "common/bindings.h"
#include "kernels/kernel_tiles.h"
#include "neighbors/knn.h"

namespace lowland {
namespace {

template <class T>
using Panels = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Tiles = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class T>
KernelFunction<T> function_of(int kind, double offset, int degree) {
    check(kind >= 0 && kind <= static_cast<int>(KernelKind::sigmoid), "kernel: there is no such kind");
    check(degree >= 1, "kernel: degree must be at least 1");
    return {static_cast<KernelKind>(kind), static_cast<T>(offset), degree};
}

template <class T>
PackedRows<T> packed(const Panels<T>& panels, std::int64_t n) {
    const std::int64_t width = baseline::width_of_panels<T>();
    check(size(panels, 2) == width && size(panels, 0) == (n + width - 1) / width,
          "kernel: panels do not hold as many points as there are rows");
    return {panels.data(), n, size(panels, 1)};
}

template <class T>
void kernel_rows(Panels<T> rows, Panels<T> points, int kind, double offset, int degree, Out<T> out,
                 int threads, const std::string& isa) {
    check_threads(threads);
    const auto f = function_of<T>(kind, offset, degree);
    const auto left = packed<T>(rows, size(out, 0)), right = packed<T>(points, size(out, 1));
    check(left.d == right.d, "kernel_rows: rows and points must have as many columns");
    if (!LOWLAND_RUN(isa, kernel_rows(left, right, f, out.data(), threads))) throw std::bad_alloc();
}

template <class T>
void kernel_times(Panels<T> points, int kind, double offset, int degree, Tiles<T> tiles, bool filled,
                  Rows<T> v, Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const auto f = function_of<T>(kind, offset, degree);
    const std::int64_t n = size(v, 0), q = size(v, 1), side = baseline::tile_side<T>();
    const auto right = packed<T>(points, n);
    check(size(out, 0) == n && size(out, 1) == q, "kernel_times: out must be as large as v");
    const std::int64_t n_groups = (n + side - 1) / side, kept = size(tiles, 0);
    check(kept == 0 || (kept == n_groups * (n_groups + 1) / 2 && size(tiles, 1) == side &&
                        size(tiles, 2) == side),
          "kernel_times: tiles must be empty or hold the upper half of the matrix");
    const TileUse use = kept == 0 ? TileUse::none : filled ? TileUse::read : TileUse::fill;
    if (!LOWLAND_RUN(isa, kernel_times(right, f, tiles.data(), use, v.data(), q, out.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("kernel_rows", &kernel_rows<T>, "rows"_a.noconvert(), "points"_a.noconvert(), "kind"_a,
          "offset"_a, "degree"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("kernel_times", &kernel_times<T>, "points"_a.noconvert(), "kind"_a, "offset"_a, "degree"_a,
          "tiles"_a.noconvert(), "filled"_a, "v"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace

void bind_kernel_tiles(nb::module_& m) {
    m.attr("TILE_SIDE_FLOAT32") = baseline::tile_side<float>();
    m.attr("TILE_SIDE_FLOAT64") = baseline::tile_side<double>();
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
