// Python bindings of the kernels of maps by pairs.
#include <nanobind/stl/optional.h>

#include <limits>
#include <new>
#include <optional>

#include "common/bindings.h"
#include "embedding/pairs/pair_maps.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;
using Numbers = Vector<std::int32_t>;
using Ids = Rows<std::int32_t>;
using OutIds = Out<std::int32_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Partners partners_of(const Ids& ids, std::int64_t n, const char* message) {
    bool fine = n <= kMost;
    for (std::int64_t e = 0; e < size(ids, 0) * size(ids, 1); ++e) fine &= ids.data()[e] >= 0 && ids.data()[e] < n;
    check(fine, message);
    return {ids.data(), size(ids, 0), size(ids, 1)};
}

void draw_groups(std::int64_t first, std::int64_t n, std::uint64_t seed, std::int64_t groups, OutIds out, int threads,
                 const std::string& isa) {
    check_threads(threads);
    const std::int64_t rows = size(out, 0), columns = size(out, 1);
    check(groups >= 1 && columns % groups == 0, "draw_groups: out must have equally many columns for each group");
    check(first >= 0 && first + rows <= n && n <= kMost, "draw_groups: the rows must be below n");
    check(columns / groups <= n - 1, "draw_groups: a group has at most n - 1 rows");
    LOWLAND_RUN(isa, draw_groups(first, rows, n, seed, groups, columns / groups, out.data(), threads));
}

void draw_far(Ids near, std::uint64_t seed, OutIds out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(near, 0), k = size(near, 1), count = size(out, 1);
    check(size(out, 0) == n && count <= n - 1 - k, "draw_far: out must be (n, count), with count <= n - 1 - k");
    const Partners partners = partners_of(near, n, "draw_far: a near row is not below n");
    LOWLAND_RUN(isa, draw_far(partners, seed, count, out.data(), threads));
}

template <class T>
void redraw_far(Ids near, Rows<T> y, double reach, std::uint64_t seed, OutIds far, OutVector<std::int32_t> within,
                int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(near, 0), d = size(y, 1);
    check(n >= 1 && d >= 1 && size(y, 0) == n && size(far, 0) == n && size(within, 0) == n,
          "redraw_far: y, far and within must have a row for each row of near");
    check(reach > 0, "redraw_far: reach must be positive");
    const Partners partners = partners_of(near, n, "redraw_far: a near row is not below n");
    if (!LOWLAND_RUN(isa, redraw_far(partners, y.data(), d, reach, seed, size(far, 1), far.data(), within.data(),
                                     threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void listed_squares(Rows<T> x, std::int64_t first, Ids ids, Out<T> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0);
    check(first >= 0 && first + size(ids, 0) <= n, "listed_squares: the rows must be below n");
    check(size(out, 0) == size(ids, 0) && size(out, 1) == size(ids, 1), "listed_squares: out must be as ids");
    const Partners listed = partners_of(ids, n, "listed_squares: an id is not below n");
    LOWLAND_RUN(isa, listed_squares(x.data(), size(x, 1), listed, first, out.data(), threads));
}

void pair_starts(Ids ids, OutVector<std::int64_t> starts, int threads, const std::string& isa) {
    check_threads(threads);
    check(size(starts, 0) == size(ids, 0) + 1, "pair_starts: starts must be (n + 1,)");
    const Partners pairs = partners_of(ids, size(ids, 0), "pair_starts: an id is not below n");
    LOWLAND_RUN(isa, pair_starts(pairs, starts.data(), threads));
}

PairList list_of(const Starts& starts, const Numbers& columns, std::int64_t n) {
    check(size(starts, 0) == n + 1 && starts(0) == 0 && starts(n) == size(columns, 0),
          "pairs: starts and columns do not fit together");
    bool fine = true;
    for (std::int64_t i = 0; i < n; ++i) fine &= starts(i) <= starts(i + 1) && starts(i + 1) % kPairLanes == 0;
    check(fine, "pairs: starts must not fall and must be multiples of PAIR_LANES");
    return {starts.data(), columns.data()};
}

void pair_lists(Ids ids, Starts starts, OutVector<std::int32_t> columns, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(ids, 0);
    check(size(starts, 0) == n + 1 && starts(0) == 0 && starts(n) == size(columns, 0),
          "pair_lists: starts and columns do not fit together");
    bool rising = true;
    for (std::int64_t i = 0; i < n; ++i) rising &= starts(i) <= starts(i + 1);
    check(rising, "pair_lists: starts must not fall");
    const Partners pairs = partners_of(ids, n, "pair_lists: an id is not below n");
    check(LOWLAND_RUN(isa, pair_lists(pairs, starts.data(), columns.data(), threads)),
          "pair_lists: the starts are not those of pair_starts");
}

PairWeights weights_of(const Vector<double>& weights) {
    check(size(weights, 0) == 4, "pairs: weights are those of near, mid-near and far pairs, and c");
    bool fine = true;
    for (int k = 0; k < 4; ++k) fine &= weights(k) >= 0;
    check(fine, "pairs: weights must be >= 0");
    return {weights(0), weights(1), weights(2), weights(3)};
}

// Columns are trusted: a look at all of them would take as long as half a step.
template <class T>
void pair_forces(Starts near_starts, Numbers near, Starts mid_starts, Numbers mid, Starts far_starts, Numbers far,
                 Vector<double> weights, Rows<T> y, Out<T> gradient, OutVector<double> losses, int threads,
                 const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const PairLists lists{list_of(near_starts, near, n), list_of(mid_starts, mid, n), list_of(far_starts, far, n), n};
    check(d >= 1 && size(gradient, 0) == n && size(gradient, 1) == d && size(losses, 0) == n,
          "pair_forces: gradient must be as y, and losses (n,)");
    if (!LOWLAND_RUN(isa, pair_forces(lists, weights_of(weights), d, y.data(), gradient.data(), losses.data(),
                                      threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void pair_step(Starts near_starts, Numbers near, Starts mid_starts, Numbers mid, Starts far_starts, Numbers far,
               Vector<double> weights, double rate, Rows<T> y, Out<T> stepped, Out<T> means, Out<T> squares, int threads,
               const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const PairLists lists{list_of(near_starts, near, n), list_of(mid_starts, mid, n), list_of(far_starts, far, n), n};
    const auto fits = [&](const auto& array) { return size(array, 0) == n && size(array, 1) == d; };
    check(d >= 1 && fits(stepped) && fits(means) && fits(squares), "pair_step: all arrays must have the shape of y");
    check(stepped.data() != y.data(), "pair_step: stepped must be another array than y");
    if (!LOWLAND_RUN(isa, pair_step(lists, weights_of(weights), rate, d, y.data(), stepped.data(), means.data(),
                                    squares.data(), threads))) {
        throw std::bad_alloc();
    }
}

using Field = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

void settle_pairs(Ids ids, Rows<double> y, double local, double far, double reach, Vector<double> low, double pitch,
                  std::optional<Field> field, std::int64_t steps, double close, Out<double> z, int threads,
                  const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    check(n >= 1 && d >= 1 && size(ids, 1) >= 1 && steps >= 0 && local >= 0 && far >= 0 && reach > 0,
          "settle_pairs: there must be points and neighbors, no negative weights, and a positive reach");
    check(size(z, 0) == size(ids, 0) && size(z, 1) == d, "settle_pairs: z must have a place for each row");
    Grid grid{{1, 1, 1}, {0, 0, 0}, pitch};
    if (field) {
        check(d <= 3 && static_cast<std::int64_t>(field->ndim()) == d && size(low, 0) == d && pitch > 0,
              "settle_pairs: the grid must have as many axes as the map has columns, 1, 2 or 3");
        for (std::int64_t k = 0; k < d; ++k) {
            grid.nodes[k] = size(*field, static_cast<int>(k));
            grid.low[k] = low(k);
            check(grid.nodes[k] >= 11, "settle_pairs: the grid needs at least 11 nodes along each axis");
        }
    }
    const Partners near = partners_of(ids, n, "settle_pairs: an id is not below n");
    const PairMap map{y.data(), n, d, local, far, reach, grid, field ? field->data() : nullptr};
    if (!LOWLAND_RUN(isa, settle_pairs(map, near, steps, close, z.data(), threads))) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("redraw_far", &redraw_far<T>, "near"_a.noconvert(), "y"_a.noconvert(), "reach"_a, "seed"_a,
          "far"_a.noconvert(), "within"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("listed_squares", &listed_squares<T>, "x"_a.noconvert(), "first"_a, "ids"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("pair_forces", &pair_forces<T>, "near_starts"_a.noconvert(), "near"_a.noconvert(),
          "mid_starts"_a.noconvert(), "mid"_a.noconvert(), "far_starts"_a.noconvert(), "far"_a.noconvert(),
          "weights"_a.noconvert(), "y"_a.noconvert(), "gradient"_a.noconvert(), "losses"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("pair_step", &pair_step<T>, "near_starts"_a.noconvert(), "near"_a.noconvert(), "mid_starts"_a.noconvert(),
          "mid"_a.noconvert(), "far_starts"_a.noconvert(), "far"_a.noconvert(), "weights"_a.noconvert(), "rate"_a,
          "y"_a.noconvert(), "stepped"_a.noconvert(), "means"_a.noconvert(), "squares"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace

void bind_pair_maps(nb::module_& m) {
    using namespace nb::literals;
    m.attr("PAIR_LANES") = static_cast<int>(kPairLanes);
    m.def("draw_groups", &draw_groups, "first"_a, "n"_a, "seed"_a, "groups"_a, "out"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("draw_far", &draw_far, "near"_a.noconvert(), "seed"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("pair_starts", &pair_starts, "ids"_a.noconvert(), "starts"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("pair_lists", &pair_lists, "ids"_a.noconvert(), "starts"_a.noconvert(), "columns"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("settle_pairs", &settle_pairs, "ids"_a.noconvert(), "y"_a.noconvert(), "local"_a, "far"_a,
          "reach"_a, "low"_a.noconvert(), "pitch"_a, "field"_a.noconvert().none(), "steps"_a, "close"_a, "z"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
