// Python bindings of the graph kernels. Shapes, indices and weights are checked here.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "graphs/geodesics.h"
#include "graphs/symmetric_times.h"
#include "kernels/kernel_tiles.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;
using Numbers = Vector<std::int32_t>;

void check_below(const std::int32_t* numbers, std::int64_t count, std::int64_t n, const char* message) {
    for (std::int64_t i = 0; i < count; ++i) check(numbers[i] >= 0 && numbers[i] < n, message);
}

template <class T>
void check_graph(const Starts& starts, const Numbers& columns, const Vector<T>& weights, std::int64_t n) {
    const std::int64_t stored = size(columns, 0);
    check(n < std::numeric_limits<std::int32_t>::max(), "shortest_paths: too many vertices");
    check(size(starts, 0) == n + 1, "shortest_paths: starts must be (n + 1,)");
    check(size(weights, 0) == stored && starts(0) >= 0 && starts(n) <= stored,
          "shortest_paths: starts, columns and weights do not fit together");
    for (std::int64_t v = 0; v < n; ++v) {
        check(starts(v) <= starts(v + 1), "shortest_paths: starts must not fall");
    }
    check_below(columns.data(), stored, n, "shortest_paths: a column is not below n");
    for (std::int64_t e = 0; e < stored; ++e) {
        check(weights(e) >= 0, "shortest_paths: a weight is negative or NaN");
    }
}

template <class T>
void shortest_paths(Starts starts, Numbers columns, Vector<T> weights, Numbers sources,
                    Vector<std::int64_t> rows, Numbers place, Out<T> out, int threads,
                    const std::string& isa) {
    const std::int64_t n = size(out, 1), n_sources = size(sources, 0);
    check_threads(threads);
    check_graph<T>(starts, columns, weights, n);
    check(size(place, 0) == n, "shortest_paths: place must be (n,)");
    check(size(rows, 0) == n_sources, "shortest_paths: as many rows as sources are needed");
    check_below(sources.data(), n_sources, n, "shortest_paths: a source is not below n");
    check_below(place.data(), n, n, "shortest_paths: a place is not below n");
    for (std::int64_t i = 0; i < n_sources; ++i) {
        check(rows(i) >= 0 && rows(i) < size(out, 0),
              "shortest_paths: out has too few rows");
    }
    const EdgeLists<T> graph{starts.data(), columns.data(), weights.data(), n};
    const PathRequest<T> request{sources.data(), rows.data(), n_sources, place.data(), out.data()};
    if (!LOWLAND_RUN(isa, shortest_paths(graph, request, threads))) throw std::bad_alloc();
}

template <class T>
void symmetric_times(nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu> tiles, Rows<T> v,
                     Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(v, 0), q = size(v, 1), side = baseline::tile_side<T>();
    const std::int64_t n_groups = (n + side - 1) / side;
    check(size(tiles, 0) == n_groups * (n_groups + 1) / 2 && size(tiles, 1) == side &&
              size(tiles, 2) == side,
          "symmetric_times: tiles must hold the upper half of an n x n matrix");
    check(size(out, 0) == n && size(out, 1) == q, "symmetric_times: out must be as large as v");
    if (!LOWLAND_RUN(isa, symmetric_times(tiles.data(), n, v.data(), q, out.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("symmetric_times", &symmetric_times<T>, "tiles"_a.noconvert(), "v"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("shortest_paths", &shortest_paths<T>, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "weights"_a.noconvert(), "sources"_a.noconvert(), "rows"_a.noconvert(),
          "place"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_geodesics(nb::module_& m) {
    m.attr("PATH_LANES") = kPathLanes;
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
