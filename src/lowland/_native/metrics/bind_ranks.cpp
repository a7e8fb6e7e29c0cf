// Python bindings of the kernels behind the quality measures.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "metrics/ranks.h"

namespace lowland {
namespace {

template <class T>
using Panels = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void check_rows(const Vector<std::int32_t>& numbers, std::int64_t low, std::int64_t high,
                const char* message) {
    for (std::int64_t i = 0; i < size(numbers, 0); ++i) {
        check(numbers(i) >= low && numbers(i) < high, message);
    }
}

template <class T>
void check_panels(const Panels<T>& panels, std::int64_t n, const char* message) {
    const std::int64_t width = baseline::width_of_panels<T>();
    check(size(panels, 2) == width && size(panels, 0) == (n + width - 1) / width, message);
}

template <class T, class X>
void count_ranks(Panels<T> panels, Vector<T> halves, Rows<X> x, Vector<std::int32_t> rows,
                 Vector<std::int64_t> starts, Vector<std::int32_t> partners, double rounding,
                 OutVector<std::int32_t> ranks, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0), m = size(rows, 0), n_pairs = size(partners, 0);
    check_panels<T>(panels, n, "count_ranks: the panels must hold every row of x");
    check(size(halves, 0) == size(panels, 0) * size(panels, 2),
          "count_ranks: halves must fill the panels");
    check(n < std::numeric_limits<std::int32_t>::max(), "count_ranks: too many rows");
    check(size(starts, 0) == m + 1 && starts(0) == 0 && starts(m) == n_pairs &&
              size(ranks, 0) == n_pairs,
          "count_ranks: starts, partners and ranks do not fit together");
    for (std::int64_t i = 0; i < m; ++i) {
        check(starts(i) <= starts(i + 1), "count_ranks: starts must not fall");
    }
    check_rows(rows, 0, n, "count_ranks: there are no such rows");
    check_rows(partners, 0, n, "count_ranks: there are no such partners");
    check(rounding >= 0 && rounding < 0.1, "count_ranks: rounding must be a small number");
    const Points<T> points{panels.data(), halves.data(), size(panels, 0), size(panels, 1),
                           nullptr,       size(panels, 1), rounding};
    const Partners asked{rows.data(), m, starts.data(), partners.data(), ranks.data()};
    if (!LOWLAND_RUN(isa, count_ranks(points, x.data(), n, size(x, 1), asked, rounding, threads))) {
        throw std::bad_alloc();
    }
}

template <class T, class X>
void count_nearer(Panels<T> panels, Vector<T> halves, Rows<X> x, Panels<T> query_panels,
                  Vector<T> query_halves, Rows<X> queries, Vector<std::int32_t> own,
                  Vector<std::int64_t> starts, Vector<double> squares, Vector<std::int32_t> ties,
                  double rounding, OutVector<std::int64_t> counts, int threads,
                  const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0), m = size(queries, 0), n_pairs = size(squares, 0);
    check_panels<T>(panels, n, "count_nearer: the panels must hold every row of x");
    check_panels<T>(query_panels, m, "count_nearer: the panels must hold every query");
    check(size(halves, 0) == size(panels, 0) * size(panels, 2) &&
              size(query_halves, 0) == size(query_panels, 0) * size(query_panels, 2),
          "count_nearer: halves must fill the panels");
    check(size(panels, 1) == size(query_panels, 1) && size(x, 1) == size(queries, 1),
          "count_nearer: queries and points differ in dimension");
    check(n < std::numeric_limits<std::int32_t>::max(), "count_nearer: too many rows");
    check(size(own, 0) == m && size(starts, 0) == m + 1 && starts(0) == 0 &&
              starts(m) == n_pairs && size(ties, 0) == n_pairs && size(counts, 0) == n_pairs,
          "count_nearer: own, starts, squares, ties and counts do not fit together");
    for (std::int64_t i = 0; i < m; ++i) {
        check(starts(i) <= starts(i + 1), "count_nearer: starts must not fall");
    }
    for (std::int64_t i = 0; i < n_pairs; ++i) {
        check(squares(i) >= 0, "count_nearer: a square is negative or no number");
    }
    check_rows(own, -1, n, "count_nearer: there is no such row");
    check(rounding >= 0 && rounding < 0.1, "count_nearer: rounding must be a small number");
    const std::int64_t q = size(panels, 1);
    const Points<T> points{panels.data(), halves.data(), size(panels, 0), q, nullptr, q, rounding};
    const Points<T> from{query_panels.data(), query_halves.data(), size(query_panels, 0), q,
                         nullptr,             q,                   rounding};
    const Thresholds asked{m, own.data(), starts.data(), squares.data(), ties.data(), counts.data()};
    if (!LOWLAND_RUN(isa, count_nearer(points, x.data(), n, size(x, 1), from, queries.data(), asked,
                                       rounding, threads))) {
        throw std::bad_alloc();
    }
}

template <class X>
void pair_squares(Rows<X> a, Rows<X> b, OutVector<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(a, 0), d = size(a, 1);
    check(size(b, 0) == m && size(b, 1) == d && size(out, 0) == m,
          "pair_squares: a, b and out do not fit together");
    LOWLAND_RUN(isa, pair_squares(a.data(), b.data(), m, d, out.data(), threads));
}

void sort_rows(Rows<double> values, bool inverse, Out<std::int32_t> out, int threads,
               const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(values, 0), n = size(values, 1);
    check(size(out, 0) == m && size(out, 1) == n, "sort_rows: out has a wrong shape");
    check(n < std::numeric_limits<std::int32_t>::max(), "sort_rows: too many columns");
    if (!LOWLAND_RUN(isa, sort_rows(values.data(), m, n, inverse, out.data(), threads))) {
        throw std::bad_alloc();
    }
}

void mid_ranks(Rows<double> values, Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(values, 0), n = size(values, 1);
    check(size(out, 0) == m && size(out, 1) == n, "mid_ranks: out has a wrong shape");
    check(n < std::numeric_limits<std::int32_t>::max(), "mid_ranks: too many columns");
    if (!LOWLAND_RUN(isa, mid_ranks(values.data(), m, n, out.data(), threads))) throw std::bad_alloc();
}

template <class X>
void distance_rows(Panels<X> panels, Rows<X> rows, bool root, Out<double> out, int threads,
                   const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(out, 1), m = size(rows, 0), d = size(rows, 1);
    check_panels<X>(panels, n, "distance_rows: out needs a column for every packed row");
    check(size(panels, 1) == d, "distance_rows: rows and points differ in dimension");
    check(size(out, 0) == m, "distance_rows: out needs a row for every row");
    LOWLAND_RUN(isa, distance_rows(panels.data(), n, rows.data(), m, d, root, out.data(), threads));
}

void distance_sums(Rows<double> a, Rows<double> b, Vector<std::int32_t> own, double scale,
                   Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(a, 0), n = size(a, 1);
    check(size(b, 0) == m && size(b, 1) == n, "distance_sums: a and b differ in shape");
    check(size(own, 0) == m && size(out, 0) == m && size(out, 1) == kDistanceSums,
          "distance_sums: own must be (m,) and out (m, DISTANCE_SUMS)");
    check_rows(own, -1, n, "distance_sums: there is no such column");
    LOWLAND_RUN(isa, distance_sums(a.data(), b.data(), m, n, own.data(), scale, out.data(), threads));
}

void add_column_sums(Rows<double> a, Rows<double> b, std::int64_t first, double scale,
                     Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(a, 0), n = size(a, 1);
    check(size(b, 0) == m && size(b, 1) == n, "add_column_sums: a and b differ in shape");
    check(first >= 0 && first <= n && size(out, 0) == n - first && size(out, 1) == kDistanceSums,
          "add_column_sums: out must be (n - first, DISTANCE_SUMS)");
    LOWLAND_RUN(isa, add_column_sums(a.data(), b.data(), m, n, first, scale, out.data(), threads));
}

template <class T, class X>
void bind_counts(nb::module_& m) {
    using namespace nb::literals;
    m.def("count_ranks", &count_ranks<T, X>, "panels"_a.noconvert(), "halves"_a.noconvert(),
          "x"_a.noconvert(), "rows"_a.noconvert(), "starts"_a.noconvert(),
          "partners"_a.noconvert(), "rounding"_a, "ranks"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("count_nearer", &count_nearer<T, X>, "panels"_a.noconvert(), "halves"_a.noconvert(),
          "x"_a.noconvert(), "query_panels"_a.noconvert(), "query_halves"_a.noconvert(),
          "queries"_a.noconvert(), "own"_a.noconvert(), "starts"_a.noconvert(),
          "squares"_a.noconvert(), "ties"_a.noconvert(), "rounding"_a, "counts"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
}

template <class X>
void bind_distances(nb::module_& m) {
    using namespace nb::literals;
    m.def("distance_rows", &distance_rows<X>, "panels"_a.noconvert(), "rows"_a.noconvert(), "root"_a,
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("pair_squares", &pair_squares<X>, "a"_a.noconvert(), "b"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_ranks(nb::module_& m) {
    using namespace nb::literals;
    m.attr("DISTANCE_SUMS") = kDistanceSums;
    bind_counts<float, float>(m);
    bind_counts<float, double>(m);
    bind_counts<double, float>(m);
    bind_counts<double, double>(m);
    bind_distances<float>(m);
    bind_distances<double>(m);
    m.def("sort_rows", &sort_rows, "values"_a.noconvert(), "inverse"_a, "out"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("mid_ranks", &mid_ranks, "values"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("distance_sums", &distance_sums, "a"_a.noconvert(), "b"_a.noconvert(),
          "own"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("add_column_sums", &add_column_sums, "a"_a.noconvert(), "b"_a.noconvert(), "first"_a,
          "scale"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
