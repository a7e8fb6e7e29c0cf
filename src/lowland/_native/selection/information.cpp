// class_digammas, pair_digammas: the sums that estimates of mutual information are made of.
//
// Why it is fast. In a sorted column the k nearest values stand next to each other, and the values
// within a radius are a range whose ends are found by doubling steps: no tree, O(n k + n log n) per
// column. The nearest pairs in the plane (largest of two gaps) are looked for along the axis on which
// fewer points are near, and about sqrt(n k) points are visited. Columns are shared among threads.
//
// Distances are always the rounded difference of two values, so that the k-th neighbor, which lies
// exactly at the radius, is never taken to be inside.

#include "common/isa.h"
#include "selection/selection.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

inline double gap(double a, double b) { return a < b ? b - a : a - b; }
inline double larger(double a, double b) { return a < b ? b : a; }

// Whether values at this distance count as inside; equal values do even if the radius is 0.
inline bool inside(double distance, double radius) { return distance < radius || distance == 0; }

// The number of values from v[i] on, in steps of `direction`, that lie inside; `most` of them exist.
inline Index reach(const double* v, Index i, Index direction, Index most, double radius) {
    Index in = 0, step = 1;  // v[i + in * direction] is inside
    while (in + step < most && inside(gap(v[i], v[i + (in + step) * direction]), radius)) {
        in += step;
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (in + step < most && inside(gap(v[i], v[i + (in + step) * direction]), radius)) in += step;
    }
    return in;
}

// How many of n sorted values lie inside the radius around v[i], itself included.
inline Index count_inside(const double* v, Index n, Index i, double radius) {
    return 1 + reach(v, i, 1, n - i, radius) + reach(v, i, -1, i + 1, radius);
}

// Distance from v[place[t]] to its k-th nearest among the values at place[0..n): the narrowest of
// the windows of k + 1 neighbors that hold it.
inline double kth_distance(const double* v, const std::int32_t* place, Index n, Index t, Index k) {
    const double own = v[place[t]];
    const Index last = min_of(t, n - 1 - k);
    double best = __DBL_MAX__;
    for (Index s = t > k ? t - k : 0; s <= last; ++s) {
        const double radius = larger(own - v[place[s]], v[place[s + k]] - own);
        if (radius < best) best = radius;
    }
    return best;
}

// Walks away from place i of n pairs sorted by a, and keeps the k smallest of max(|da|, |db|).
inline double kth_pair(const double* a, const double* b, Index n, Index i, Index k, double* nearest) {
    for (Index t = 0; t < k; ++t) nearest[t] = __DBL_MAX__;  // ascending
    const auto visit = [&](Index j) {
        const double away = gap(a[i], a[j]);
        if (!(away < nearest[k - 1])) return false;
        const double distance = larger(away, gap(b[i], b[j]));
        if (distance < nearest[k - 1]) {
            Index t = k - 1;
            for (; t > 0 && nearest[t - 1] > distance; --t) nearest[t] = nearest[t - 1];
            nearest[t] = distance;
        }
        return true;
    };
    Index left = i - 1, right = i + 1;
    bool go_left = left >= 0, go_right = right < n;
    while (go_left || go_right) {
        if (go_left) go_left = visit(left) && --left >= 0;
        if (go_right) go_right = visit(right) && ++right < n;
    }
    return nearest[k - 1];
}

// The mean gap between neighbors around v[i].
inline double spacing(const double* v, Index n, Index i, Index reach) {
    const Index low = i > reach ? i - reach : 0, high = min_of(n - 1, i + reach);
    return (v[high] - v[low]) / static_cast<double>(high - low);
}

}  // namespace

// out[column] = sum over its values of psi(number of values of any class within the distance to the
// k-th nearest value of the same class, or the last one there is). Every class has two values or more.
bool class_digammas(ClassColumns columns, std::int64_t k, const double* psi, double* out, int n_threads) {
    const Index n = columns.n, C = columns.n_classes;
    const int slots = static_cast<int>(min_of(n_threads, columns.m));
    const Index per_slot = n + C + 1;
    auto* scratch = allocate<std::int32_t>(per_slot * slots);
    if (!scratch) return false;
    parallel(columns.m, n_threads, [&](Index column, int slot) {
        std::int32_t* place = scratch + per_slot * slot;  // grouped by class, ascending
        std::int32_t* start = place + n;
        const double* v = columns.values + column * n;
        const std::int32_t* code = columns.codes + column * n;
        for (Index c = 0; c <= C; ++c) start[c] = 0;
        for (Index i = 0; i < n; ++i) ++start[code[i] + 1];
        for (Index c = 0; c < C; ++c) start[c + 1] += start[c];
        for (Index i = 0; i < n; ++i) place[start[code[i]]++] = static_cast<std::int32_t>(i);
        double sum = 0;  // now start[c] is where class c ends
        for (Index c = 0; c < C; ++c) {
            const Index begin = c ? start[c - 1] : 0, size = start[c] - begin;
            const Index used = min_of(k, size - 1);
            for (Index t = 0; t < size; ++t) {
                const double radius = kth_distance(v, place + begin, size, t, used);
                sum += psi[count_inside(v, n, place[begin + t], radius)];
            }
        }
        out[column] = sum;
    });
    std::free(scratch);
    return true;
}

// out[column] = sum over pairs of psi(n_x) + psi(n_y): how many x, and how many y, lie nearer than the
// k-th nearest pair, by the larger of the two gaps.
bool pair_digammas(PairColumns columns, std::int64_t k, const double* psi, double* out, int n_threads) {
    const Index n = columns.n;
    const int slots = static_cast<int>(min_of(n_threads, columns.m));
    auto* scratch = allocate<double>(k * slots);
    if (!scratch) return false;
    Index near = 8;  // about half as many as will be visited
    while (near * near * 4 < n * k) near *= 2;
    parallel(columns.m, n_threads, [&](Index column, int slot) {
        double* nearest = scratch + k * slot;
        const double *x = columns.x + column * n, *y_of_x = columns.y_of_x + column * n;
        const double *y = columns.y, *x_of_y = columns.x_of_y + column * n;
        const std::int32_t* rank = columns.y_rank + column * n;
        double sum = 0;
        for (Index i = 0; i < n; ++i) {
            const bool along_x = spacing(x, n, i, near) > spacing(y, n, rank[i], near);
            const double radius = along_x ? kth_pair(x, y_of_x, n, i, k, nearest)
                                          : kth_pair(y, x_of_y, n, rank[i], k, nearest);
            sum += psi[count_inside(x, n, i, radius)] + psi[count_inside(y, n, rank[i], radius)];
        }
        out[column] = sum;
    });
    std::free(scratch);
    return true;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
