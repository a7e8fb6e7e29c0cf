// descend: one step of gradient descent with momentum and a gain per coordinate.
//
//     gradient = exaggeration * attraction - repulsion / total
//     gain     = gain + 0.2 where the last step went downhill as seen from here, else 0.8 gain (it went
//                too far); at least 0.01                                            [Jacobs 1988]
//     velocity = momentum * velocity - learning_rate * gain * gradient,  no longer than `longest`
#include <math.h>

#include "embedding.h"
#include "isa.h"

namespace lowland {
namespace LOWLAND_ISA {

template <class T>
bool descend(Step step, Index n, Index d, const T* attraction, const T* repulsion, T* y, T* velocity,
             T* gains, int n_threads) {
    constexpr Index kPointsPerTask = 4096;
    const T exaggeration = static_cast<T>(step.exaggeration);
    const T inverse_total = static_cast<T>(step.inverse_total);
    const T rate = static_cast<T>(step.learning_rate), momentum = static_cast<T>(step.momentum);
    const T longest2 = static_cast<T>(step.longest * step.longest);
    parallel(ceil_div(n, kPointsPerTask), n_threads, [&](Index task, int) {
        const Index begin = task * kPointsPerTask, end = min_of(n, begin + kPointsPerTask);
        for (Index e = begin * d; e < end * d; ++e) {
            const T gradient = exaggeration * attraction[e] - repulsion[e] * inverse_total;
            const bool downhill = (gradient > 0) != (velocity[e] > 0);
            const T gain = downhill ? gains[e] + T(0.2) : gains[e] * T(0.8);
            gains[e] = gain > T(0.01) ? gain : T(0.01);
            velocity[e] = momentum * velocity[e] - rate * gains[e] * gradient;
        }
        for (Index i = begin; i < end; ++i) {
            T square = 0;
            for (Index k = 0; k < d; ++k) square += velocity[i * d + k] * velocity[i * d + k];
            if (square > longest2) {
                const T shrink = static_cast<T>(sqrt(static_cast<double>(longest2) / square));
                for (Index k = 0; k < d; ++k) velocity[i * d + k] *= shrink;
            }
            for (Index k = 0; k < d; ++k) y[i * d + k] += velocity[i * d + k];
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                      \
    template bool descend<T>(Step, Index, Index, const T*, const T*, T*, T*, T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
