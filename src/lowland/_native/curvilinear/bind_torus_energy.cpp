// Python's door to the repulsion on a torus; sizes and constants that do not fit are refused here.
#include <cmath>
#include <new>

#include "common/bindings.h"
#include "curvilinear/torus_energy.h"

namespace lowland {
namespace {

template <class T>
void torus_energy(Rows<T> z, Rows<T> y, Vector<double> sides, Rows<T> delta, double rigidity,
                  double nearest, OutVector<double> energy, Out<double> forces,
                  OutVector<double> stiffness, int threads, const std::string& isa) {
    const std::int64_t m = size(z, 0), n = size(y, 0), q = size(y, 1), rows = size(delta, 0);
    check_threads(threads);
    check(q >= 1 && size(z, 1) == q, "torus_energy: z and y must have as many columns, at least 1");
    check(size(sides, 0) == q, "torus_energy: sides must have one number per column");
    check(size(delta, 1) == n, "torus_energy: delta must have one column per point of y");
    check(rows == 0 ? m == 0 : m % rows == 0,
          "torus_energy: the points of z must be a multiple of the rows of delta");
    check(std::isfinite(rigidity), "torus_energy: rigidity must be finite");
    check(nearest >= 1e-30 && nearest <= 1e30, "torus_energy: nearest must be positive");
    check(size(energy, 0) == m && size(stiffness, 0) == m,
          "torus_energy: energy and stiffness must have one number per point");
    check(size(forces, 0) == m && size(forces, 1) == q,
          "torus_energy: forces must have the shape of z");
    const Torus<T> torus{z.data(), m, y.data(), n, q, sides.data(), delta.data(),
                         rows ? m / rows : 1, rigidity, nearest};
    const TorusOut out{energy.data(), forces.data(), stiffness.data()};
    if (!LOWLAND_RUN(isa, torus_energy(torus, out, threads))) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("torus_energy", &torus_energy<T>, "z"_a.noconvert(), "y"_a.noconvert(),
          "sides"_a.noconvert(), "delta"_a.noconvert(), "rigidity"_a, "nearest"_a,
          "energy"_a.noconvert(), "forces"_a.noconvert(), "stiffness"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace

void bind_torus_energy(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
