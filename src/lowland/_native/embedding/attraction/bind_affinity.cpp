// Python bindings of the affinity kernels; rows that could lead them astray are refused here.
#include <limits>
#include <new>

#include "embedding/attraction/affinity.h"
#include "common/bindings.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;
using Numbers = Vector<std::int32_t>;

std::int64_t checked_rows(const Starts& starts, std::int64_t stored) {
    const std::int64_t n = size(starts, 0) - 1;
    check(n >= 0 && n < std::numeric_limits<std::int32_t>::max(), "starts must be (n + 1,)");
    check(starts(0) >= 0 && starts(n) <= stored, "starts do not fit the stored entries");
    for (std::int64_t i = 0; i < n; ++i) check(starts(i) <= starts(i + 1), "starts must not fall");
    return n;
}

RowPattern pattern(const Starts& starts, const Numbers& columns) {
    return {starts.data(), columns.data(), checked_rows(starts, size(columns, 0))};
}

template <class T>
void calibrate(Starts starts, Vector<T> distances, double log_perplexity, OutVector<T> probabilities,
               OutVector<double> betas, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = checked_rows(starts, size(distances, 0));
    check(log_perplexity >= 0, "calibrate: log_perplexity must not be negative");
    check(size(probabilities, 0) == size(distances, 0),
          "calibrate: probabilities must be as long as distances");
    check(size(betas, 0) == n, "calibrate: betas must be (n,)");
    if (!LOWLAND_RUN(isa, calibrate(starts.data(), n, distances.data(), log_perplexity,
                                    probabilities.data(), betas.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void transpose(Starts starts, Numbers columns, Vector<T> values, OutVector<double> work,
               OutVector<std::int64_t> out_starts, OutVector<std::int32_t> out_columns,
               OutVector<T> out_values, int threads, const std::string& isa) {
    check_threads(threads);
    const RowPattern rows = pattern(starts, columns);
    const std::int64_t stored = size(columns, 0);
    bool fine = true;
    for (std::int64_t e = 0; e < stored; ++e) fine &= rows.columns[e] >= -1 && rows.columns[e] < rows.n;
    check(fine, "transpose: a column is neither -1 nor below n");
    check(size(values, 0) == stored, "transpose: values must be as long as columns");
    check(size(work, 0) * static_cast<std::int64_t>(sizeof(double)) >=
              stored * static_cast<std::int64_t>(sizeof(Entry<T>)),
          "transpose: work must be a row, a column and a value per entry long");
    check(size(out_starts, 0) == rows.n + 1, "transpose: out_starts must be (n + 1,)");
    check(size(out_columns, 0) >= stored && size(out_values, 0) >= stored,
          "transpose: out_columns and out_values must be as long as columns");
    auto* entries = reinterpret_cast<Entry<T>*>(work.data());
    if (!LOWLAND_RUN(isa, transpose(rows, values.data(), entries, out_starts.data(),
                                    out_columns.data(), out_values.data(), threads))) {
        throw std::bad_alloc();
    }
}

void union_starts(Starts a_starts, Numbers a_columns, Starts b_starts, Numbers b_columns,
                  OutVector<std::int64_t> starts, int threads, const std::string& isa) {
    check_threads(threads);
    const RowPattern a = pattern(a_starts, a_columns), b = pattern(b_starts, b_columns);
    check(a.n == b.n, "union_starts: a and b must have as many rows");
    check(size(starts, 0) == a.n + 1, "union_starts: starts must be (n + 1,)");
    LOWLAND_RUN(isa, union_starts(a, b, starts.data(), threads));
}

template <class T>
void union_sum(Starts a_starts, Numbers a_columns, Vector<T> a_values, Starts b_starts,
               Numbers b_columns, Vector<T> b_values, double scale, Starts starts,
               OutVector<std::int32_t> columns, OutVector<T> values, int threads,
               const std::string& isa) {
    check_threads(threads);
    const RowPattern a = pattern(a_starts, a_columns), b = pattern(b_starts, b_columns);
    check(size(a_values, 0) == size(a_columns, 0) && size(b_values, 0) == size(b_columns, 0),
          "union_sum: values must be as long as columns");
    check(size(columns, 0) == size(values, 0), "union_sum: values must be as long as columns");
    check(a.n == b.n && checked_rows(starts, size(columns, 0)) == a.n,
          "union_sum: a, b and the result must have as many rows");
    const bool fits = LOWLAND_RUN(isa, union_sum(a, a_values.data(), b, b_values.data(), scale,
                                                 starts.data(), columns.data(), values.data(), threads));
    check(fits, "union_sum: starts must come from union_starts");
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("calibrate", &calibrate<T>, "starts"_a.noconvert(), "distances"_a.noconvert(),
          "log_perplexity"_a, "probabilities"_a.noconvert(), "betas"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("transpose", &transpose<T>, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "values"_a.noconvert(), "work"_a.noconvert(), "out_starts"_a.noconvert(),
          "out_columns"_a.noconvert(), "out_values"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("union_sum", &union_sum<T>, "a_starts"_a.noconvert(), "a_columns"_a.noconvert(),
          "a_values"_a.noconvert(), "b_starts"_a.noconvert(), "b_columns"_a.noconvert(),
          "b_values"_a.noconvert(), "scale"_a, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "values"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_affinity(nb::module_& m) {
    using namespace nb::literals;
    bind<float>(m);
    bind<double>(m);
    m.def("union_starts", &union_starts, "a_starts"_a.noconvert(), "a_columns"_a.noconvert(),
          "b_starts"_a.noconvert(), "b_columns"_a.noconvert(), "starts"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace lowland
