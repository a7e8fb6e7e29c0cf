// rank_heights, rank_places: the stress of new rows against a map that does not move.
//
// It is constant between jumps, so there is no slope to follow: places around a place are tried, in
// steps that are halved. No row depends on another one.
#include <math.h>

#include "common/isa.h"
#include "curvilinear/map_tree.h"
#include "curvilinear/rank_stress.h"
#include "curvilinear/row_ranks.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr Index kRowsPerTask = 4;
constexpr Index kPlaces = 32;  // neighbors whose places are tried at most
constexpr Index kStarts = 8;   // places from which better ones are sought
constexpr int kHalvings = 12;

// The stress of new rows at places against a map that does not move.
struct Heights {
    const MapTree& tree;
    const RankLists& lists;
    double operator()(const double* z, Index row, const Scratch& at) const {
        const Index count = surround(tree, z, -1, lists.length, 0, at);
        return sum_gaps(at, count, lists, row, [](std::int32_t, Index, Index) {});
    }
};

static void copy(const double* from, Index d, double* to) {
    for (Index k = 0; k < d; ++k) to[k] = from[k];
}

// Moves z to the lowest of the places around it, again and again; where none is lower, in half the
// steps. Up to three columns the places are those of a cube, beyond them those along the axes.
static double settle(const Heights& height, Index row, double step, double lowest, Index d, double* z,
                     double* work, const Scratch& at) {
    Index n_around = 2 * d;
    if (d <= 3) n_around = d == 1 ? 3 : d == 2 ? 9 : 27;
    double *tried = work, *best = work + d;
    for (int halving = 0; halving < kHalvings;) {
        double least = lowest;
        for (Index around = 0; around < n_around; ++around) {
            copy(z, d, tried);
            if (d <= 3) {
                Index digits = around;
                for (Index k = 0; k < d; ++k, digits /= 3) tried[k] += step * double(digits % 3 - 1);
            } else {
                tried[around / 2] += around % 2 ? step : -step;
            }
            const double value = height(tried, row, at);
            if (value < least) least = value, copy(tried, d, best);
        }
        if (least < lowest) {
            lowest = least;
            copy(best, d, z);
        } else {
            step /= 2, ++halving;
        }
    }
    return lowest;
}

// Starts at the lowest of the places of the nearest points, of their means and of places beyond.
static void place(const PlacedPoints& map, const Heights& height, Index row, Index equal, double* z,
                  double* work, const Scratch& at) {
    const Index d = map.d;
    const std::int32_t* list = height.lists.points + row * height.lists.length;
    const Index k = min_of(equal > 0 ? equal : height.lists.k, kPlaces);
    double* starts = work;             // (kStarts, d)
    double* mean = starts + kStarts * d;
    double* outward = mean + d;        // from all points of the list to the nearest of them
    double* spare = outward + d;       // (2, d)
    double values[kStarts];
    Index kept = 0;
    const auto offer = [&](const double* candidate) {
        const double value = height(candidate, row, at);
        if (kept == kStarts && value >= values[kept - 1]) return;
        Index p = kept < kStarts ? kept++ : kStarts - 1;
        for (; p > 0 && values[p - 1] > value; --p) {
            values[p] = values[p - 1];
            copy(starts + (p - 1) * d, d, starts + p * d);
        }
        values[p] = value;
        copy(candidate, d, starts + p * d);
    };
    for (Index t = 0; t < k; ++t) offer(map.y + list[t] * d);
    if (equal == 0) {
        for (Index a = 0; a < d; ++a) mean[a] = 0;
        for (Index t = 0; t < k; ++t) {
            for (Index a = 0; a < d; ++a) mean[a] += (map.y[list[t] * d + a] - mean[a]) / double(t + 1);
            if (t > 0) offer(mean);
        }
        for (Index a = 0; a < d; ++a) outward[a] = 0;
        for (Index t = 0; t < height.lists.length; ++t) {
            for (Index a = 0; a < d; ++a) outward[a] += mean[a] - map.y[list[t] * d + a];
        }
        for (double far = 0.5; far <= 2; far *= 2) {  // a row may belong outside of its neighbors
            for (Index a = 0; a < d; ++a) {
                spare[a] = mean[a] + outward[a] * (far / double(height.lists.length));
            }
            offer(spare);
        }
        double spread = 0;
        for (Index t = 0; t < k; ++t) spread += square_between(map.y + list[t] * d, mean, d);
        const double step = sqrt(spread / double(k));
        for (Index s = 0; s < kept && step > 0; ++s) {
            values[s] = settle(height, row, step, values[s], d, starts + s * d, spare, at);
        }
    }
    Index least = 0;
    for (Index s = 1; s < kept; ++s) least = values[s] < values[least] ? s : least;
    copy(starts + least * d, d, z);
}

}  // namespace

bool rank_heights(PlacedPoints map, RankLists lists, const double* z, double* out, int n_threads) {
    MapTree tree;
    const Scratches scratches(map.n, lists.k, n_threads);
    if (!scratches.fine() || !tree.build(map.y, map.n, map.d, n_threads)) return false;
    const Heights height{tree, lists};
    parallel(ceil_div(lists.m, kRowsPerTask), n_threads, [&](Index task, int slot) {
        const Index end = min_of(lists.m, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            out[i] = height(z + i * map.d, i, scratches.of(slot));
        }
    });
    return true;
}

bool rank_places(PlacedPoints map, RankLists lists, const std::int32_t* equal, double* z,
                 int n_threads) {
    MapTree tree;
    const Index n_work = (kStarts + 4) * map.d;
    const Scratches scratches(map.n, lists.k, n_threads);
    double* work = allocate<double>(n_work * n_threads);
    const bool fine = work && scratches.fine() && tree.build(map.y, map.n, map.d, n_threads);
    if (fine) {
        const Heights height{tree, lists};
        parallel(ceil_div(lists.m, kRowsPerTask), n_threads, [&](Index task, int slot) {
            const Index end = min_of(lists.m, (task + 1) * kRowsPerTask);
            for (Index i = task * kRowsPerTask; i < end; ++i) {
                place(map, height, i, equal[i], z + i * map.d, work + slot * n_work,
                      scratches.of(slot));
            }
        });
    }
    std::free(work);
    return fine;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
