// Python's door to the kernel of local stress; sizes and radii that could lead them astray are refused here.
#include <new>

#include "common/bindings.h"
#include "local_stress/local_stress.h"

namespace lowland {
namespace {

Law law_of(int kind, double tradeoff, double center, double width, double rounding) {
    check(kind >= kStep && kind <= kSymmetric, "local_stress: no such law");
    check(tradeoff >= 0 && tradeoff <= 1, "local_stress: tradeoff must be from 0 to 1");
    check(kind != kSymmetric || (width > 0 && rounding >= 0), "local_stress: width must be above 0");
    return {kind, tradeoff, center, width, rounding};
}

template <class T>
void check_radii(const Vector<T>& radii, std::int64_t n, int kind, const char* message) {
    if (kind == kSymmetric) return;
    bool fine = size(radii, 0) == n;
    for (std::int64_t i = 0; fine && i < n; ++i) fine = radii.data()[i] > 0;
    check(fine, message);
}

LocalOut out_of(std::int64_t m, std::int64_t d, OutVector<double>& stress, OutVector<double>& potential,
                OutVector<double>& degrees, Out<double>& forces) {
    check(d >= 1, "local_stress: a map must have a column");
    check(size(stress, 0) == m && size(potential, 0) == m && size(degrees, 0) == m,
          "local_stress: results must have one number per point");
    check(size(forces, 0) == m && size(forces, 1) == d, "local_stress: forces must have the map's shape");
    return {stress.data(), potential.data(), degrees.data(), forces.data()};
}

template <class T>
void local_stress_rows(Rows<T> z, Rows<T> y, Rows<T> delta, Vector<T> radii_z, Vector<T> radii_y, int kind,
                       double tradeoff, double center, double width, double rounding,
                       OutVector<double> stress, OutVector<double> potential, OutVector<double> degrees,
                       Out<double> forces, int threads, const std::string& isa) {
    const std::int64_t m = size(z, 0), n = size(y, 0), d = size(y, 1);
    check_threads(threads);
    check(size(z, 1) == d, "local_stress_rows: z and y must have as many columns");
    check(size(delta, 0) == m && size(delta, 1) == n, "local_stress_rows: delta must be (m, n)");
    const Law law = law_of(kind, tradeoff, center, width, rounding);
    check_radii(radii_z, m, kind, "local_stress_rows: radii_z must be (m,) and above 0");
    check_radii(radii_y, n, kind, "local_stress_rows: radii_y must be (n,) and above 0");
    const LocalOut out = out_of(m, d, stress, potential, degrees, forces);
    const LocalRows<T> maps{z.data(), m, y.data(), n, d, delta.data(), radii_z.data(), radii_y.data()};
    if (!LOWLAND_RUN(isa, local_stress_rows(maps, law, out, threads))) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("local_stress_rows", &local_stress_rows<T>, "z"_a.noconvert(), "y"_a.noconvert(),
          "delta"_a.noconvert(), "radii_z"_a.noconvert(), "radii_y"_a.noconvert(), "kind"_a, "tradeoff"_a,
          "center"_a, "width"_a, "rounding"_a, "stress"_a.noconvert(), "potential"_a.noconvert(),
          "degrees"_a.noconvert(), "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_local_stress(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
