// rank_forces: the stress after RankVisu of all points of a map, and what it pulls them to.
//
//     stress_i = sum over j among the k nearest of i, in the data or in the map, of gap_ij
//     gap_ij   = the distance of the map's rank of j from the interval of its ranks in the data
//
// Points at equal distances share the interval of their ranks. Ranks above the length of the lists
// count as length + 1, so that the lists and the points within a radius are all that is needed.
//
// The pull of a pair is that of a stress with Guttman's rank images as targets: j should be as far
// from i as the point is that has now the rank which j should have.
//     force = w (1 - t / d) (y_j - y_i),  w = 1 / (1 + d^2 / d_k^2), times `push` where t > d
// d_k is the distance of the k-th neighbor in the map. Between d_k and the distance of the last rank,
// the squared distances of ranks are taken from a line.
//
// Stress does not change if a part of the map becomes wider or narrower. So that groups neither shrink
// to a dot nor points fly away, the k nearest points in the map get, with the weight `even`, targets
// that are wider by the fourth root of spacing / d_k, at least 1/2 and at most 2 times.
#include <math.h>

#include "common/isa.h"
#include "curvilinear/map_tree.h"
#include "curvilinear/rank_stress.h"
#include "curvilinear/row_ranks.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr double kWider = 1.3;  // squared radius of the next search, relative to what would do now

struct Pull {
    double factor, weight;  // of y_j - y_i; w
    std::int32_t row;       // j
};

}  // namespace

bool rank_forces(PlacedPoints map, RankLists lists, RankOptions options, RankForces out, int n_threads) {
    const Index n = map.n, d = map.d, k = lists.k, length = lists.length;
    MapTree tree;
    const Scratches scratches(n, k, n_threads);
    Pull* pulls = allocate<Pull>(n * 3 * k);
    std::int32_t* counts = allocate<std::int32_t>(n);
    bool fine = scratches.fine() && pulls && counts && tree.build(map.y, n, d, n_threads);
    if (fine) {
        parallel(tree.n_leaves(), n_threads, [&](Index leaf, int slot) {
            const Scratch at = scratches.of(slot);
            for (Index p = tree.leaf_start(leaf); p < tree.leaf_start(leaf + 1); ++p) {
                const Index i = tree.rows[p];
                const double* yi = map.y + i * d;
                const Index count = surround(tree, yi, i, length, out.reach[i], at);
                Index n_pulls = 0;
                for (Index c = 0; c < count; ++c) at.work[c] = at.squares[c];
                const double farthest = select(at.work, count, length - 1);
                out.reach[i] = kWider * farthest;
                out.stress[i] = sum_gaps(
                    at, count, lists, i, [&](std::int32_t j, Index rank, Index right) {
                        const double last = at.near_squares[k - 1];
                        const double square = square_between(yi, map.y + j * d, d);
                        double weight = last > 0 ? last / (square + last) : 0.0;
                        weight *= rank < right ? options.push : 1.0;
                        double target = last;
                        if (right > length) {
                            target = farthest;
                        } else if (right > k) {
                            target += (farthest - last) * double(right - k) / double(length - k);
                        } else {
                            target = at.near_squares[right - 1];
                        }
                        const double distance = sqrt(square);
                        const double factor = distance > 0 ? weight * (1 - sqrt(target) / distance) : 0.0;
                        pulls[i * 3 * k + n_pulls++] = {factor, weight, j};
                    });
                const double last = at.near_squares[k - 1];
                if (options.even > 0 && last > 0) {
                    double wider = sqrt(sqrt(options.spacing / sqrt(last)));
                    wider = wider > 2 ? 2 : wider < 0.5 ? 0.5 : wider;
                    for (Index s = 0; s < k; ++s) {
                        const double weight = options.even * last / (at.near_squares[s] + last);
                        pulls[i * 3 * k + n_pulls++] = {weight * (1 - wider), weight, at.near[s]};
                    }
                }
                counts[i] = static_cast<std::int32_t>(n_pulls);
            }
        });
        for (Index e = 0; e < n * d; ++e) out.forces[e] = 0;
        for (Index i = 0; i < n; ++i) out.weights[i] = 0;
        for (Index i = 0; i < n; ++i) {  // a pair moves both of its points; one order for any threads
            for (const Pull* pull = pulls + i * 3 * k; pull < pulls + i * 3 * k + counts[i]; ++pull) {
                const Index j = pull->row;
                for (Index a = 0; a < d; ++a) {
                    const double force = pull->factor * (map.y[j * d + a] - map.y[i * d + a]);
                    out.forces[i * d + a] += force, out.forces[j * d + a] -= force;
                }
                out.weights[i] += pull->weight, out.weights[j] += pull->weight;
            }
        }
    }
    std::free(pulls);
    std::free(counts);
    return fine;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
