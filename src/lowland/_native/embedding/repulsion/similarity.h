// Similarities in a map, K as a function of the squared distance, and the G of their gradient:
//
//     Student, v degrees of freedom   K = (1 + r2/v)^-v     G = (1 + r2/v)^-(v+1)
//     Gaussian                        K = exp(-r2)          G = K
//
// so that for both   dK/dy_i = -2 G (y_i - y_j).  The q of Student is 1 / (1 + r2/v).
#pragma once
#include "common/elementary.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
struct Similarity {
    typename Lanes<T>::vector K, G, q;
};

// Student with v = 1: one division and no power.
template <class T>
struct Cauchy {
    static constexpr T dof = 1;

    Similarity<T> operator()(typename Lanes<T>::vector r2) const {
        const auto K = T(1) / (T(1) + r2);
        return {K, K * K, K};
    }
};

template <class T>
struct Student {
    T dof, inverse_dof;

    explicit Student(double dof) : dof(static_cast<T>(dof)), inverse_dof(static_cast<T>(1 / dof)) {}

    Similarity<T> operator()(typename Lanes<T>::vector r2) const {
        auto x = r2 * inverse_dof;
        x = x < Format<T>::huge ? x : fill<T>(Format<T>::huge);  // r2 may have overflowed
        const auto K = exp_of_negative<T>(-dof * log1p_of_positive<T>(x));
        const auto q = T(1) / (T(1) + x);
        return {K, K * q, q};
    }
};

template <class T>
struct Gaussian {
    Similarity<T> operator()(typename Lanes<T>::vector r2) const {
        const auto K = exp_of_negative<T>(-r2);
        return {K, K, fill<T>(1)};
    }
};

// The sum of the lanes, in double and in one order.
template <class T>
static inline double total(const typename Lanes<T>::vector& lanes) {
    double sum = 0;
    for (int lane = 0; lane < Lanes<T>::width; ++lane) sum += lanes[lane];
    return sum;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
