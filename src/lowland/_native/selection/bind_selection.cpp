// Python's door to the kernels that judge single columns.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "neighbors/knn.h"
#include "selection/selection.h"

namespace lowland {
namespace {

template <class T>
using Panels = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void check_psi(const Vector<double>& psi, std::int64_t n, const char* message) {
    check(size(psi, 0) == n + 1 && n < std::numeric_limits<std::int32_t>::max(), message);
}

void check_sorted(const double* values, std::int64_t m, std::int64_t n, const char* message) {
    for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t i = 1; i < n; ++i) {
            check(values[row * n + i - 1] <= values[row * n + i], message);
        }
    }
}

void class_digammas(Rows<double> values, Rows<std::int32_t> codes, std::int64_t n_classes,
                    std::int64_t k, Vector<double> psi, OutVector<double> out, int threads,
                    const std::string& isa) {
    const std::int64_t m = size(values, 0), n = size(values, 1);
    check_threads(threads);
    check(size(codes, 0) == m && size(codes, 1) == n, "class_digammas: codes must be (m, n)");
    check(size(out, 0) == m, "class_digammas: out must be (m,)");
    check(k >= 1 && n_classes >= 1 && n_classes <= n, "class_digammas: k or n_classes is out of range");
    check_psi(psi, n, "class_digammas: psi must be (n + 1,)");
    check_sorted(values.data(), m, n, "class_digammas: rows of values must ascend");
    std::string seen(static_cast<std::size_t>(n_classes), 0);
    for (std::int64_t row = 0; row < m; ++row) {
        for (char& count : seen) count = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int32_t code = codes(row, i);
            check(code >= 0 && code < n_classes, "class_digammas: a code is not below n_classes");
            char& count = seen[static_cast<std::size_t>(code)];
            if (count < 2) ++count;
        }
        for (const char count : seen) {
            check(count == 2, "class_digammas: every class needs two values");
        }
    }
    const ClassColumns columns{values.data(), codes.data(), m, n, n_classes};
    if (!LOWLAND_RUN(isa, class_digammas(columns, k, psi.data(), out.data(), threads))) {
        throw std::bad_alloc();
    }
}

void pair_digammas(Rows<double> x, Rows<double> y_of_x, Rows<std::int32_t> y_rank, Vector<double> y,
                   Rows<double> x_of_y, std::int64_t k, Vector<double> psi, OutVector<double> out,
                   int threads, const std::string& isa) {
    const std::int64_t m = size(x, 0), n = size(x, 1);
    const auto fits = [&](const auto& array) { return size(array, 0) == m && size(array, 1) == n; };
    check_threads(threads);
    check(fits(y_of_x) && fits(y_rank) && fits(x_of_y) && size(y, 0) == n && size(out, 0) == m,
          "pair_digammas: x, y_of_x, y_rank and x_of_y must be (m, n), y (n,) and out (m,)");
    check(k >= 1 && k < n, "pair_digammas: k must be from 1 to n - 1");
    check_psi(psi, n, "pair_digammas: psi must be (n + 1,)");
    check_sorted(x.data(), m, n, "pair_digammas: rows of x must ascend");
    check_sorted(y.data(), 1, n, "pair_digammas: y must ascend");
    for (std::int64_t i = 0; i < m * n; ++i) {
        check(y_rank.data()[i] >= 0 && y_rank.data()[i] < n, "pair_digammas: a rank is not below n");
    }
    const PairColumns columns{x.data(), y_of_x.data(), y_rank.data(), y.data(), x_of_y.data(), m, n};
    if (!LOWLAND_RUN(isa, pair_digammas(columns, k, psi.data(), out.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void manhattan_rows(Panels<T> panels, Rows<T> rows, Out<double> out, int threads,
                    const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(out, 1), m = size(rows, 0), d = size(rows, 1);
    const std::int64_t width = baseline::width_of_panels<T>();
    check(size(panels, 2) == width && size(panels, 0) == (n + width - 1) / width,
          "manhattan_rows: out needs a column for every packed row");
    check(size(panels, 1) == d, "manhattan_rows: rows and points differ in dimension");
    check(size(out, 0) == m, "manhattan_rows: out needs a row for every row");
    LOWLAND_RUN(isa, manhattan_rows(panels.data(), n, rows.data(), m, d, out.data(), threads));
}

template <class T>
void bind_manhattan(nb::module_& m) {
    using namespace nb::literals;
    m.def("manhattan_rows", &manhattan_rows<T>, "panels"_a.noconvert(), "rows"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_selection(nb::module_& m) {
    using namespace nb::literals;
    m.def("class_digammas", &class_digammas, "values"_a.noconvert(), "codes"_a.noconvert(),
          "n_classes"_a, "k"_a, "psi"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("pair_digammas", &pair_digammas, "x"_a.noconvert(), "y_of_x"_a.noconvert(),
          "y_rank"_a.noconvert(), "y"_a.noconvert(), "x_of_y"_a.noconvert(), "k"_a,
          "psi"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    bind_manhattan<float>(m);
    bind_manhattan<double>(m);
}

}  // namespace lowland
