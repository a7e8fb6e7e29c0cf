// Python bindings of the neighbor-embedding kernels.
#include <nanobind/stl/optional.h>

#include <limits>
#include <new>
#include <optional>

#include "common/bindings.h"
#include "embedding/embedding.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;

constexpr double kSteepest = 3;  // b of UMAP; see FuzzyPull
using Numbers = Vector<std::int32_t>;

void check_numbers(const Numbers& numbers, std::int64_t n, const char* message) {
    const std::int32_t* at = numbers.data();
    bool fine = true;
    for (std::int64_t e = 0; e < size(numbers, 0); ++e) fine &= at[e] >= 0 && at[e] < n;
    check(fine, message);
}

// Columns are looked at only where it costs nothing beside the work: see `attract`.
template <class T>
Edges<T> edges_of(const Starts& starts, const Numbers& columns, const Vector<T>& weights) {
    const std::int64_t n = size(starts, 0) - 1, stored = size(columns, 0);
    check(n >= 0 && starts(0) == 0 && starts(n) == stored && size(weights, 0) == stored,
          "edges: starts, columns and weights do not fit together");
    bool rising = true;
    for (std::int64_t i = 0; i < n; ++i) rising &= starts(i) <= starts(i + 1);
    check(rising, "edges: starts must not fall");
    return {starts.data(), columns.data(), weights.data(), n};
}

// (a, b) are UMAP's, or both 0.
Pull pull_of(double inverse_dof, double a, double b) {
    const auto fits = [](double x) { return x >= 0 && x <= std::numeric_limits<float>::max(); };
    check(fits(inverse_dof), "the pull: inverse_dof must be >= 0");
    check(fits(a) && fits(b) && (a > 0) == (b > 0) && b <= kSteepest,
          "the pull: a and b must be positive, b at most 3, or both 0");
    return {inverse_dof, a, b};
}

template <class T>
void attract(Starts starts, Numbers columns, Vector<T> weights, Rows<T> z, Rows<T> y, double inverse_dof,
             Out<T> forces, std::optional<Out<double>> sums, int threads, double a, double b,
             const std::string& isa) {
    check_threads(threads);
    const Edges<T> edges = edges_of<T>(starts, columns, weights);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    check(d >= 1 && size(z, 0) == edges.n && size(z, 1) == d, "attract: z must have a row for every list of edges");
    check(size(forces, 0) == edges.n && size(forces, 1) == d, "attract: forces must be as z");
    check(!sums || (size(*sums, 0) == edges.n && size(*sums, 1) == 2), "attract: sums must be (n, 2)");
    const Pull pull = pull_of(inverse_dof, a, b);
    double* out = sums ? sums->data() : nullptr;
    if (!LOWLAND_RUN(isa, attract(edges, z.data(), y.data(), n, d, pull, forces.data(), out, threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void permute_edges(Starts starts, Numbers columns, Vector<T> weights, Numbers order, Numbers place,
                   Starts new_starts, OutVector<std::int32_t> new_columns, OutVector<T> new_weights,
                   int threads, const std::string& isa) {
    check_threads(threads);
    const Edges<T> edges = edges_of<T>(starts, columns, weights);
    const Edges<T> target = edges_of<T>(new_starts, columns, weights);
    check(target.n == edges.n && size(order, 0) == edges.n && size(place, 0) == edges.n &&
              size(new_columns, 0) == size(columns, 0) && size(new_weights, 0) == size(columns, 0),
          "permute_edges: the arrays do not fit together");
    check_numbers(order, edges.n, "permute_edges: order is not below n");
    check_numbers(columns, edges.n, "permute_edges: a column is not below n");
    for (std::int64_t i = 0; i < edges.n; ++i) {
        check(new_starts(i + 1) - new_starts(i) == starts(order(i) + 1) - starts(order(i)),
              "permute_edges: new_starts do not follow the order");
    }
    LOWLAND_RUN(isa, permute_edges(edges, order.data(), place.data(), const_cast<std::int64_t*>(new_starts.data()),
                                   new_columns.data(), new_weights.data(), threads));
}

using Field = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using OutField = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

template <class Array>
Grid grid_of(const Array& nodes, const Vector<double>& low, double pitch, std::int64_t d) {
    check(d >= 1 && d <= 3 && static_cast<std::int64_t>(nodes.ndim()) == d && size(low, 0) == d,
          "mesh: the grid must have as many axes as the map has columns, 1, 2 or 3");
    check(pitch > 0, "mesh: pitch must be positive");
    Grid grid{{1, 1, 1}, {0, 0, 0}, pitch};
    for (std::int64_t k = 0; k < d; ++k) {
        grid.nodes[k] = size(nodes, static_cast<int>(k));
        grid.low[k] = low(k);
        check(grid.nodes[k] >= 9, "mesh: the grid needs at least 9 nodes along each axis");
    }
    return grid;
}

template <class T>
void spread(Rows<T> y, Vector<double> low, double pitch, OutField charges, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    check(n < std::numeric_limits<std::int32_t>::max(), "mesh: too many points");
    const Grid grid = grid_of(charges, low, pitch, d);
    if (!LOWLAND_RUN(isa, spread(y.data(), n, d, grid, charges.data(), threads))) throw std::bad_alloc();
}

template <class T>
void gather(Rows<T> y, Vector<double> low, double pitch, double own_mean, double own_wave, Field field,
            OutVector<double> potential, Out<T> forces, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const Grid grid = grid_of(field, low, pitch, d);
    check(size(potential, 0) == n && size(forces, 0) == n && size(forces, 1) == d,
          "mesh: potential must be (n,) and forces (n, d)");
    const Own own{own_mean, own_wave};
    LOWLAND_RUN(isa, gather(y.data(), n, d, grid, own, field.data(), potential.data(), forces.data(), threads));
}

void fourier_order(OutVector<std::int32_t> order, const std::string& isa) {
    check(size(order, 0) < std::numeric_limits<std::int32_t>::max() / 2 &&
              LOWLAND_RUN(isa, fourier_order(size(order, 0), order.data())),
          "fourier_order: the length must be a product of 2, 3 and 5");
}

void convolve(Rows<float> charges, Field spectrum, std::int64_t wide, Out<float> field, int threads,
              const std::string& isa) {
    check_threads(threads);
    check(spectrum.ndim() == 4 && size(spectrum, 1) == 2 && size(spectrum, 3) == 8,
          "convolve: the spectrum must be (blocks, 2, m, 8)");
    const std::int64_t rows = size(charges, 0), columns = size(charges, 1), high = size(spectrum, 2);
    const std::int64_t blocks = size(spectrum, 0);
    check(size(field, 0) == rows && size(field, 1) == columns, "convolve: field must be as charges");
    check(rows >= 1 && rows <= high && columns >= 1 && columns <= wide && blocks == wide / 8 + 1,
          "convolve: the spectrum is not of a plane twice as large as the charges");
    const auto smooth = [](std::int64_t n) {
        for (std::int64_t f : {2, 3, 5}) {
            while (n % f == 0) n /= f;
        }
        return n == 1;
    };
    check(wide < (1 << 30) && smooth(wide) && smooth(high), "convolve: lengths must be products of 2, 3 and 5");
    const Plane plane{rows, columns, high, wide, blocks, charges.data(), spectrum.data(), field.data()};
    if (!LOWLAND_RUN(isa, convolve(plane, threads))) throw std::bad_alloc();
}

// New rows settle in float32 whatever the type of their weights.
template <class T>
void settle_rows(Rows<std::int32_t> ids, Rows<T> weights, Rows<float> y, double inverse_dof, double mean_potential,
                 Vector<double> low, double pitch, Field field, std::int64_t steps, double close, Out<float> z,
                 int threads, double a, double b, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1), m = size(ids, 0), k = size(ids, 1);
    const Grid grid = grid_of(field, low, pitch, d);
    check(size(weights, 0) == m && size(weights, 1) == k && size(z, 0) == m && size(z, 1) == d,
          "settle_rows: weights must be as ids, and z must have a place for each row");
    check(n >= 1 && k >= 1 && steps >= 0, "settle_rows: there must be points and neighbors");
    check(mean_potential >= 0, "settle_rows: mean_potential must be >= 0");
    bool fine = true;
    for (std::int64_t e = 0; e < m * k; ++e) fine &= ids.data()[e] < n;
    check(fine, "settle_rows: an id is not below n");
    const Frozen map{y.data(), n, pull_of(inverse_dof, a, b), mean_potential, grid, field.data()};
    const NearRows<T> near{ids.data(), weights.data(), m, k};
    if (!LOWLAND_RUN(isa, settle_rows(map, near, d, steps, close, z.data(), threads))) throw std::bad_alloc();
}

template <class T>
void descend(Rows<T> attraction, Rows<T> repulsion, double exaggeration, double total, double learning_rate,
             double momentum, double longest, Out<T> y, Out<T> velocity, Out<T> gains, int threads,
             const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), d = size(y, 1);
    const auto fits = [&](const auto& array) { return size(array, 0) == n && size(array, 1) == d; };
    check(fits(attraction) && fits(repulsion) && fits(velocity) && fits(gains),
          "descend: all arrays must have the shape of y");
    check(total > 0, "descend: total must be positive");
    const Step step{exaggeration, 1 / total, learning_rate, momentum, longest};
    LOWLAND_RUN(isa, descend(step, n, d, attraction.data(), repulsion.data(), y.data(), velocity.data(),
                             gains.data(), threads));
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("attract", &attract<T>, "starts"_a.noconvert(), "columns"_a.noconvert(), "weights"_a.noconvert(),
          "z"_a.noconvert(), "y"_a.noconvert(), "inverse_dof"_a, "forces"_a.noconvert(),
          "sums"_a.noconvert().none(), "threads"_a, "a"_a = 0.0, "b"_a = 0.0, "isa"_a = "auto");
    m.def("permute_edges", &permute_edges<T>, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "weights"_a.noconvert(), "order"_a.noconvert(), "place"_a.noconvert(), "new_starts"_a.noconvert(),
          "new_columns"_a.noconvert(), "new_weights"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("spread", &spread<T>, "y"_a.noconvert(), "low"_a.noconvert(), "pitch"_a, "charges"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("gather", &gather<T>, "y"_a.noconvert(), "low"_a.noconvert(), "pitch"_a, "own_mean"_a,
          "own_wave"_a, "field"_a.noconvert(),
          "potential"_a.noconvert(), "forces"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("settle_rows", &settle_rows<T>, "ids"_a.noconvert(), "weights"_a.noconvert(), "y"_a.noconvert(),
          "inverse_dof"_a, "mean_potential"_a, "low"_a.noconvert(), "pitch"_a, "field"_a.noconvert(), "steps"_a,
          "close"_a, "z"_a.noconvert(), "threads"_a, "a"_a = 0.0, "b"_a = 0.0, "isa"_a = "auto");
    m.def("descend", &descend<T>, "attraction"_a.noconvert(), "repulsion"_a.noconvert(), "exaggeration"_a,
          "total"_a, "learning_rate"_a, "momentum"_a, "longest"_a, "y"_a.noconvert(),
          "velocity"_a.noconvert(), "gains"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_embedding(nb::module_& m) {
    using namespace nb::literals;
    m.def("fourier_order", &fourier_order, "order"_a.noconvert(), "isa"_a = "auto");
    m.def("convolve", &convolve, "charges"_a.noconvert(), "spectrum"_a.noconvert(), "wide"_a,
          "field"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
