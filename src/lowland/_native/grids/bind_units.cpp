// Python's door to the kernels on units; sizes and numbers that do not fit are refused here.
#include <cmath>
#include <new>

#include "common/bindings.h"
#include "grids/units.h"

namespace lowland {
namespace {

constexpr std::int64_t kMostUnits = std::int64_t{1} << 24;  // panels are counted in float32

template <class T>
UnitTable<T> table_of(const Rows<T>& x, const Rows<T>& units) {
    check(size(x, 1) >= 1 && size(units, 1) == size(x, 1), "x and units must have as many columns");
    check(size(units, 0) >= 1 && size(units, 0) <= kMostUnits, "there must be 1 to 2^24 units");
    return {x.data(), size(x, 0), units.data(), size(units, 0), size(x, 1)};
}

void check_numbers(const Vector<std::int32_t>& nearest, std::int64_t n, std::int64_t m) {
    check(size(nearest, 0) == n, "nearest must be (n,)");
    for (std::int64_t i = 0; i < n; ++i) {
        check(nearest.data()[i] >= 0 && nearest.data()[i] < m, "nearest must be numbers of units");
    }
}

template <class T>
void nearest_units(Rows<T> x, Rows<T> units, Vector<T> shift, bool missing, Out<std::int32_t> ids,
                   Out<double> squares, int threads, const std::string& isa) {
    check_threads(threads);
    const UnitTable<T> table = table_of(x, units);
    const std::int64_t k = size(ids, 1);
    check(size(shift, 0) == table.p, "nearest_units: shift must be (p,)");
    check((k == 1 || k == 2) && k <= table.m, "nearest_units: one or two units can be sought");
    check(size(ids, 0) == table.n && size(squares, 0) == table.n && size(squares, 1) == k,
          "nearest_units: ids and squares must be (n, k)");
    for (std::int64_t e = 0; e < table.m * table.p; ++e) {
        check(std::isfinite(table.units[e]), "nearest_units: units must be finite");
    }
    if (!LOWLAND_RUN(isa, nearest_units(table, shift.data(), missing, k, ids.data(), squares.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void sum_by_unit(Rows<T> x, Vector<std::int32_t> nearest, bool missing, Out<double> counts,
                 Out<double> sums, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0), p = size(x, 1), m = size(sums, 0);
    check(size(sums, 1) == p, "sum_by_unit: sums must be (m, p)");
    check(size(counts, 0) == m && size(counts, 1) == (missing ? p : 1),
          "sum_by_unit: counts must be (m, 1), or (m, p) with missing values");
    check_numbers(nearest, n, m);
    if (!LOWLAND_RUN(isa, sum_by_unit(x.data(), n, p, nearest.data(), m, missing, counts.data(),
                                      sums.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void squares_to_units(Rows<T> x, Rows<T> units, Vector<std::int32_t> nearest, Rows<std::int32_t> lists,
                      Out<double> squares, int threads, const std::string& isa) {
    check_threads(threads);
    const UnitTable<T> table = table_of(x, units);
    const std::int64_t width = size(lists, 1);
    check(size(lists, 0) == table.m, "squares_to_units: lists must have a row for each unit");
    check(size(squares, 0) == table.n && size(squares, 1) == width,
          "squares_to_units: squares must be (n, width)");
    check_numbers(nearest, table.n, table.m);
    for (std::int64_t e = 0; e < table.m * width; ++e) {
        check(lists.data()[e] >= -1 && lists.data()[e] < table.m,
              "squares_to_units: lists must be numbers of units, or -1");
    }
    LOWLAND_RUN(isa, squares_to_units(table, nearest.data(), lists.data(), width, squares.data(), threads));
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("nearest_units", &nearest_units<T>, "x"_a.noconvert(), "units"_a.noconvert(),
          "shift"_a.noconvert(), "missing"_a, "ids"_a.noconvert(), "squares"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("sum_by_unit", &sum_by_unit<T>, "x"_a.noconvert(), "nearest"_a.noconvert(), "missing"_a,
          "counts"_a.noconvert(), "sums"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("squares_to_units", &squares_to_units<T>, "x"_a.noconvert(), "units"_a.noconvert(),
          "nearest"_a.noconvert(), "lists"_a.noconvert(), "squares"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace

void bind_units(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
