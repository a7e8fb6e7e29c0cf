// |x - w|^2 over the known columns of x, in double whatever the type of the rows.
#pragma once
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class X, class W>
static inline double known_square(const X* x, const W* w, Index p) {
    constexpr Index kLanes = 8;  // fixed partial sums: vectors without a change of order
    double sums[kLanes] = {};
    Index k = 0;
    for (; k + kLanes <= p; k += kLanes) {
        for (Index i = 0; i < kLanes; ++i) {
            const double gap = static_cast<double>(x[k + i]) - static_cast<double>(w[k + i]);
            sums[i] += gap == gap ? gap * gap : 0.0;
        }
    }
    for (Index i = 0; k < p; ++k, ++i) {
        const double gap = static_cast<double>(x[k]) - static_cast<double>(w[k]);
        sums[i] += gap == gap ? gap * gap : 0.0;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
