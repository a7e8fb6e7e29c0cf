// Activations of whole vectors, and their slopes from the value alone.
#pragma once
#include "common/elementary.h"
#include "network/network.h"

namespace lowland {
namespace LOWLAND_ISA {

// tanh|x| = -u / (2 + u) with u = exp(-2|x|) - 1, which is precise near 0, too.
template <class T>
static inline typename Lanes<T>::vector tanh_of(typename Lanes<T>::vector x) {
    typedef typename Lanes<T>::vector Vector;
    const auto negative = x < T(0);
    const Vector u = expm1_of_negative<T>(T(2) * (negative ? x : -x));
    const Vector size = -u / (T(2) + u);
    return negative ? -size : size;
}

template <class T>
static inline typename Lanes<T>::vector activated(typename Lanes<T>::vector x, Activation s) {
    typedef typename Lanes<T>::vector Vector;
    const Vector zero = fill<T>(0);
    switch (s) {
        case Activation::tanh: return tanh_of<T>(x);
        case Activation::relu: return x > zero ? x : zero;
        case Activation::elu: return x > zero ? x : expm1_of_negative<T>(x > zero ? zero : x);
        case Activation::sigmoid: return T(0.5) + T(0.5) * tanh_of<T>(T(0.5) * x);
        default: return x;
    }
}

// s'(x) as a function of h = s(x).
template <class T>
static inline typename Lanes<T>::vector slope_at(typename Lanes<T>::vector h, Activation s) {
    typedef typename Lanes<T>::vector Vector;
    const Vector zero = fill<T>(0), one = fill<T>(1);
    switch (s) {
        case Activation::tanh: return one - h * h;
        case Activation::relu: return h > zero ? one : zero;
        case Activation::elu: return h > zero ? one : h + one;
        case Activation::sigmoid: return h * (one - h);
        default: return one;
    }
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
