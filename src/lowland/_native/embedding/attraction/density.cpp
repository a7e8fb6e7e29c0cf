// map_radii and radius_forces: local radii of the points of a map, and their gradients [Narayan et al. 2021].
//
//     phi_ij = 1 / (1 + a u^b),  u = |y_i - y_j|^2,     sums_i = (sum_j phi_ij,  sum_j phi_ij u),
//     rho_i  = sums_i[1] / sums_i[0],                   over the edges of i; their weights are not used,
//     force_i = -sum_j (c_i d rho_i/du + c_j d rho_j/du) 2 (y_i - y_j)      for slopes c.
//
// Edges are stored in both directions, so each point sums its own force.
#include <math.h>

#include "common/isa.h"
#include "embedding/attraction/fuzzy.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 256;
constexpr double kLeast = 1e-12;  // of squared distances: powers of them

template <class T>
inline double square_of(const T* a, const T* b, Index d) {
    double u = 0;
    for (Index k = 0; k < d; ++k) {
        const double gap = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        u += gap * gap;
    }
    return u > kLeast ? u : kLeast;
}

}  // namespace

template <class T>
bool map_radii(Edges<T> edges, const T* y, Index d, double a, double b, double* sums, int n_threads) {
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            double total = 0, radius = 0;
            for (Index e = edges.starts[i]; e < edges.starts[i + 1]; ++e) {
                const double u = square_of(y + i * d, y + edges.columns[e] * d, d);
                const double phi = 1 / (1 + a * pow(u, b));
                total += phi;
                radius += phi * u;
            }
            sums[2 * i] = total;
            sums[2 * i + 1] = radius;
        }
    });
    return true;
}

template <class T>
bool radius_forces(Edges<T> edges, const T* y, Index d, double a, double b, const double* sums, const double* slopes,
                   T* forces, int n_threads) {
    parallel(ceil_div(edges.n, kRowsPerTask), n_threads, [&](Index task, int) {
        for (Index i = task * kRowsPerTask; i < min_of(edges.n, (task + 1) * kRowsPerTask); ++i) {
            for (Index k = 0; k < d; ++k) forces[i * d + k] = 0;
            for (Index e = edges.starts[i]; e < edges.starts[i + 1]; ++e) {
                const Index j = edges.columns[e];
                const double u = square_of(y + i * d, y + j * d, d);
                const double power = a * pow(u, b), phi = 1 / (1 + power);
                const double steepness = -b * power * phi * phi / u;  // d phi / du
                double pull = 0;
                for (int end = 0; end < 2; ++end) {
                    const Index at = end == 0 ? i : j;
                    const double total = sums[2 * at];
                    if (!(total > 0)) continue;
                    const double rho = sums[2 * at + 1] / total;
                    pull += slopes[at] * (steepness * (u - rho) + phi) / total;
                }
                for (Index k = 0; k < d; ++k) {
                    const double gap = static_cast<double>(y[i * d + k]) - static_cast<double>(y[j * d + k]);
                    forces[i * d + k] -= static_cast<T>(2 * pull * gap);
                }
            }
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T)                                                                              \
    template bool map_radii<T>(Edges<T>, const T*, Index, double, double, double*, int);                    \
    template bool radius_forces<T>(Edges<T>, const T*, Index, double, double, const double*, const double*, \
                                   T*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
