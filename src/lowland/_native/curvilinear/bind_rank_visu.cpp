// Python's door to the rank kernels; lists and maps that could lead them astray are refused here.
#include <cmath>
#include <new>

#include "common/bindings.h"
#include "curvilinear/rank_stress.h"

namespace lowland {
namespace {

PlacedPoints map_of(const Rows<double>& y) {
    const std::int64_t n = size(y, 0), d = size(y, 1);
    check(n >= 1 && d >= 1, "ranks: a map must have a point and a column");
    check(n < (std::int64_t{1} << 31) / d, "ranks: the map is too large");
    bool finite = true;
    for (std::int64_t e = 0; e < n * d; ++e) finite &= std::fabs(y.data()[e]) < 1e150;
    check(finite, "ranks: the places must be finite, and small enough to be squared");
    return {y.data(), n, d};
}

RankLists lists_of(const Rows<std::int32_t>& points, const Rows<std::uint8_t>& ties, std::int64_t k,
                   std::int64_t n, std::int64_t most) {
    const std::int64_t m = size(points, 0), length = size(points, 1);
    check(length >= 1 && length <= most, "ranks: a list is empty, or longer than there are points");
    check(k >= 1 && k <= length, "ranks: k must be from 1 to the length of the lists");
    check(size(ties, 0) == m && size(ties, 1) == length, "ranks: ties must have the shape of the lists");
    std::uint32_t largest = 0;  // of a negative number: too large, too
    for (std::int64_t e = 0; e < m * length; ++e) {
        const auto number = static_cast<std::uint32_t>(points.data()[e]);
        largest = number > largest ? number : largest;
    }
    check(m == 0 || largest < static_cast<std::uint64_t>(n), "ranks: a point is not below n");
    return {points.data(), ties.data(), m, length, k};
}

void rank_forces(Rows<double> y, Rows<std::int32_t> points, Rows<std::uint8_t> ties, std::int64_t k,
                 double push, double even, double spacing, OutVector<double> reach, OutVector<double> stress, Out<double> forces,
                 OutVector<double> weights, int threads, const std::string& isa) {
    check_threads(threads);
    const PlacedPoints map = map_of(y);
    const RankLists lists = lists_of(points, ties, k, map.n, map.n - 1);
    check(lists.m == map.n, "rank_forces: there must be one list per point");
    check(size(reach, 0) == map.n && size(stress, 0) == map.n && size(weights, 0) == map.n,
          "rank_forces: reach, stress and weights must have one number per point");
    check(size(forces, 0) == map.n && size(forces, 1) == map.d,
          "rank_forces: forces must have the map's shape");
    const RankForces out{reach.data(), stress.data(), forces.data(), weights.data()};
    if (!LOWLAND_RUN(isa, rank_forces(map, lists, {push, even, spacing}, out, threads))) throw std::bad_alloc();
}

void rank_heights(Rows<double> y, Rows<std::int32_t> points, Rows<std::uint8_t> ties, std::int64_t k,
                  Rows<double> z, OutVector<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    const PlacedPoints map = map_of(y);
    const RankLists lists = lists_of(points, ties, k, map.n, map.n);
    check(size(z, 0) == lists.m && size(z, 1) == map.d, "rank_heights: z must be (m, d)");
    check(size(out, 0) == lists.m, "rank_heights: out must be (m,)");
    if (lists.m > 0) map_of(z);
    if (!LOWLAND_RUN(isa, rank_heights(map, lists, z.data(), out.data(), threads))) {
        throw std::bad_alloc();
    }
}

void rank_places(Rows<double> y, Rows<std::int32_t> points, Rows<std::uint8_t> ties, std::int64_t k,
                 Vector<std::int32_t> equal, Out<double> z, int threads, const std::string& isa) {
    check_threads(threads);
    const PlacedPoints map = map_of(y);
    const RankLists lists = lists_of(points, ties, k, map.n, map.n);
    check(size(z, 0) == lists.m && size(z, 1) == map.d, "rank_places: z must be (m, d)");
    check(size(equal, 0) == lists.m, "rank_places: equal must be (m,)");
    bool within = true;
    for (std::int64_t i = 0; i < lists.m; ++i) within &= equal(i) >= 0 && equal(i) <= lists.length;
    check(within, "rank_places: equal must be from 0 to the length of the lists");
    const auto done =
        LOWLAND_RUN(isa, rank_places(map, lists, equal.data(), z.data(), threads));
    if (!done) throw std::bad_alloc();
}

}  // namespace

void bind_rank_visu(nb::module_& m) {
    using namespace nb::literals;
    m.def("rank_forces", &rank_forces, "y"_a.noconvert(), "points"_a.noconvert(),
          "ties"_a.noconvert(), "k"_a, "push"_a, "even"_a, "spacing"_a, "reach"_a.noconvert(), "stress"_a.noconvert(),
          "forces"_a.noconvert(), "weights"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("rank_heights", &rank_heights, "y"_a.noconvert(), "points"_a.noconvert(),
          "ties"_a.noconvert(), "k"_a, "z"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("rank_places", &rank_places, "y"_a.noconvert(), "points"_a.noconvert(),
          "ties"_a.noconvert(), "k"_a, "equal"_a.noconvert(), "z"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace lowland
