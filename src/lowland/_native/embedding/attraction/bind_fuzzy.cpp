// Python bindings of UMAP's kernels.
#include <nanobind/stl/optional.h>

#include <limits>
#include <new>
#include <optional>

#include "common/bindings.h"
#include "embedding/attraction/fuzzy.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;
using Numbers = Vector<std::int32_t>;

template <class T>
void fuzzy_weights(Rows<T> distances, double target, double connectivity, double mean_distance, Out<T> weights,
                   OutVector<double> nearest, OutVector<double> widths, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(distances, 0), k = size(distances, 1);
    check(size(weights, 0) == n && size(weights, 1) == k && size(nearest, 0) == n && size(widths, 0) == n,
          "fuzzy_weights: weights must be as distances, nearest and widths (n,)");
    check(target > 0 && connectivity >= 0 && mean_distance >= 0,
          "fuzzy_weights: target must be positive, connectivity and mean_distance not negative");
    if (!LOWLAND_RUN(isa, fuzzy_weights(distances.data(), n, k, target, connectivity, mean_distance, weights.data(),
                                        nearest.data(), widths.data(), threads))) {
        throw std::bad_alloc();
    }
}

FuzzyLaw law_of(double a, double b, double soft, const Vector<float>& heights, std::int64_t first,
                std::int64_t per_octave) {
    const auto fits = [](double x) { return x > 0 && x <= std::numeric_limits<float>::max(); };
    check(fits(a) && fits(b) && b <= 3 && fits(soft),
          "fuzzy repulsion: a, b and soft must be positive, b at most 3");
    check(size(heights, 0) >= 2 && per_octave >= 1, "fuzzy repulsion: at least two heights are needed");
    return {a, b, soft, heights.data(), size(heights, 0), first, per_octave};
}

template <class T>
void fuzzy_repel(Rows<T> from, Rows<T> y, bool same, double a, double b, double soft,
                 Vector<float> heights, std::int64_t first, std::int64_t per_octave,
                 std::optional<OutVector<double>> potential, Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t m = size(from, 0), n = size(y, 0), d = size(y, 1);
    check(d >= 1 && size(from, 1) == d && size(forces, 0) == m && size(forces, 1) == d,
          "fuzzy_repel: from, y and forces must have as many columns, and forces the rows of from");
    check(!same || m == n, "fuzzy_repel: the same points have one number of rows");
    check(!potential || size(*potential, 0) == m, "fuzzy_repel: potential must be (m,)");
    const FuzzyLaw law = law_of(a, b, soft, heights, first, per_octave);
    double* out = potential ? potential->data() : nullptr;
    if (!LOWLAND_RUN(isa, fuzzy_repel(from.data(), m, y.data(), n, d, law, same, out, forces.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void fuzzy_sample(Rows<T> y, std::uint64_t seed, std::int64_t draws, double a, double b, double soft,
                  Vector<float> heights, std::int64_t first, std::int64_t per_octave,
                  std::optional<OutVector<double>> potential, Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    check(n >= 2 && n <= std::numeric_limits<std::int32_t>::max() && d >= 1 && draws >= 1,
          "fuzzy_sample: at least two points, one column and one draw are needed");
    check(size(forces, 0) == n && size(forces, 1) == d && (!potential || size(*potential, 0) == n),
          "fuzzy_sample: forces must be as y, and potential (n,)");
    const FuzzyLaw law = law_of(a, b, soft, heights, first, per_octave);
    double* out = potential ? potential->data() : nullptr;
    LOWLAND_RUN(isa, fuzzy_sample(y.data(), n, d, law, Draws{seed, draws}, out, forces.data(), threads));
}

template <class T>
Edges<T> checked_edges(const Starts& starts, const Numbers& columns, const Vector<T>& weights, std::int64_t n) {
    const std::int64_t stored = size(columns, 0);
    check(size(starts, 0) == n + 1 && starts(0) == 0 && starts(n) == stored && size(weights, 0) == stored,
          "densities: starts, columns and weights do not fit together");
    bool fine = true;
    for (std::int64_t i = 0; i < n; ++i) fine &= starts(i) <= starts(i + 1);
    for (std::int64_t e = 0; e < stored; ++e) fine &= columns(e) >= 0 && columns(e) < n;
    check(fine, "densities: starts must not fall, and columns must be below n");
    return {starts.data(), columns.data(), weights.data(), n};
}

template <class T>
void map_radii(Starts starts, Numbers columns, Vector<T> weights, Rows<T> y, double a, double b, Out<double> sums,
               int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const Edges<T> edges = checked_edges<T>(starts, columns, weights, n);
    check(size(sums, 0) == n && size(sums, 1) == 2, "map_radii: sums must be (n, 2)");
    LOWLAND_RUN(isa, map_radii(edges, y.data(), d, a, b, sums.data(), threads));
}

template <class T>
void radius_forces(Starts starts, Numbers columns, Vector<T> weights, Rows<T> y, double a, double b,
                   Rows<double> sums, Vector<double> slopes, Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const Edges<T> edges = checked_edges<T>(starts, columns, weights, n);
    check(size(sums, 0) == n && size(sums, 1) == 2 && size(slopes, 0) == n && size(forces, 0) == n &&
              size(forces, 1) == d,
          "radius_forces: sums must be (n, 2), slopes (n,) and forces as y");
    LOWLAND_RUN(isa, radius_forces(edges, y.data(), d, a, b, sums.data(), slopes.data(), forces.data(), threads));
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("fuzzy_weights", &fuzzy_weights<T>, "distances"_a.noconvert(), "target"_a, "connectivity"_a,
          "mean_distance"_a, "weights"_a.noconvert(), "nearest"_a.noconvert(), "widths"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
    m.def("fuzzy_repel", &fuzzy_repel<T>, "points"_a.noconvert(), "y"_a.noconvert(), "same"_a, "a"_a, "b"_a, "soft"_a,
          "heights"_a.noconvert(), "first"_a, "per_octave"_a, "potential"_a.noconvert().none(),
          "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("fuzzy_sample", &fuzzy_sample<T>, "y"_a.noconvert(), "seed"_a, "draws"_a, "a"_a, "b"_a, "soft"_a,
          "heights"_a.noconvert(), "first"_a, "per_octave"_a, "potential"_a.noconvert().none(),
          "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("map_radii", &map_radii<T>, "starts"_a.noconvert(), "columns"_a.noconvert(), "weights"_a.noconvert(),
          "y"_a.noconvert(), "a"_a, "b"_a, "sums"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("radius_forces", &radius_forces<T>, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "weights"_a.noconvert(), "y"_a.noconvert(), "a"_a, "b"_a, "sums"_a.noconvert(), "slopes"_a.noconvert(),
          "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_fuzzy(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
