// Python's door to sums of Gaussians; sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "unfolding/gaussian_field.h"

namespace lowland {
namespace {

void gaussian_field(Rows<double> u, Rows<double> b, Rows<double> v, Rows<double> w,
                    Out<double> sums, Out<double> pulls, int threads, const std::string& isa) {
    const std::int64_t n = size(u, 0), d = size(u, 1), m = size(v, 0);
    const bool has_pulls = size(b, 0) > 0;
    check_threads(threads);
    check(d >= 1 && size(v, 1) == d, "gaussian_field: u and v must have as many columns, at least 1");
    check(size(w, 0) == m && size(w, 1) == d, "gaussian_field: w must have the shape of v");
    check(size(sums, 0) == n && size(sums, 1) == d, "gaussian_field: sums must have the shape of u");
    if (has_pulls) {
        check(size(b, 0) == n && size(b, 1) == d, "gaussian_field: b must be empty or like u");
        check(size(pulls, 0) == n && size(pulls, 1) == d,
              "gaussian_field: pulls must have the shape of u");
    }
    const GaussianField field{u.data(), has_pulls ? b.data() : nullptr, n, v.data(), w.data(), m, d};
    if (!LOWLAND_RUN(isa, gaussian_field(field, sums.data(), pulls.data(), threads))) {
        throw std::bad_alloc();
    }
}

}  // namespace

void bind_gaussian_field(nb::module_& m) {
    using namespace nb::literals;
    m.def("gaussian_field", &gaussian_field, "u"_a.noconvert(), "b"_a.noconvert(),
          "v"_a.noconvert(), "w"_a.noconvert(), "sums"_a.noconvert(), "pulls"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
