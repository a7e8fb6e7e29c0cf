// Python's door to the stress kernels; lists of pairs that could lead them astray are refused here.
#include <new>

#include "common/bindings.h"
#include "stress/stress.h"

namespace lowland {
namespace {

using Numbers = Vector<std::int32_t>;

void check_below(const Numbers& numbers, std::int64_t n, const char* message) {
    const std::int32_t* at = numbers.data();
    std::uint32_t largest = 0;  // of a negative number: too large, too
    for (std::int64_t i = 0; i < size(numbers, 0); ++i) {
        const auto number = static_cast<std::uint32_t>(at[i]);
        largest = number > largest ? number : largest;
    }
    check(size(numbers, 0) == 0 || largest < static_cast<std::uint64_t>(n), message);
}

void check_out(std::int64_t m, std::int64_t d, const OutVector<double>& stress,
               const Out<double>& forces) {
    check(d >= 1, "stress: a map must have a column");
    check(size(stress, 0) == m, "stress: stress must have one number per point");
    check(size(forces, 0) == m && size(forces, 1) == d, "stress: forces must have the map's shape");
}

template <class T>
void stress_rows(Rows<T> z, Rows<T> y, Rows<T> delta, Rows<T> weights, int power,
                 OutVector<double> stress, Out<double> forces, int threads, const std::string& isa) {
    const std::int64_t m = size(z, 0), n = size(y, 0), d = size(y, 1);
    check_threads(threads);
    check(size(z, 1) == d, "stress_rows: z and y must have as many columns");
    check(size(delta, 0) == m && size(delta, 1) == n, "stress_rows: delta must be (m, n)");
    const bool given = size(weights, 0) != 0;
    check(!given || (size(weights, 0) == m && size(weights, 1) == n),
          "stress_rows: weights must be (m, n) or empty");
    check(power >= 0 && power <= 2, "stress_rows: power must be 0, 1 or 2");
    check_out(m, d, stress, forces);
    const TwoMaps<T> maps{z.data(), m, y.data(), n, d};
    const Targets<T> targets{delta.data(), given ? weights.data() : nullptr, power};
    const StressOut out{stress.data(), forces.data()};
    if (!LOWLAND_RUN(isa, stress_rows(maps, targets, out, threads))) throw std::bad_alloc();
}

template <class T>
PairList<T> pairs_of(std::int64_t n, const Numbers& first, const Numbers& second, const T* delta,
                     const T* weights) {
    check(size(first, 0) == size(second, 0), "pairs: first and second must be as long");
    check_below(first, n, "pairs: a point is not below n");
    check_below(second, n, "pairs: a point is not below n");
    return {first.data(), second.data(), delta, weights, size(first, 0)};
}

template <class T>
void stress_pairs(Rows<T> y, Numbers first, Numbers second, Vector<T> delta, Vector<T> weights,
                  OutVector<double> stress, Out<double> forces, int threads, const std::string& isa) {
    const std::int64_t n = size(y, 0), d = size(y, 1), n_pairs = size(first, 0);
    check_threads(threads);
    check(size(delta, 0) == n_pairs, "stress_pairs: delta must have one number per pair");
    check(size(weights, 0) == 0 || size(weights, 0) == n_pairs,
          "stress_pairs: weights must be as many as delta, or none");
    check_out(n, d, stress, forces);
    const TwoMaps<T> maps{y.data(), n, y.data(), n, d};
    const T* given = size(weights, 0) ? weights.data() : nullptr;
    const PairList<T> pairs = pairs_of<T>(n, first, second, delta.data(), given);
    const StressOut out{stress.data(), forces.data()};
    if (!LOWLAND_RUN(isa, stress_pairs(maps, pairs, out, threads))) throw std::bad_alloc();
}

template <class T>
void pair_distances(Rows<T> y, Numbers first, Numbers second, OutVector<T> out, int threads,
                    const std::string& isa) {
    const std::int64_t n = size(y, 0);
    check_threads(threads);
    check(size(out, 0) == size(first, 0), "pair_distances: out must have one number per pair");
    const TwoMaps<T> maps{y.data(), n, y.data(), n, size(y, 1)};
    const PairList<T> pairs = pairs_of<T>(n, first, second, nullptr, nullptr);
    if (!LOWLAND_RUN(isa, pair_distances(maps, pairs, out.data(), threads))) throw std::bad_alloc();
}

void pool_adjacent(Vector<double> d, Vector<double> weights, Numbers groups, OutVector<double> fit,
                   int threads, const std::string& isa) {
    const std::int64_t n = size(d, 0), n_bounds = size(groups, 0);
    check_threads(threads);
    check(n < (std::int64_t{1} << 31), "pool_adjacent: too many numbers");
    check(size(weights, 0) == 0 || size(weights, 0) == n, "pool_adjacent: weights must be (n,) or empty");
    check(size(fit, 0) == n, "pool_adjacent: fit must be (n,)");
    bool rising = n_bounds == 0 || (groups(0) >= 0 && groups(n_bounds - 1) <= n);
    for (std::int64_t g = 1; g < n_bounds; ++g) rising &= groups(g) >= groups(g - 1);
    check(rising, "pool_adjacent: groups must rise and end within d");
    const double* given = size(weights, 0) ? weights.data() : nullptr;
    const std::int64_t n_groups = n_bounds ? n_bounds - 1 : 0;
    const auto done = LOWLAND_RUN(
        isa, pool_adjacent(d.data(), given, n, groups.data(), n_groups, fit.data(), threads));
    if (!done) throw std::bad_alloc();
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("stress_rows", &stress_rows<T>, "z"_a.noconvert(), "y"_a.noconvert(),
          "delta"_a.noconvert(), "weights"_a.noconvert(), "power"_a, "stress"_a.noconvert(),
          "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("stress_pairs", &stress_pairs<T>, "y"_a.noconvert(), "first"_a.noconvert(),
          "second"_a.noconvert(), "delta"_a.noconvert(), "weights"_a.noconvert(),
          "stress"_a.noconvert(), "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("pair_distances", &pair_distances<T>, "y"_a.noconvert(), "first"_a.noconvert(),
          "second"_a.noconvert(), "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_stress(nb::module_& m) {
    using namespace nb::literals;
    bind<float>(m);
    bind<double>(m);
    m.def("pool_adjacent", &pool_adjacent, "d"_a.noconvert(), "weights"_a.noconvert(),
          "groups"_a.noconvert(), "fit"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
