// Python's door to projections on a polyline; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "topographic/polyline.h"

namespace lowland {
namespace {

template <class T>
void project_on_polyline(Rows<T> x, Rows<double> knots, double before, double after,
                         OutVector<std::int64_t> segments, OutVector<double> along,
                         OutVector<double> squares, int threads, const std::string& isa) {
    const std::int64_t n = size(x, 0), p = size(x, 1), m = size(knots, 0);
    check_threads(threads);
    check(p >= 1 && size(knots, 1) == p,
          "project_on_polyline: x and knots must have as many columns, at least 1");
    check(m >= 2, "project_on_polyline: a polyline has at least 2 knots");
    check(before >= 0 && after >= 0, "project_on_polyline: before and after must be at least 0");
    check(size(segments, 0) == n && size(along, 0) == n && size(squares, 0) == n,
          "project_on_polyline: segments, along and squares must have one entry per row of x");
    const Polyline line{knots.data(), m, p, before, after};
    if (!LOWLAND_RUN(isa, project_on_polyline(x.data(), n, line, segments.data(), along.data(),
                                              squares.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind_for(nb::module_& m) {
    using namespace nb::literals;
    m.def("project_on_polyline", &project_on_polyline<T>, "x"_a.noconvert(), "knots"_a.noconvert(),
          "before"_a, "after"_a, "segments"_a.noconvert(), "along"_a.noconvert(),
          "squares"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_polyline(nb::module_& m) {
    bind_for<float>(m);
    bind_for<double>(m);
}

}  // namespace lowland
