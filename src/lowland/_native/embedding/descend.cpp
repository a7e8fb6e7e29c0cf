// descend: one step of gradient descent with momentum and a gain per coordinate.
//
//     gradient = exaggeration * attraction - repulsion / total
//     gain     = gain + 0.2 where the last step went downhill as seen from here, else 0.8 gain (it went
//                too far); at least 0.01                                            [Jacobs 1988]
//     velocity = momentum * velocity - learning_rate * gain * gradient,  no longer than `longest`
#include <math.h>

#include "embedding/embedding.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

// New gains and velocities; on whole vectors, or on one number at a time (both types work below).
template <class Value, class T>
static inline void accelerate(const Value& gradient, T rate, T momentum, Value& velocity, Value& gain) {
    const auto downhill = (gradient > T(0)) != (velocity > T(0));
    const Value changed = downhill ? gain + T(0.2) : gain * T(0.8);
    gain = changed > T(0.01) ? changed : changed * T(0) + T(0.01);
    velocity = momentum * velocity - rate * gain * gradient;
}

template <class T>
bool descend(Step step, Index n, Index d, const T* attraction, const T* repulsion, T* y, T* velocity,
             T* gains, int n_threads) {
    typedef typename Lanes<T>::vector Vector;
    constexpr Index kPointsPerTask = 4096;
    const T exaggeration = static_cast<T>(step.exaggeration);
    const T inverse_total = static_cast<T>(step.inverse_total);
    const T rate = static_cast<T>(step.learning_rate), momentum = static_cast<T>(step.momentum);
    const T longest2 = static_cast<T>(step.longest * step.longest);
    parallel(ceil_div(n, kPointsPerTask), n_threads, [&](Index task, int) {
        const Index begin = task * kPointsPerTask, end = min_of(n, begin + kPointsPerTask);
        Index e = begin * d;
        for (; e + Lanes<T>::width <= end * d; e += Lanes<T>::width) {
            const auto at = [&](auto* from) -> auto& {
                return *reinterpret_cast<typename Lanes<T>::loose*>(const_cast<T*>(from + e));
            };
            const Vector gradient = exaggeration * at(attraction) - at(repulsion) * inverse_total;
            Vector speed = at(velocity), gain = at(gains);
            accelerate(gradient, rate, momentum, speed, gain);
            at(velocity) = speed;
            at(gains) = gain;
        }
        for (; e < end * d; ++e) {
            const T gradient = exaggeration * attraction[e] - repulsion[e] * inverse_total;
            accelerate(gradient, rate, momentum, velocity[e], gains[e]);
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
