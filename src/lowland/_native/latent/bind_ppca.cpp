// Python's door to probabilistic PCA with missing values; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "latent/ppca.h"

namespace lowland {
namespace {

std::int64_t triangle(std::int64_t n) { return n * (n + 1) / 2; }

template <class T>
LatentGaussian<T> gaussian(const Rows<T>& x, const Vector<double>& mean, const Rows<double>& weights,
                           double noise) {
    const std::int64_t n = size(x, 0), p = size(x, 1), q = size(weights, 1);
    check(p >= 1 && p < (std::int64_t(1) << 31) && size(mean, 0) == p,
          "ppca: mean must be (p,) with at least one column");
    check(q >= 1 && size(weights, 0) == p, "ppca: weights must be (p, q) with at least one column");
    return {x.data(), n, p, mean.data(), weights.data(), q, noise};
}

template <class T>
void ppca_sums(Rows<T> x, Vector<double> mean, Rows<double> weights, double noise,
               Vector<std::uint8_t> rare, OutVector<double> logs, OutVector<double> squares,
               Out<double> products, Out<double> grams, OutVector<double> total, int threads,
               const std::string& isa) {
    const auto m = gaussian<T>(x, mean, weights, noise);
    check_threads(threads);
    check(size(rare, 0) == m.p && size(squares, 0) == m.p, "ppca_sums: rare, squares must be (p,)");
    check(size(logs, 0) == m.n, "ppca_sums: logs must be (n,)");
    check(size(products, 0) == m.p && size(products, 1) == m.q + 1,
          "ppca_sums: products must be (p, q + 1)");
    check(size(grams, 0) == m.p && size(grams, 1) == triangle(m.q + 1),
          "ppca_sums: grams must be (p, (q + 1)(q + 2) / 2)");
    check(size(total, 0) == triangle(m.q + 1), "ppca_sums: total must be ((q + 1)(q + 2) / 2,)");
    const RegressionSums sums{squares.data(), products.data(), grams.data(), total.data()};
    if (!LOWLAND_RUN(isa, ppca_sums(m, rare.data(), logs.data(), sums, threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void ppca_posteriors(Rows<T> x, Vector<double> mean, Rows<double> weights, double noise,
                     Out<double> places, OutVector<double> logs, Out<double> covariances,
                     int threads, const std::string& isa) {
    const auto m = gaussian<T>(x, mean, weights, noise);
    check_threads(threads);
    check(size(places, 0) == m.n && size(places, 1) == m.q, "ppca_posteriors: places must be (n, q)");
    check(size(logs, 0) == m.n, "ppca_posteriors: logs must be (n,)");
    const bool none = size(covariances, 1) == 0;
    check(none || (size(covariances, 0) == m.n && size(covariances, 1) == triangle(m.q)),
          "ppca_posteriors: covariances must be (n, q (q + 1) / 2), or have no column");
    double* C = none ? nullptr : covariances.data();
    if (!LOWLAND_RUN(isa, ppca_posteriors(m, places.data(), logs.data(), C, threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind_type(nb::module_& m) {
    using namespace nb::literals;
    m.def("ppca_sums", &ppca_sums<T>, "x"_a.noconvert(), "mean"_a.noconvert(),
          "weights"_a.noconvert(), "noise"_a, "rare"_a.noconvert(), "logs"_a.noconvert(),
          "squares"_a.noconvert(), "products"_a.noconvert(), "grams"_a.noconvert(),
          "total"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("ppca_posteriors", &ppca_posteriors<T>, "x"_a.noconvert(), "mean"_a.noconvert(),
          "weights"_a.noconvert(), "noise"_a, "places"_a.noconvert(), "logs"_a.noconvert(),
          "covariances"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_ppca(nb::module_& m) {
    bind_type<float>(m);
    bind_type<double>(m);
}

}  // namespace lowland
