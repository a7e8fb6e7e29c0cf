// Python's door to networks; sizes and numbers of rows that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "network/network.h"

namespace lowland {
namespace {

using Ints = Vector<std::int64_t>;

constexpr std::int64_t kMostUnits = 1 << 30;

struct Checked {
    NetworkShape shape;
    std::int64_t n_weights, n_values;  // n_values: of one row, in all layers from first_kept on
};

Checked checked(const Ints& sizes, const Ints& activations, bool tied, int first_kept = 1) {
    const std::int64_t L = size(activations, 0);
    check(L >= 1 && L <= kMostLayers, "a network has 1 to 64 layers");
    check(size(sizes, 0) == L + 1, "sizes must be one more than activations");
    check(first_kept >= 1 && first_kept <= L, "first_kept must be a layer");
    Checked found{{sizes.data(), activations.data(), static_cast<int>(L), tied}, 0, 0};
    for (std::int64_t l = 0; l <= L; ++l) {
        check(sizes.data()[l] >= 1 && sizes.data()[l] <= kMostUnits, "a layer needs 1 to 2^30 units");
        if (tied) check(sizes.data()[l] == sizes.data()[L - l], "sizes of a tied network must mirror");
    }
    if (tied) check(L % 2 == 0, "a tied network needs an even number of layers");
    for (std::int64_t l = 1; l <= L; ++l) {
        const std::int64_t s = activations.data()[l - 1], width = sizes.data()[l];
        check(s >= 0 && s <= static_cast<int>(Activation::sigmoid), "unknown activation");
        if (!tied || 2 * (l - 1) < L) found.n_weights += sizes.data()[l - 1] * width;
        check(found.n_weights < (std::int64_t(1) << 50), "a network of too many weights");
        found.n_weights += width;
        if (l >= first_kept) found.n_values += width;
    }
    return found;
}

template <class T>
void network_forward(Ints sizes, Ints activations, bool tied, Vector<T> weights, Rows<T> x,
                     int first_kept, OutVector<T> values, int threads, const std::string& isa) {
    const Checked net = checked(sizes, activations, tied, first_kept);
    check_threads(threads);
    check(size(weights, 0) == net.n_weights, "network_forward: weights do not fit the sizes");
    check(size(x, 1) == sizes.data()[0], "network_forward: x must have a column for each input");
    check(size(values, 0) == size(x, 0) * net.n_values, "network_forward: values has another size");
    if (!LOWLAND_RUN(isa, network_forward<T>(net.shape, weights.data(), x.data(), size(x, 0),
                                             first_kept, values.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void network_backward(Ints sizes, Ints activations, bool tied, Vector<T> weights, Rows<T> x,
                      Vector<T> values, Rows<T> slope, OutVector<T> gradient, Out<T> slope_x,
                      int threads, const std::string& isa) {
    const Checked net = checked(sizes, activations, tied);
    const std::int64_t n = size(x, 0), L = net.shape.n_layers;
    check_threads(threads);
    check(size(weights, 0) == net.n_weights, "network_backward: weights do not fit the sizes");
    check(size(x, 1) == sizes.data()[0], "network_backward: x must have a column for each input");
    check(size(values, 0) == n * net.n_values, "network_backward: values has another size");
    check(size(slope, 0) == n && size(slope, 1) == sizes.data()[L],
          "network_backward: slope must have a row for each of x and a column for each output");
    check(size(gradient, 0) == net.n_weights, "network_backward: gradient must be like weights");
    const bool wants_x = size(slope_x, 0) > 0;
    if (wants_x) {
        check(size(slope_x, 0) == n && size(slope_x, 1) == size(x, 1),
              "network_backward: slope_x must be empty or like x");
    }
    if (!LOWLAND_RUN(isa, network_backward<T>(net.shape, weights.data(), x.data(), n, values.data(),
                                              slope.data(), gradient.data(),
                                              wants_x ? slope_x.data() : nullptr, threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void network_train(Ints sizes, Ints activations, bool tied, OutVector<T> weights, OutVector<T> means,
                   OutVector<T> squares, Rows<T> inputs, Rows<T> targets, Ints order,
                   std::int64_t batch, Vector<double> rates, std::int64_t steps_before, double decay,
                   double sparsity, int code, OutVector<double> errors, int threads,
                   const std::string& isa) {
    const Checked net = checked(sizes, activations, tied);
    const std::int64_t n = size(inputs, 0), L = net.shape.n_layers, m = size(order, 0);
    check_threads(threads);
    check(size(weights, 0) == net.n_weights && size(means, 0) == net.n_weights &&
              size(squares, 0) == net.n_weights,
          "network_train: weights, means and squares must fit the sizes");
    check(size(inputs, 1) == sizes.data()[0], "network_train: inputs have another number of columns");
    check(size(targets, 0) == n && size(targets, 1) == sizes.data()[L],
          "network_train: targets must have a row for each of inputs and a column for each output");
    check(m >= 1 && batch >= 1 && batch <= m, "network_train: batch must be 1 ... rows in order");
    for (std::int64_t k = 0; k < m; ++k) {
        check(order.data()[k] >= 0 && order.data()[k] < n, "network_train: order must hold row numbers");
    }
    const std::int64_t n_steps = (m + batch - 1) / batch;
    check(size(rates, 0) == n_steps && size(errors, 0) == n_steps,
          "network_train: rates and errors must have an entry for each batch");
    check(steps_before >= 0, "network_train: steps_before must not be negative");
    check(code >= 0 && code <= L, "network_train: code must be a layer, or 0");
    const Training<T> training{weights.data(), means.data(), squares.data(), inputs.data(),
                               targets.data(), order.data(),  m,              batch,
                               rates.data(),   steps_before,  decay,          sparsity,
                               code};
    if (!LOWLAND_RUN(isa, network_train<T>(net.shape, training, errors.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("network_forward", &network_forward<T>, "sizes"_a.noconvert(), "activations"_a.noconvert(),
          "tied"_a, "weights"_a.noconvert(), "x"_a.noconvert(), "first_kept"_a,
          "values"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("network_backward", &network_backward<T>, "sizes"_a.noconvert(),
          "activations"_a.noconvert(), "tied"_a, "weights"_a.noconvert(), "x"_a.noconvert(),
          "values"_a.noconvert(), "slope"_a.noconvert(), "gradient"_a.noconvert(),
          "slope_x"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("network_train", &network_train<T>, "sizes"_a.noconvert(), "activations"_a.noconvert(),
          "tied"_a, "weights"_a.noconvert(), "means"_a.noconvert(), "squares"_a.noconvert(),
          "inputs"_a.noconvert(), "targets"_a.noconvert(), "order"_a.noconvert(), "batch"_a,
          "rates"_a.noconvert(), "steps_before"_a, "decay"_a, "sparsity"_a, "code"_a,
          "errors"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_network(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
