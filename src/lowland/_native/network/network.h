// Entry points of networks of dense layers:  h_0 = x,  h_l = s_l(h_{l-1} W_l + b_l),  l = 1 ... L.
//
// All weights are one vector: for each layer W_l (n_in x n_out, by rows), then b_l. If the network is
// tied, the second half of its layers has W_l = W_{L+1-l}^T and stores b_l only.
#pragma once
#include <cstdint>

namespace lowland {

constexpr int kMostLayers = 64;

enum class Activation : int { linear, tanh, relu, elu, sigmoid };

// sizes[0 ... n_layers], activations[0 ... n_layers - 1].
struct NetworkShape {
    const std::int64_t* sizes;
    const std::int64_t* activations;
    int n_layers;
    bool tied;
};

// Steps of Adam on batches of rows. The loss of a batch of m rows is
//     sum (h_L - target)^2 / (m n_out) + decay * sum W^2 + sparsity * sum |h_code| / (m n_code).
// order holds the rows of all batches, one after the other; rates one learning rate for each batch.
template <class T>
struct Training {
    T* weights;
    T* means;    // of slopes
    T* squares;  // of slopes
    const T* inputs;
    const T* targets;
    const std::int64_t* order;
    std::int64_t n_ordered, batch;
    const double* rates;
    std::int64_t steps_before;
    double decay, sparsity;
    int code;  // the layer 1 ... L whose values the penalty makes small
};

#define LOWLAND_DECLARE_NETWORK(isa)                                                              \
    namespace isa {                                                                               \
    /* values: h_l of all rows for l >= first_kept, one layer after the other. */                 \
    template <class T>                                                                            \
    bool network_forward(const NetworkShape& shape, const T* weights, const T* x, std::int64_t n, \
                         int first_kept, T* values, int n_threads);                               \
    /* From slope = dE/dh_L: dE/dweights, and dE/dx unless slope_x is null. */                    \
    template <class T>                                                                            \
    bool network_backward(const NetworkShape& shape, const T* weights, const T* x,                \
                          std::int64_t n, const T* values, const T* slope, T* gradient,           \
                          T* slope_x, int n_threads);                                             \
    /* errors: sum of (h_L - target)^2 of each batch, before its step. */                         \
    template <class T>                                                                            \
    bool network_train(const NetworkShape& shape, const Training<T>& training, double* errors,    \
                       int n_threads);                                                            \
    }

LOWLAND_DECLARE_NETWORK(baseline)
LOWLAND_DECLARE_NETWORK(avx2)

}  // namespace lowland
