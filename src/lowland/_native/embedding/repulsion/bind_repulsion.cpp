// Python bindings of the repulsion kernels.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "embedding/repulsion/repulsion.h"

namespace lowland {
namespace {

template <class T>
Map<T> map_of(const Rows<T>& y) {
    return {y.data(), size(y, 0), size(y, 1)};
}

void check_dof(double dof) {
    check(dof > 0 && dof <= std::numeric_limits<float>::max(), "repel: dof must be positive and finite");
}

template <class T>
Repulsion<T> checked_out(const Map<T>& y, const OutVector<double>& potential, const Out<T>& forces) {
    check(y.d >= 1, "repel: y must have a column");
    check(size(potential, 0) == y.n, "repel: potential must be (n,)");
    check(size(forces, 0) == y.n && size(forces, 1) == y.d, "repel: forces must be (n, d)");
    return {potential.data(), forces.data()};
}

template <class T>
void repel_pairs(Rows<T> y, bool gaussian, double dof, Vector<T> weights, OutVector<double> potential,
                 Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    check_dof(dof);
    const Map<T> map = map_of<T>(y);
    const Repulsion<T> out = checked_out<T>(map, potential, forces);
    const std::int64_t n_weights = size(weights, 0);
    check(n_weights == 0 || n_weights == map.n, "repel: weights must be (n,) or empty");
    const T* used = n_weights ? weights.data() : nullptr;
    const Decay decay{gaussian, dof};
    if (!LOWLAND_RUN(isa, repel_pairs(map, decay, used, out, threads))) throw std::bad_alloc();
}

template <class T>
void repel_from(Rows<T> y_new, Rows<T> y, bool gaussian, double dof, OutVector<double> potential,
                Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    check_dof(dof);
    const Map<T> from = map_of<T>(y_new), map = map_of<T>(y);
    check(from.d == map.d, "repel: y_new and y must have as many columns");
    const Repulsion<T> out = checked_out<T>(from, potential, forces);
    const Decay decay{gaussian, dof};
    if (!LOWLAND_RUN(isa, repel_from(from, map, decay, out, threads))) throw std::bad_alloc();
}

template <class T>
void repel_tree(Rows<T> y, double dof, double angle, OutVector<double> potential, Out<T> forces,
                int threads, const std::string& isa) {
    check_threads(threads);
    check_dof(dof);
    const Map<T> map = map_of<T>(y);
    const Repulsion<T> out = checked_out<T>(map, potential, forces);
    check(map.d <= 3, "repel: a tree takes maps of 1, 2 or 3 columns");
    check(map.n < std::numeric_limits<std::int32_t>::max() / 2, "repel: too many points for a tree");
    check(angle >= 0 && angle <= 1, "repel: angle must be from 0 to 1");
    if (!LOWLAND_RUN(isa, repel_tree(map, dof, angle, out, threads))) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("repel_pairs", &repel_pairs<T>, "y"_a.noconvert(), "gaussian"_a, "dof"_a,
          "weights"_a.noconvert(), "potential"_a.noconvert(), "forces"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("repel_from", &repel_from<T>, "y_new"_a.noconvert(), "y"_a.noconvert(), "gaussian"_a, "dof"_a,
          "potential"_a.noconvert(), "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("repel_tree", &repel_tree<T>, "y"_a.noconvert(), "dof"_a, "angle"_a,
          "potential"_a.noconvert(), "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_repulsion(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
