// Python bindings of the neighbor kernels.
#include <nanobind/stl/optional.h>

#include <optional>

#include "common/bindings.h"
#include "neighbors/knn.h"

namespace lowland {
namespace {

template <class T>
using Panels = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Tails = std::optional<Vector<T>>;

template <class T>
Points<T> points_of(const Panels<T>& panels, const Vector<T>& halves, const Tails<T>& tails,
                    std::int64_t lead, double rounding) {
    const std::int64_t q = size(panels, 1);
    check(size(panels, 2) == baseline::width_of_panels<T>(), "knn: panels have a wrong width");
    check(size(halves, 0) == size(panels, 0) * size(panels, 2), "knn: halves must fill the panels");
    if (!tails) return {panels.data(), halves.data(), size(panels, 0), q, nullptr, q, rounding};
    check(size(*tails, 0) == size(halves, 0), "knn: tails must fill the panels");
    check(1 <= lead && lead <= q && rounding >= 0, "knn: lead or rounding out of bounds");
    return {panels.data(), halves.data(), size(panels, 0), q, tails->data(), lead, rounding};
}

// Whether all numbers of an array lie in [low, high).
template <class I>
bool within(const I* values, std::int64_t n, std::int64_t low, std::int64_t high) {
    for (std::int64_t i = 0; i < n; ++i) {
        if (values[i] < low || values[i] >= high) return false;
    }
    return true;
}

template <class I>
bool ascending(const I* values, std::int64_t n) {
    for (std::int64_t i = 1; i < n; ++i) {
        if (values[i] < values[i - 1]) return false;
    }
    return true;
}

template <class T>
Kept<T> kept_of(const Out<std::uint8_t>& entries, const OutVector<std::int32_t>& counts,
                const OutVector<T>& thresholds, std::int64_t keep, std::int64_t n_rows) {
    const std::int64_t capacity = size(entries, 1) / baseline::entry_bytes<T>();
    check(size(entries, 0) == n_rows && size(counts, 0) == n_rows && size(thresholds, 0) == n_rows,
          "knn: entries, counts and thresholds must have a row for every place in the panels");
    check(keep >= 1 && capacity > keep, "knn: entries must hold more than keep candidates");
    return {entries.data(), counts.data(), thresholds.data(), capacity, keep};
}

template <class T>
void pack_points(Rows<T> x, nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu> panels,
                 int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0), q = size(x, 1), width = baseline::width_of_panels<T>();
    check(size(panels, 0) == (n + width - 1) / width && size(panels, 1) == q &&
              size(panels, 2) == width,
          "pack_points: panels has a wrong shape");
    LOWLAND_RUN(isa, pack_points(x.data(), n, q, panels.data(), threads));
}

template <class T>
void join_rounds(Panels<T> panels, Vector<T> halves, Rows<T> low, Rows<T> high, Vector<T> top_halves,
                 std::int64_t panels_per_block, double rounding, Out<std::uint8_t> entries,
                 OutVector<std::int32_t> counts, OutVector<T> thresholds, std::int64_t keep,
                 std::int64_t first, std::int64_t last, int threads, const std::string& isa,
                 Tails<T> tails, std::int64_t lead) {
    check_threads(threads);
    const Points<T> points = points_of<T>(panels, halves, tails, lead, rounding);
    const Blocks<T> blocks{size(low, 0), panels_per_block, low.data(), high.data(),
                           top_halves.data(), size(low, 1)};
    check(panels_per_block >= 1 &&
              blocks.n_blocks == (points.n_panels + panels_per_block - 1) / panels_per_block &&
              size(high, 0) == blocks.n_blocks && size(high, 1) == blocks.n_box &&
              size(top_halves, 0) == blocks.n_blocks && blocks.n_box <= points.q,
          "join_rounds: the boxes do not fit the panels");
    std::int64_t n_rounds = 1;
    while (n_rounds < blocks.n_blocks) n_rounds *= 2;
    check(0 <= first && last <= n_rounds, "join_rounds: there are no such rounds");
    const Kept<T> kept = kept_of(entries, counts, thresholds, keep, size(halves, 0));
    LOWLAND_RUN(isa, join_rounds(points, blocks, kept, first, last, threads));
}

template <class T>
void query_groups(Panels<T> query_panels, Vector<T> query_halves, Panels<T> panels,
                  Vector<T> halves, Vector<std::int64_t> groups, Vector<std::int64_t> range_starts,
                  Rows<std::int64_t> ranges, std::int64_t first, std::int64_t last,
                  Vector<std::int32_t> query_ids, Vector<std::int32_t> point_ids,
                  Out<std::uint8_t> entries, OutVector<std::int32_t> counts,
                  OutVector<T> thresholds, std::int64_t keep, int threads, const std::string& isa,
                  Tails<T> query_tails, Tails<T> tails, std::int64_t lead, double rounding) {
    check_threads(threads);
    check(query_tails.has_value() == tails.has_value(), "query_groups: tails on one side only");
    const Points<T> queries = points_of<T>(query_panels, query_halves, query_tails, lead, rounding);
    const Points<T> points = points_of<T>(panels, halves, tails, lead, rounding);
    check(queries.q == points.q, "query_groups: queries and points differ in dimension");
    check(size(query_ids, 0) == size(query_halves, 0) && size(point_ids, 0) == size(halves, 0),
          "query_groups: every place in the panels needs an id");
    check(0 <= first && first <= last && last < size(groups, 0) &&
              size(range_starts, 0) == size(groups, 0) && size(ranges, 1) == 2,
          "query_groups: groups and ranges do not fit together");
    check(ascending(groups.data(), size(groups, 0)) && groups(0) >= 0 &&
              groups(size(groups, 0) - 1) <= queries.n_panels &&
              ascending(range_starts.data(), size(range_starts, 0)) && range_starts(0) >= 0 &&
              range_starts(size(range_starts, 0) - 1) <= size(ranges, 0) &&
              within(ranges.data(), 2 * size(ranges, 0), 0, points.n_panels + 1),
          "query_groups: groups or ranges lie outside the panels");
    const Kept<T> kept = kept_of(entries, counts, thresholds, keep, size(query_halves, 0));
    LOWLAND_RUN(isa, query_groups(queries, points, groups.data(), range_starts.data(),
                                  ranges.data(), first, last, query_ids.data(), point_ids.data(),
                                  kept, threads));
}

template <class T>
void probe_lists(Panels<T> panels, Vector<T> halves, Rows<T> rows, Vector<std::int64_t> tasks,
                 Rows<std::int64_t> ranges, Vector<std::int64_t> list_starts,
                 Vector<std::int32_t> queries, Out<std::uint8_t> entries,
                 OutVector<std::int32_t> counts, OutVector<T> thresholds, std::int64_t keep,
                 int threads, const std::string& isa, Tails<T> tails, std::int64_t lead,
                 double rounding, Tails<T> query_halves, Tails<T> query_tails) {
    check_threads(threads);
    const Points<T> points = points_of<T>(panels, halves, tails, lead, rounding);
    const std::int64_t n_lists = size(ranges, 0), n_tasks = size(tasks, 0) - 1, n_asked = size(rows, 0);
    const bool among = !query_halves.has_value();
    check(n_asked == size(among ? halves : *query_halves, 0) && size(rows, 1) == points.q,
          "probe_lists: rows must repeat the points, or fit the halves of the queries");
    check(among ? !query_tails.has_value()
                : query_tails.has_value() == tails.has_value() &&
                      (!query_tails || size(*query_tails, 0) == n_asked),
          "probe_lists: tails must be given for queries as for points");
    const T* own_tails = query_tails ? query_tails->data() : nullptr;
    const Asked<T> asked{rows.data(), among ? halves.data() : query_halves->data(),
                         among ? points.tails : own_tails, among};
    check(size(ranges, 1) == 2 && size(list_starts, 0) == n_lists + 1 && n_tasks >= 0 &&
              tasks(0) >= 0 && tasks(n_tasks) <= n_lists && list_starts(0) >= 0 &&
              list_starts(n_lists) <= size(queries, 0),
          "probe_lists: tasks, lists and queries do not fit together");
    check(ascending(tasks.data(), n_tasks + 1) && ascending(list_starts.data(), n_lists + 1) &&
              within(ranges.data(), 2 * n_lists, 0, points.n_panels + 1) &&
              within(queries.data(), size(queries, 0), 0, n_asked),
          "probe_lists: lists, ranges or queries lie outside the points");
    const Kept<T> kept = kept_of(entries, counts, thresholds, keep, n_asked);
    if (!LOWLAND_RUN(isa, probe_lists(points, asked, tasks.data(), n_tasks, ranges.data(),
                                      list_starts.data(), queries.data(), kept, threads))) {
        throw std::bad_alloc();
    }
}

// One round of looking at the neighbors of neighbors; near is scratch space of n x k.
template <class T>
void refine_neighbors(Rows<T> rows, Vector<T> halves, Out<std::int32_t> near,
                      Out<std::uint8_t> entries, OutVector<std::int32_t> counts,
                      OutVector<T> thresholds, std::int64_t keep, int threads,
                      const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(rows, 0), k = size(near, 1);
    check(size(halves, 0) == n && size(near, 0) == n && k <= keep,
          "refine_neighbors: the arrays do not fit together");
    const Kept<T> kept = kept_of(entries, counts, thresholds, keep, n);
    LOWLAND_RUN(isa, snapshot(kept, n, k, near.data(), threads));
    if (!LOWLAND_RUN(isa, refine_neighbors(rows.data(), halves.data(), n, size(rows, 1), near.data(),
                                           k, kept, threads))) {
        throw std::bad_alloc();
    }
}

// Whether all candidates of the rows that ask are points, and their ids rows of the data.
template <class T>
bool candidates_within(const Kept<T>& kept, const Vector<std::int32_t>& query_rows,
                       const Vector<std::int32_t>& point_ids, std::int64_t n_rows) {
    struct Candidate {
        T score;
        std::int32_t id;
    };
    const Candidate* entries = static_cast<const Candidate*>(kept.entries);
    for (std::int64_t row = 0; row < size(query_rows, 0); ++row) {
        if (query_rows(row) < 0) continue;
        if (kept.counts[row] < 0 || kept.counts[row] > kept.capacity) return false;
        for (std::int64_t e = 0; e < kept.counts[row]; ++e) {
            const std::int32_t place = entries[row * kept.capacity + e].id;
            if (place < 0 || place >= size(point_ids, 0)) return false;
            if (point_ids(place) < 0 || point_ids(place) >= n_rows) return false;
        }
    }
    return true;
}

template <class T, class Q, class X>
void rerank(Rows<Q> queries, Rows<X> x, Vector<std::int32_t> query_rows,
            Out<std::uint8_t> entries, OutVector<std::int32_t> counts, OutVector<T> thresholds,
            std::int64_t keep, Vector<std::int32_t> point_ids, Vector<T> halves, double rounding,
            Out<std::int32_t> ids, Out<double> squares, OutVector<std::uint8_t> certain, int threads,
            const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(query_rows, 0), k = size(ids, 1);
    check(size(queries, 1) == size(x, 1), "rerank: queries and points differ in dimension");
    check(size(halves, 0) == n && size(certain, 0) == n && size(squares, 1) == k && k >= 1 &&
              size(ids, 0) == size(queries, 0) && size(squares, 0) == size(queries, 0),
          "rerank: the arrays do not fit together");
    const Kept<T> kept = kept_of(entries, counts, thresholds, keep, n);
    // Of few queries only the candidates are looked at, so that one query does not cost O(points).
    const bool few = n * kept.capacity < size(point_ids, 0);
    check(within(query_rows.data(), n, -1, size(queries, 0)) &&
              (few ? candidates_within(kept, query_rows, point_ids, size(x, 0))
                   : within(point_ids.data(), size(point_ids, 0), -1, size(x, 0))),
          "rerank: there are no such rows");
    if (!LOWLAND_RUN(isa, rerank(queries.data(), x.data(), size(x, 1), query_rows.data(), n, kept,
                                 point_ids.data(), halves.data(), rounding, k, ids.data(),
                                 squares.data(), certain.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T, class Q, class X>
void complete(Panels<T> query_panels, Vector<T> query_halves, Panels<T> panels, Vector<T> halves,
              Rows<Q> queries, Rows<X> x, Vector<std::int64_t> rows,
              Vector<std::int32_t> query_rows, Vector<std::int32_t> point_ids, bool self_join,
              double rounding, Out<std::int32_t> ids, Out<double> squares, int threads,
              const std::string& isa) {
    check_threads(threads);
    const Points<T> sought = points_of<T>(query_panels, query_halves, {}, 0, rounding);
    const Points<T> points = points_of<T>(panels, halves, {}, 0, rounding);
    check(sought.q == points.q && size(queries, 1) == size(x, 1) &&
              size(query_rows, 0) == size(query_halves, 0) &&
              size(point_ids, 0) == size(halves, 0) && size(squares, 1) == size(ids, 1) &&
              size(ids, 0) == size(queries, 0) && size(squares, 0) == size(queries, 0),
          "complete: the arrays do not fit together");
    check(size(ids, 1) >= 1 && within(rows.data(), size(rows, 0), 0, size(query_halves, 0)) &&
              within(query_rows.data(), size(query_rows, 0), -1, size(queries, 0)) &&
              within(point_ids.data(), size(point_ids, 0), -1, size(x, 0)),
          "complete: there are no such rows");
    for (std::int64_t i = 0; i < size(rows, 0); ++i) {
        check(query_rows(rows(i)) >= 0, "complete: an empty place has no neighbors");
    }
    if (!LOWLAND_RUN(isa, complete(sought, points, queries.data(), x.data(), size(x, 1), rows.data(),
                                   size(rows, 0), query_rows.data(), point_ids.data(), self_join,
                                   rounding, size(ids, 1), ids.data(), squares.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind_search(nb::module_& m) {
    using namespace nb::literals;
    m.def("pack_points", &pack_points<T>, "x"_a.noconvert(), "panels"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("join_rounds", &join_rounds<T>, "panels"_a.noconvert(), "halves"_a.noconvert(),
          "low"_a.noconvert(), "high"_a.noconvert(), "top_halves"_a.noconvert(),
          "panels_per_block"_a, "rounding"_a, "entries"_a.noconvert(), "counts"_a.noconvert(),
          "thresholds"_a.noconvert(), "keep"_a, "first"_a, "last"_a, "threads"_a, "isa"_a = "auto",
          "tails"_a.noconvert() = nb::none(), "lead"_a = 0);
    m.def("query_groups", &query_groups<T>, "query_panels"_a.noconvert(),
          "query_halves"_a.noconvert(), "panels"_a.noconvert(), "halves"_a.noconvert(),
          "groups"_a.noconvert(), "range_starts"_a.noconvert(), "ranges"_a.noconvert(), "first"_a,
          "last"_a, "query_ids"_a.noconvert(), "point_ids"_a.noconvert(), "entries"_a.noconvert(),
          "counts"_a.noconvert(), "thresholds"_a.noconvert(), "keep"_a, "threads"_a,
          "isa"_a = "auto", "query_tails"_a.noconvert() = nb::none(),
          "tails"_a.noconvert() = nb::none(), "lead"_a = 0, "rounding"_a = 0.0);
    m.def("refine_neighbors", &refine_neighbors<T>, "rows"_a.noconvert(), "halves"_a.noconvert(),
          "near"_a.noconvert(), "entries"_a.noconvert(), "counts"_a.noconvert(),
          "thresholds"_a.noconvert(), "keep"_a, "threads"_a, "isa"_a = "auto");
    m.def("probe_lists", &probe_lists<T>, "panels"_a.noconvert(), "halves"_a.noconvert(),
          "rows"_a.noconvert(), "tasks"_a.noconvert(), "ranges"_a.noconvert(),
          "list_starts"_a.noconvert(), "queries"_a.noconvert(), "entries"_a.noconvert(),
          "counts"_a.noconvert(), "thresholds"_a.noconvert(), "keep"_a, "threads"_a,
          "isa"_a = "auto", "tails"_a.noconvert() = nb::none(), "lead"_a = 0, "rounding"_a = 0.0,
          "query_halves"_a.noconvert() = nb::none(), "query_tails"_a.noconvert() = nb::none());
}

template <class T, class Q, class X>
void bind_exact(nb::module_& m) {
    using namespace nb::literals;
    m.def("rerank", &rerank<T, Q, X>, "queries"_a.noconvert(), "x"_a.noconvert(),
          "query_rows"_a.noconvert(), "entries"_a.noconvert(), "counts"_a.noconvert(),
          "thresholds"_a.noconvert(), "keep"_a, "point_ids"_a.noconvert(), "halves"_a.noconvert(),
          "rounding"_a, "ids"_a.noconvert(), "squares"_a.noconvert(), "certain"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("complete", &complete<T, Q, X>, "query_panels"_a.noconvert(), "query_halves"_a.noconvert(),
          "panels"_a.noconvert(), "halves"_a.noconvert(), "queries"_a.noconvert(),
          "x"_a.noconvert(), "rows"_a.noconvert(), "query_rows"_a.noconvert(),
          "point_ids"_a.noconvert(), "self_join"_a, "rounding"_a, "ids"_a.noconvert(),
          "squares"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_knn(nb::module_& m) {
    m.attr("PANEL_WIDTH_FLOAT32") = baseline::width_of_panels<float>();
    m.attr("PANEL_WIDTH_FLOAT64") = baseline::width_of_panels<double>();
    m.attr("ENTRY_BYTES_FLOAT32") = baseline::entry_bytes<float>();
    m.attr("ENTRY_BYTES_FLOAT64") = baseline::entry_bytes<double>();
    bind_search<float>(m);
    bind_search<double>(m);
    bind_exact<float, float, float>(m);
    bind_exact<float, double, float>(m);
    bind_exact<float, double, double>(m);
    bind_exact<double, float, float>(m);
    bind_exact<double, double, float>(m);
    bind_exact<double, double, double>(m);
}

}  // namespace lowland
