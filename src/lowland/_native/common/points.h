// What kernels over pairs of points of a map share: roots of whole vectors, and points coordinate by
// coordinate.
#pragma once
#include <math.h>

#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
static inline typename Lanes<T>::vector root_of(typename Lanes<T>::vector x) {
    typename Lanes<T>::vector root;
    for (int lane = 0; lane < Lanes<T>::width; ++lane) root[lane] = sqrt(x[lane]);
    return root;
}

#if defined(__AVX2__)
template <>
inline Lanes<float>::vector root_of<float>(Lanes<float>::vector x) {
    return reinterpret_cast<Lanes<float>::vector>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
}
template <>
inline Lanes<double>::vector root_of<double>(Lanes<double>::vector x) {
    return reinterpret_cast<Lanes<double>::vector>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
}
#endif

// The points of y coordinate by coordinate; the last vector of each is filled up with zeros.
template <class T>
struct Coordinates {
    T* data = nullptr;
    Index stride = 0;
    bool pack(const T* y, Index n, Index d) {
        stride = ceil_div(n, Lanes<T>::width) * Lanes<T>::width;
        data = allocate<T>(stride * d);
        if (!data) return false;
        for (Index k = 0; k < d; ++k) {
            for (Index j = 0; j < n; ++j) data[k * stride + j] = y[j * d + k];
            for (Index j = n; j < stride; ++j) data[k * stride + j] = 0;
        }
        return true;
    }
};

}  // namespace LOWLAND_ISA
}  // namespace lowland
