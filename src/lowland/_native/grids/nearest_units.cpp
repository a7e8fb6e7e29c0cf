// nearest_units: the nearest one or two units of each row.
//
// The score of a pair is x.w - |w|^2 / 2, largest for the nearest unit. Scores are computed in S, for
// rows and units minus a shift, in tiles of kRows rows by one panel of units; each lane of a vector
// keeps its k + 1 best ones. Then all that rounding allows to be among the k nearest are compared by
// |x - w|^2 in double, and equal ones by their number. If a lane may have lost one of them, the row is
// compared with all units. S is float, which is twice as fast, also for rows of double, unless the
// columns are so many that its rounding leaves many candidates, or the values are extreme.
//
// With missing values the score is the sum over the known columns of x w - w^2 / 2. It is a product,
// too, of twice as many terms: (x or 0, known) . (w, -w^2 / 2).
#include <math.h>

#include "grids/squares.h"
#include "grids/units.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kStripRows = 32;    // rows of a task
constexpr Index kGroupPanels = 16;  // panels that stay in the cache while the rows of a task pass
constexpr double kSafety = 2.2;     // two scores may be off; covers the rounding of rows to S, too
constexpr Index kFloatColumns = 1000;
constexpr double kSmallest = 1e-12, kLargest = 1e15;  // units in between are scored in float

template <class T>
constexpr double unit_roundoff = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

template <class S>
struct UnitPanels {
    S* data = nullptr;    // panel after panel, term by term: data[(panel*q + k)*W + i]
    S* halves = nullptr;  // |w|^2 / 2; infinity in the empty places of the last panel
    Index count = 0, q = 0;
    double longest = 0;  // |w| of the farthest unit from the shift

    template <class T>
    bool pack(const UnitTable<T>& table, const T* shift, bool missing) {
        constexpr Index W = panel_width<S>;
        const Index p = table.p;
        count = ceil_div(table.m, W), q = missing ? 2 * p : p;
        data = allocate<S>(count * q * W), halves = allocate<S>(count * W);
        if (!data || !halves) return false;
        for (Index j = 0; j < count * W; ++j) {
            S* out = data + j / W * q * W + j % W;
            double square = 0;
            for (Index k = 0; k < p; ++k) {
                const S w = j < table.m ? static_cast<S>(table.units[j * p + k] - shift[k]) : S(0);
                out[k * W] = w;
                if (missing) out[(p + k) * W] = -w * w / 2;
                square += static_cast<double>(w) * w;
            }
            const bool used = j < table.m;
            halves[j] = !used ? static_cast<S>(INFINITY) : missing ? S(0) : static_cast<S>(square / 2);
            longest = square > longest ? square : longest;
        }
        longest = sqrt(longest);
        return true;
    }
};

// The K best scores of each lane, and the panels they are from, as numbers of type T.
template <class T, int K>
struct LaneBest {
    typedef typename Lanes<T>::vector Vector;
    Vector scores[kVectors][K], panels[kVectors][K];

    void clear() {
        for (int v = 0; v < kVectors; ++v) {
            for (int i = 0; i < K; ++i) {
                scores[v][i] = Vector{} - static_cast<T>(INFINITY);
                panels[v][i] = Vector{};
            }
        }
    }
    inline __attribute__((always_inline)) void offer(int v, Vector score, Vector panel) {
#pragma GCC unroll 3
        for (int i = 0; i < K; ++i) {
            const auto better = score > scores[v][i];
            const Vector lost = better ? scores[v][i] : score;
            const Vector from = better ? panels[v][i] : panel;
            scores[v][i] = better ? score : scores[v][i];
            panels[v][i] = better ? panel : panels[v][i];
            score = lost, panel = from;
        }
    }
};

// Scores of kRows rows (adjacent in `rows`, term by term) against panels first .. last-1.
template <class T, int K>
__attribute__((noinline))  // inlined it would have to share its registers
static void score_rows(const UnitPanels<T>& units, const T* rows, Index stride, Index first, Index last,
                       LaneBest<T, K>* best) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index W = panel_width<T>;
    constexpr int kWidth = Lanes<T>::width;
    for (Index panel = first; panel < last; ++panel) {
        Vector total[kRows][kVectors];
        const T* terms = units.data + panel * units.q * W;
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) {
                total[r][v] = -*reinterpret_cast<const Loose*>(units.halves + panel * W + v * kWidth);
            }
        }
#pragma GCC unroll 1
        for (Index k = 0; k < units.q; ++k) {
            const Loose* term = reinterpret_cast<const Loose*>(terms + k * W);
#pragma GCC unroll 4
            for (int r = 0; r < kRows; ++r) {
                const T value = rows[k * stride + r];
#pragma GCC unroll 3
                for (int v = 0; v < kVectors; ++v) total[r][v] += value * term[v];
            }
        }
        const Vector number = Vector{} + static_cast<T>(panel);
        for (int r = 0; r < kRows; ++r) {
            for (int v = 0; v < kVectors; ++v) {
                if (any_lane(total[r][v] > best[r].scores[v][K - 1])) best[r].offer(v, total[r][v], number);
            }
        }
    }
}

// The k nearest of candidates that come in any order.
struct Nearest {
    Index k;
    std::int32_t* ids;
    double* squares;
    void clear() {
        for (Index i = 0; i < k; ++i) ids[i] = -1, squares[i] = INFINITY;
    }
    void offer(Index unit, double square) {
        for (Index i = 0; i < k; ++i) {
            const bool first = ids[i] < 0 || square < squares[i] || (square == squares[i] && unit < ids[i]);
            if (!first) continue;
            const Index id = ids[i];
            const double other = squares[i];
            ids[i] = static_cast<std::int32_t>(unit), squares[i] = square;
            if (id < 0) return;
            unit = id, square = other;
        }
    }
};

template <class T, class S, int K>
static void decide(const UnitTable<T>& table, const LaneBest<S, K>& best, const T* row, double slack,
                   Nearest nearest) {
    constexpr Index W = panel_width<S>;
    constexpr int kWidth = Lanes<S>::width;
    S top[K];  // the K best scores of all lanes
    for (int i = 0; i < K; ++i) top[i] = static_cast<S>(-INFINITY);
    for (int v = 0; v < kVectors; ++v) {
        for (int lane = 0; lane < kWidth; ++lane) {
            for (int i = 0; i < K - 1; ++i) {
                S score = best.scores[v][i][lane];
                for (int place = 0; place < K - 1 && score > top[K - 2]; ++place) {
                    if (score > top[place]) {
                        const S lower = top[place];
                        top[place] = score, score = lower;
                    }
                }
            }
        }
    }
    const double least = static_cast<double>(top[K - 2]) - slack;
    nearest.clear();
    bool lost = !(fabs(least) < INFINITY);  // values that overflow S
    for (int v = 0; v < kVectors && !lost; ++v) {
        for (int lane = 0; lane < kWidth && !lost; ++lane) {
            // the last one kept stands for all that were not
            lost = static_cast<double>(best.scores[v][K - 1][lane]) >= least;
            for (int i = 0; i < K - 1 && static_cast<double>(best.scores[v][i][lane]) >= least; ++i) {
                const Index unit = static_cast<Index>(best.panels[v][i][lane]) * W + v * kWidth + lane;
                if (unit >= table.m) continue;
                nearest.offer(unit, known_square(row, table.units + unit * table.p, table.p));
            }
        }
    }
    if (!lost) return;
    nearest.clear();
    for (Index unit = 0; unit < table.m; ++unit) {
        nearest.offer(unit, known_square(row, table.units + unit * table.p, table.p));
    }
}

template <class T, class S, int K>
bool search(const UnitTable<T>& table, const T* shift, bool missing, std::int32_t* ids, double* squares,
            int n_threads) {
    const Index p = table.p, k = K - 1, n_strips = ceil_div(table.n, kStripRows);
    UnitPanels<S> units;
    const Index slots = min_of(n_threads, n_strips);
    const bool packed = units.pack(table, shift, missing);
    S* strips = allocate<S>(slots * units.q * kStripRows);
    auto* kept = reinterpret_cast<LaneBest<S, K>*>(
        allocate<char>(slots * kStripRows * static_cast<Index>(sizeof(LaneBest<S, K>))));
    const bool enough = packed && strips && kept;
    const double rounding = kSafety * static_cast<double>(units.q + 8) * unit_roundoff<S>;
    parallel(enough ? n_strips : 0, n_threads, [&](Index strip, int slot) {
        S* rows = strips + slot * units.q * kStripRows;
        LaneBest<S, K>* best = kept + slot * kStripRows;
        const Index first = strip * kStripRows, used = min_of(kStripRows, table.n - first);
        const Index computed = ceil_div(used, kRows) * kRows;
        double slack[kStripRows];
        for (Index r = 0; r < computed; ++r) {
            const T* row = table.x + (first + min_of(r, used - 1)) * p;
            double square = 0;
            for (Index c = 0; c < p; ++c) {
                const bool known = !missing || row[c] == row[c];
                const S value = known ? static_cast<S>(row[c] - shift[c]) : S(0);
                rows[c * kStripRows + r] = value;
                if (missing) rows[(p + c) * kStripRows + r] = known ? S(1) : S(0);
                square += static_cast<double>(value) * value;
            }
            slack[r] = rounding * units.longest * (sqrt(square) + units.longest);
            best[r].clear();
        }
        for (Index panel = 0; panel < units.count; panel += kGroupPanels) {
            const Index last = min_of(units.count, panel + kGroupPanels);
            for (Index r = 0; r < computed; r += kRows) {
                score_rows<S, K>(units, rows + r, kStripRows, panel, last, best + r);
            }
        }
        for (Index r = 0; r < used; ++r) {
            const Index i = first + r;
            decide<T, S, K>(table, best[r], table.x + i * p, slack[r], {k, ids + i * k, squares + i * k});
        }
    });
    std::free(units.data), std::free(units.halves), std::free(strips), std::free(kept);
    return enough;
}

// Whether float can score: units that are far or near enough from the shift, and few columns.
template <class T>
bool fits_float(const UnitTable<T>& table, const T* shift) {
    if (table.p > kFloatColumns) return false;
    double farthest = 0;
    for (Index j = 0; j < table.m; ++j) {
        for (Index k = 0; k < table.p; ++k) {
            const double gap = fabs(static_cast<double>(table.units[j * table.p + k] - shift[k]));
            farthest = gap > farthest ? gap : farthest;
        }
    }
    return kSmallest < farthest && farthest < kLargest;
}

template <class T, class S>
bool search_few(const UnitTable<T>& table, const T* shift, bool missing, Index k, std::int32_t* ids,
                double* squares, int n_threads) {
    return k == 1 ? search<T, S, 2>(table, shift, missing, ids, squares, n_threads)
                  : search<T, S, 3>(table, shift, missing, ids, squares, n_threads);
}

}  // namespace

template <class T>
bool nearest_units(UnitTable<T> table, const T* shift, bool missing, std::int64_t k, std::int32_t* ids,
                   double* squares, int n_threads) {
    if (fits_float(table, shift)) {
        return search_few<T, float>(table, shift, missing, k, ids, squares, n_threads);
    }
    return search_few<T, double>(table, shift, missing, k, ids, squares, n_threads);
}

template bool nearest_units<float>(UnitTable<float>, const float*, bool, std::int64_t, std::int32_t*,
                                   double*, int);
template bool nearest_units<double>(UnitTable<double>, const double*, bool, std::int64_t, std::int32_t*,
                                    double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
