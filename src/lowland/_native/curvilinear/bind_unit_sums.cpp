// Python bindings of unit_sums.
#include <new>

#include "common/bindings.h"
#include "curvilinear/unit_sums.h"

namespace lowland {
namespace {

template <class T>
void unit_sums(Rows<T> z, Rows<T> y, OutVector<double> distances, Out<double> units, int threads,
               const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(z, 0), d = size(y, 1);
    check(d >= 1 && size(z, 1) == d, "unit_sums: z and y must have as many columns, at least one");
    check(size(distances, 0) == m, "unit_sums: distances must be (m,)");
    check(size(units, 0) == m && size(units, 1) == d, "unit_sums: units must be (m, d)");
    const PointRows<T> from{z.data(), m, d}, to{y.data(), size(y, 0), d};
    const UnitSums out{distances.data(), units.data()};
    if (!LOWLAND_RUN(isa, unit_sums(from, to, out, threads))) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("unit_sums", &unit_sums<T>, "z"_a.noconvert(), "y"_a.noconvert(), "distances"_a.noconvert(),
          "units"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_unit_sums(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
