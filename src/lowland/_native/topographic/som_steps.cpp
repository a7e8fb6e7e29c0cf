// som_steps: every step depends on the one before, so there is one thread.
//
// The step of a row goes over the codebook once: a unit is moved by the row before and at once
// compared with the next one, while it is in the nearest cache.
#include <math.h>

#include "grids/squares.h"
#include "topographic/som_steps.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
bool som_steps(SomRows<T> rows, const double* neighborhood, double* codebook, Index m) {
    const Index p = rows.p;
    double* next = allocate<double>(p);    // in double, so that it is converted once
    double* before = allocate<double>(p);  // the row that moves the units
    const bool enough = next && before;
    Index winner = 0;
    for (Index t = 0; enough && t <= rows.n; ++t) {  // the last pass only moves
        const bool moves = t > 0, seeks = t < rows.n;
        for (Index k = 0; seeks && k < p; ++k) next[k] = static_cast<double>(rows.rows[t * p + k]);
        const double* reach = neighborhood + winner * m;
        const double rate = moves ? rows.rates[t - 1] : 0.0;
        double least = INFINITY;
        Index nearest = 0;
        for (Index j = 0; j < m; ++j) {
            double* unit = codebook + j * p;
            const double share = rate * reach[j];
            if (moves && share != 0) {
                for (Index k = 0; k < p; ++k) {
                    const double gap = before[k] - unit[k];
                    unit[k] += gap == gap ? share * gap : 0.0;
                }
            }
            if (!seeks) continue;
            const double square = known_square(next, unit, p);
            if (square < least) least = square, nearest = j;
        }
        winner = nearest;
        double* other = before;
        before = next, next = other;
    }
    std::free(next), std::free(before);
    return enough;
}

template bool som_steps<float>(SomRows<float>, const double*, double*, Index);
template bool som_steps<double>(SomRows<double>, const double*, double*, Index);

}  // namespace LOWLAND_ISA
}  // namespace lowland
