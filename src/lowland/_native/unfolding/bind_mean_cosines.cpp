// Python bindings of mean_cosines. Shapes, indices and lengths are checked here.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "unfolding/mean_cosines.h"

namespace lowland {
namespace {

constexpr std::int64_t kMostNeighbors = 1000;  // of which the squares are kept

void mean_cosines(Vector<std::int64_t> starts, Vector<std::int32_t> columns, Vector<double> lengths,
                  std::int64_t k, OutVector<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(out, 0), stored = size(columns, 0);
    check(n < std::numeric_limits<std::int32_t>::max(), "mean_cosines: too many vertices");
    check(k >= 1 && k <= kMostNeighbors, "mean_cosines: k must be from 1 to 1000");
    check(size(starts, 0) == n + 1, "mean_cosines: starts must be (n + 1,)");
    check(size(lengths, 0) == stored && starts(0) == 0 && starts(n) == stored,
          "mean_cosines: starts, columns and lengths do not fit together");
    for (std::int64_t v = 0; v < n; ++v) {
        check(starts(v) <= starts(v + 1), "mean_cosines: starts must not fall");
    }
    for (std::int64_t e = 0; e < stored; ++e) {
        check(columns(e) >= 0 && columns(e) < n, "mean_cosines: a column is not below n");
        check(lengths(e) > 0 && lengths(e) < 1e300, "mean_cosines: a length is not above 0 or too large");
    }
    const EdgeLists<double> graph{starts.data(), columns.data(), lengths.data(), n};
    if (!LOWLAND_RUN(isa, mean_cosines(graph, k, out.data(), threads))) throw std::bad_alloc();
}

}  // namespace

void bind_mean_cosines(nb::module_& m) {
    using namespace nb::literals;
    m.def("mean_cosines", &mean_cosines, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "lengths"_a.noconvert(), "k"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
