// fuzzy_weights: memberships of the neighbors of each row, and their local metric [McInnes et al. 2018].
//
//     w_j = exp(-max(0, d_j - rho) / sigma),   rho the `connectivity`-th distance that is not 0,
//     sigma such that sum_j w_j = target, but at least 1e-3 of the mean distance.
//
// sigma is found by bisection in units of the mean excess d - rho: rows are short, and the sum of a row whose
// neighbors tie with the nearest has no derivative to use. A distance of infinity is not a neighbor.
#include <math.h>

#include "common/isa.h"
#include "embedding/attraction/fuzzy.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kRowsPerTask = 256;
constexpr int kMostSteps = 64;
constexpr double kTolerance = 1e-7;  // of the sum of memberships
constexpr double kLeastShare = 1e-3;

// The distance at place `connectivity`, counted from 1, among those above 0; interpolated between places.
template <class T>
double nearest_of(const T* distances, Index k, double connectivity) {
    const Index place = static_cast<Index>(connectivity);
    const double between = connectivity - static_cast<double>(place);
    double before = 0, last = 0;
    Index seen = 0;
    for (Index j = 0; j < k; ++j) {
        const double d = distances[j];
        if (!(d > 0 && d < __builtin_inf())) continue;
        ++seen;
        if (seen == place) before = d;
        if (seen == place + 1) return before + between * (d - before);
        last = d;
    }
    return seen > 0 ? (seen == place ? before : last) : 0.0;
}

double sum_of_memberships(const double* excess, Index n, double width) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) sum += excess[j] > 0 ? exp(-excess[j] / width) : 1.0;
    return sum;
}

// The width at which the memberships sum to the target; 0 if the neighbors at most as far as rho are enough.
double width_of(const double* excess, Index n, double target) {
    double mean = 0, beyond = 0;
    for (Index j = 0; j < n; ++j) {
        if (excess[j] > 0) mean += excess[j], beyond += 1;
    }
    if (beyond == 0 || static_cast<double>(n) - beyond >= target) return 0;
    if (static_cast<double>(n) <= target) return __builtin_inf();
    mean /= beyond;
    double low = 0, high = __builtin_inf(), width = 1;
    for (int step = 0; step < kMostSteps; ++step) {
        const double surplus = sum_of_memberships(excess, n, width * mean) - target;
        if (fabs(surplus) < kTolerance) break;
        (surplus > 0 ? high : low) = width;
        width = high < __builtin_inf() ? 0.5 * (low + high) : 2 * width;
    }
    return width * mean;
}

template <class T>
void weigh_row(const T* distances, Index k, double target, double connectivity, double mean_distance, double* excess,
               T* weights, double* nearest, double* width) {
    const double rho = nearest_of(distances, k, connectivity);
    double sum = 0;
    Index n = 0;
    for (Index j = 0; j < k; ++j) {
        const double d = distances[j];
        if (!(d < __builtin_inf())) continue;
        excess[n++] = d - rho;
        sum += d;
    }
    // the row itself, at distance 0, counts in the mean, as in the reference implementation
    const double least = kLeastShare * (rho > 0 ? sum / static_cast<double>(n + 1) : mean_distance);
    double sigma = width_of(excess, n, target);
    sigma = sigma > least ? sigma : least;
    for (Index j = 0; j < k; ++j) {
        const double d = distances[j], over = d - rho;
        const bool near = over <= 0 || sigma == __builtin_inf();
        weights[j] = static_cast<T>(!(d < __builtin_inf()) ? 0.0 : near ? 1.0 : sigma > 0 ? exp(-over / sigma) : 0.0);
    }
    *nearest = rho;
    *width = sigma;
}

}  // namespace

template <class T>
bool fuzzy_weights(const T* distances, Index n, Index k, double target, double connectivity, double mean_distance,
                   T* weights, double* nearest, double* widths, int n_threads) {
    double* excess = allocate<double>(n_threads * k);
    if (excess == nullptr) return false;
    parallel(ceil_div(n, kRowsPerTask), n_threads, [&](Index task, int slot) {
        for (Index i = task * kRowsPerTask; i < min_of(n, (task + 1) * kRowsPerTask); ++i) {
            weigh_row(distances + i * k, k, target, connectivity, mean_distance, excess + slot * k, weights + i * k,
                      nearest + i, widths + i);
        }
    });
    std::free(excess);
    return true;
}

#define LOWLAND_INSTANTIATE(T) \
    template bool fuzzy_weights<T>(const T*, Index, Index, double, double, double, T*, double*, double*, int);

LOWLAND_INSTANTIATE(float)
LOWLAND_INSTANTIATE(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
