// Python's door to som_steps; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "topographic/som_steps.h"

namespace lowland {
namespace {

template <class T>
void som_steps(Rows<T> rows, Vector<double> rates, Rows<double> neighborhood, Out<double> codebook,
               const std::string& isa) {
    const std::int64_t n = size(rows, 0), p = size(rows, 1), m = size(codebook, 0);
    check(m >= 1 && p >= 1 && size(codebook, 1) == p, "som_steps: codebook must be (m, p), like the rows");
    check(size(rates, 0) == n, "som_steps: rates must be (n,)");
    check(size(neighborhood, 0) == m && size(neighborhood, 1) == m,
          "som_steps: neighborhood must be (m, m)");
    const SomRows<T> steps{rows.data(), rates.data(), n, p};
    if (!LOWLAND_RUN(isa, som_steps(steps, neighborhood.data(), codebook.data(), m))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("som_steps", &som_steps<T>, "rows"_a.noconvert(), "rates"_a.noconvert(),
          "neighborhood"_a.noconvert(), "codebook"_a.noconvert(), "isa"_a = "auto");
}

}  // namespace

void bind_som_steps(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
