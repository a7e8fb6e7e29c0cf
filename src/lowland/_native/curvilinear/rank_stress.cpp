// rank_forces, rank_heights, rank_places: the stress after RankVisu.
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
// d_k is the distance of the k-th neighbor in the map.
#include <math.h>

#include "common/isa.h"
#include "curvilinear/map_tree.h"
#include "curvilinear/rank_stress.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr double kWider = 1.3;  // squared radius of the next search, relative to what would do now
constexpr Index kRowsPerTask = 4;
constexpr Index kPlaces = 32;   // neighbors whose places are tried at most
constexpr Index kStarts = 4;    // places from which better ones are sought
constexpr int kHalvings = 12;

// The memory of one thread: points around a row, and the k nearest of them.
struct Scratch {
    double *squares, *work, *near_squares;
    std::int32_t *found, *near;
};

class Scratches {
public:
    Scratches(Index n, Index k, int n_threads) : n_(n + Lanes<double>::width), k_(k) {
        squares_ = allocate<double>((2 * n_ + k_) * n_threads);
        found_ = allocate<std::int32_t>((n_ + k_) * n_threads);
    }
    Scratches(const Scratches&) = delete;
    Scratches& operator=(const Scratches&) = delete;
    ~Scratches() {
        std::free(squares_);
        std::free(found_);
    }
    bool fine() const { return squares_ && found_; }
    Scratch of(int slot) const {
        double* squares = squares_ + slot * (2 * n_ + k_);
        std::int32_t* found = found_ + slot * (n_ + k_);
        return {squares, squares + n_, squares + 2 * n_, found, found + n_};
    }

private:
    Index n_, k_;
    double* squares_;
    std::int32_t* found_;
};

// At least `length` points around z, all within one radius; their number.
static Index surround(const MapTree& tree, const double* z, Index own, Index length, double reach,
                      const Scratch& at) {
    const Index others = tree.n - (own >= 0);
    if (length >= others) return tree.within(z, own, INFINITY, at.squares, at.found);
    if (reach > 0) {
        const Index count = tree.within(z, own, reach, at.squares, at.found);
        if (count >= length) return count;
    }
    const double limit = tree.enclosing(z, length + (own >= 0));
    const Index count = tree.within(z, own, limit, at.squares, at.found);
    if (count >= length) return count;
    return tree.within(z, own, INFINITY, at.squares, at.found);
}

// The k nearest of the points, nearest first, ties by row number.
static void nearest(const Scratch& at, Index count, Index k) {
    Index kept = 0;
    for (Index c = 0; c < count; ++c) {
        const double square = at.squares[c];
        const std::int32_t row = at.found[c];
        if (kept == k) {
            const double last = at.near_squares[k - 1];
            if (square > last || (square == last && row > at.near[k - 1])) continue;
        }
        Index p = kept < k ? kept++ : k - 1;
        for (; p > 0; --p) {
            const double before = at.near_squares[p - 1];
            if (before < square || (before == square && at.near[p - 1] < row)) break;
            at.near_squares[p] = before, at.near[p] = at.near[p - 1];
        }
        at.near_squares[p] = square, at.near[p] = row;
    }
}

// The number that has `before` smaller or equal ones in front of it, if all were sorted.
static double select(double* a, Index count, Index before) {
    Index low = 0, high = count - 1;
    while (low < high) {
        const double pivot = a[before];
        Index i = low, j = high;
        do {
            while (a[i] < pivot) ++i;
            while (pivot < a[j]) --j;
            if (i <= j) {
                const double moved = a[i];
                a[i++] = a[j], a[j--] = moved;
            }
        } while (i <= j);
        if (j < before) low = i;
        if (before < i) high = j;
    }
    return a[before];
}

// The place of a number in an array, or -1; at most one place has it.
static Index place_of(std::int32_t number, const std::int32_t* array, Index count) {
    constexpr Index kBlock = 32;
    for (Index a = 0; a < count; a += kBlock) {
        const Index b = min_of(count, a + kBlock);
        std::int32_t here = 0;
        for (Index p = a; p < b; ++p) here |= array[p] == number;
        if (!here) continue;
        for (Index p = a; p < b; ++p) {
            if (array[p] == number) return p;
        }
    }
    return -1;
}

// The rank, from 1, of the point at place c, at most `most`; ties by row number.
static Index rank_of(const Scratch& at, Index count, Index c, Index most) {
    const double square = at.squares[c];
    std::int64_t nearer = 0, as_near = 0;
    for (Index p = 0; p < count; ++p) {
        nearer += at.squares[p] < square;
        as_near += at.squares[p] == square;
    }
    if (as_near > 1) {
        for (Index p = 0; p < count; ++p) {
            nearer += at.squares[p] == square && at.found[p] < at.found[c];
        }
    }
    return min_of(nearer + 1, most);
}

// The sum of all gaps; gap(row, rank in the map, nearest rank that is right) for each of them.
template <class Gap>
static double sum_gaps(const Scratch& at, Index count, const RankLists& lists, Index i, const Gap& gap) {
    const std::int32_t* list = lists.points + i * lists.length;
    const std::uint8_t* ties = lists.ties + i * lists.length;
    const Index k = lists.k, beyond = lists.length + 1;
    double sum = 0;
    const auto compare = [&](std::int32_t row, Index rank, Index place) {
        Index low = beyond, high = beyond;
        if (place >= 0) {
            low = place + 1, high = place + 1;
            while (low > 1 && ties[low - 2]) --low;
            while (high < beyond && ties[high - 1]) ++high;
        }
        const Index right = rank < low ? low : rank > high ? high : rank;
        if (right == rank) return;
        sum += static_cast<double>(rank < right ? right - rank : rank - right);
        gap(row, rank, right);
    };
    nearest(at, count, k);
    for (Index s = 0; s < k; ++s) {
        compare(at.near[s], s + 1, place_of(at.near[s], list, lists.length));
    }
    for (Index t = 0; t < k; ++t) {
        const Index c = place_of(list[t], at.found, count);
        const Index rank = c < 0 ? beyond : rank_of(at, count, c, beyond);
        if (rank > k) compare(list[t], rank, t);
    }
    return sum;
}

static double square_between(const double* a, const double* b, Index d) {
    double sum = 0;
    for (Index k = 0; k < d; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

struct Pull {
    double factor, weight;  // of y_j - y_i; w
    std::int32_t row;       // j
};

}  // namespace

bool rank_forces(PlacedPoints map, RankLists lists, double push, RankForces out, int n_threads) {
    const Index n = map.n, d = map.d, k = lists.k, length = lists.length;
    MapTree tree;
    const Scratches scratches(n, k, n_threads);
    Pull* pulls = allocate<Pull>(n * 2 * k);
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
                        double weight = square + last > 0 ? last / (square + last) : 0.0;
                        weight *= rank < right ? push : 1.0;
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
                        pulls[i * 2 * k + n_pulls++] = {factor, weight, j};
                    });
                counts[i] = static_cast<std::int32_t>(n_pulls);
            }
        });
        for (Index e = 0; e < n * d; ++e) out.forces[e] = 0;
        for (Index i = 0; i < n; ++i) out.weights[i] = 0;
        for (Index i = 0; i < n; ++i) {  // a pair moves both of its points; one order for any threads
            for (const Pull* pull = pulls + i * 2 * k; pull < pulls + i * 2 * k + counts[i]; ++pull) {
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

namespace {

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
