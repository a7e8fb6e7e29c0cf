// Python's door to generative topographic mapping; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "topographic/gtm.h"

namespace lowland {
namespace {

template <class T>
TopographicMixture<T> mixture(const Rows<T>& x, const Vector<double>& mean, const Rows<double>& nodes,
                              double beta, bool missing) {
    const std::int64_t n = size(x, 0), p = size(x, 1), n_nodes = size(nodes, 0);
    check(p >= 1 && size(mean, 0) == p, "gtm: mean must be (p,) with at least one column");
    check(n_nodes >= 1 && size(nodes, 1) == p, "gtm: nodes must be (k, p) with at least one node");
    return {x.data(), n, p, mean.data(), nodes.data(), n_nodes, beta, missing};
}

template <class T>
void gtm_sums(Rows<T> x, Vector<double> mean, Rows<double> nodes, double beta, bool missing,
              OutVector<double> logs, Out<double> sums, Out<double> masses, int threads,
              const std::string& isa) {
    const auto m = mixture<T>(x, mean, nodes, beta, missing);
    check_threads(threads);
    check(size(logs, 0) == m.n, "gtm_sums: logs must be (n,)");
    check(size(sums, 0) == m.n_nodes && size(sums, 1) == m.p, "gtm_sums: sums must be like nodes");
    check(size(masses, 0) == m.n_nodes && size(masses, 1) == (missing ? m.p : 1),
          "gtm_sums: masses must be (k, p) with missing values, else (k, 1)");
    if (!LOWLAND_RUN(isa, gtm_sums(m, logs.data(), sums.data(), masses.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void gtm_posteriors(Rows<T> x, Vector<double> mean, Rows<double> nodes, double beta, bool missing,
                    OutVector<double> logs, Out<double> posteriors, int threads,
                    const std::string& isa) {
    const auto m = mixture<T>(x, mean, nodes, beta, missing);
    check_threads(threads);
    check(size(logs, 0) == m.n, "gtm_posteriors: logs must be (n,)");
    check(size(posteriors, 0) == m.n && size(posteriors, 1) == m.n_nodes,
          "gtm_posteriors: posteriors must be (n, k)");
    if (!LOWLAND_RUN(isa, gtm_posteriors(m, logs.data(), posteriors.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind_type(nb::module_& m) {
    using namespace nb::literals;
    m.def("gtm_sums", &gtm_sums<T>, "x"_a.noconvert(), "mean"_a.noconvert(), "nodes"_a.noconvert(),
          "beta"_a, "missing"_a, "logs"_a.noconvert(), "sums"_a.noconvert(), "masses"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("gtm_posteriors", &gtm_posteriors<T>, "x"_a.noconvert(), "mean"_a.noconvert(),
          "nodes"_a.noconvert(), "beta"_a, "missing"_a, "logs"_a.noconvert(),
          "posteriors"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_gtm(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

}  // namespace lowland
