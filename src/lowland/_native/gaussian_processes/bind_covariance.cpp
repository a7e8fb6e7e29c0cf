// Python's door to covariances of Gaussian processes; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "gaussian_processes/covariance.h"

namespace lowland {
namespace {

CovariancePairs pairs_of(const Rows<double>& u, const Rows<double>& v, const Rows<double>& a,
                         const Rows<double>& b, const std::string& shape, double variance, double bias, bool upper) {
    const std::int64_t n = size(u, 0), m = size(v, 0), q = size(u, 1), r = size(a, 1);
    check(n >= 1 && m >= 1, "covariance: u and v must have rows");
    check(size(v, 1) == q, "covariance: u and v must have as many columns");
    check(size(a, 0) == n && size(b, 0) == m, "covariance: a and b must have the rows of u and v");
    check(size(b, 1) == r, "covariance: a and b must have as many columns");
    check(!upper || n == m, "covariance: upper needs as many rows of v as of u");
    Shape chosen = Shape::none;
    if (shape == "rbf") {
        chosen = Shape::rbf;
    } else if (shape == "matern32") {
        chosen = Shape::matern32;
    } else if (shape == "matern52") {
        chosen = Shape::matern52;
    } else {
        check(shape == "none", "covariance: shape must be 'none', 'rbf', 'matern32' or 'matern52'");
    }
    return {u.data(), v.data(), a.data(), b.data(), n, m, q, r, chosen, variance, bias, upper};
}

void covariance_matrix(Rows<double> u, Rows<double> v, Rows<double> a, Rows<double> b,
                       const std::string& shape, double variance, double bias, Out<double> out,
                       Out<double> radial, bool upper, int threads, const std::string& isa) {
    check_threads(threads);
    const CovariancePairs pairs = pairs_of(u, v, a, b, shape, variance, bias, upper);
    check(size(out, 0) == pairs.n && size(out, 1) == pairs.m,
          "covariance_matrix: out must have a row for each of u and a column for each of v");
    const bool wanted = size(radial, 0) > 0;
    check(!wanted || (size(radial, 0) == pairs.n && size(radial, 1) == pairs.m),
          "covariance_matrix: radial must be empty, or have the shape of out");
    const CovarianceValues values{out.data(), wanted ? radial.data() : nullptr};
    if (!LOWLAND_RUN(isa, covariance_matrix(pairs, values, threads))) throw std::bad_alloc();
}

void covariance_slopes(Rows<double> u, Rows<double> v, Rows<double> a, Rows<double> b,
                       const std::string& shape, Rows<double> g, Out<double> by_row,
                       Out<double> by_column, bool upper, int threads, const std::string& isa) {
    check_threads(threads);
    const CovariancePairs pairs = pairs_of(u, v, a, b, shape, 1, 0, upper);
    check(size(g, 0) == pairs.n && size(g, 1) == pairs.m,
          "covariance_slopes: g must have a row for each of u and a column for each of v");
    check(size(by_row, 0) == pairs.n && size(by_row, 1) == 2 + 2 * pairs.q + pairs.r,
          "covariance_slopes: by_row must have n rows and 2 + 2 q + r columns");
    const bool wanted = size(by_column, 0) > 0;
    check(!wanted || (size(by_column, 0) == pairs.m && size(by_column, 1) == pairs.q + pairs.r),
          "covariance_slopes: by_column must be empty, or have m rows and q + r columns");
    const CovarianceSlopes slopes{g.data(), by_row.data(), wanted ? by_column.data() : nullptr};
    if (!LOWLAND_RUN(isa, covariance_slopes(pairs, slopes, threads))) throw std::bad_alloc();
}

}  // namespace

void bind_covariance(nb::module_& m) {
    using namespace nb::literals;
    m.def("covariance_matrix", &covariance_matrix, "u"_a.noconvert(), "v"_a.noconvert(),
          "a"_a.noconvert(), "b"_a.noconvert(), "shape"_a, "variance"_a, "bias"_a,
          "out"_a.noconvert(), "radial"_a.noconvert(), "upper"_a, "threads"_a, "isa"_a = "auto");
    m.def("covariance_slopes", &covariance_slopes, "u"_a.noconvert(), "v"_a.noconvert(),
          "a"_a.noconvert(), "b"_a.noconvert(), "shape"_a, "g"_a.noconvert(),
          "by_row"_a.noconvert(), "by_column"_a.noconvert(), "upper"_a,
          "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
