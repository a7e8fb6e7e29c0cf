// nearest_units: the nearest one or two units of each row.
//
// The score of a pair is x.w - |w|^2 / 2, largest for the nearest unit. Scores are computed in T, for
// rows and units minus a shift, in tiles of kRows rows by one panel of units; each lane of a vector
// keeps its k + 1 best ones. Then all that rounding allows to be among the k nearest are compared by
// |x - w|^2 in double, and equal ones by their number. If a lane may have lost one of them, the row is
// compared with all units.
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
constexpr double kSafety = 2.2;     // two scores may be off

template <class T>
constexpr double unit_roundoff = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

template <class T>
struct UnitPanels {
    T* data = nullptr;    // panel after panel, term by term: data[(panel*q + k)*W + i]
    T* halves = nullptr;  // |w|^2 / 2; infinity in the empty places of the last panel
    Index count = 0, q = 0;
    double longest = 0;  // |w| of the farthest unit from the shift

    bool pack(const UnitTable<T>& table, const T* shift, bool missing) {
        constexpr Index W = panel_width<T>;
        const Index p = table.p;
        count = ceil_div(table.m, W), q = missing ? 2 * p : p;
        data = allocate<T>(count * q * W), halves = allocate<T>(count * W);
        if (!data || !halves) return false;
        for (Index j = 0; j < count * W; ++j) {
            T* out = data + j / W * q * W + j % W;
            double square = 0;
            for (Index k = 0; k < p; ++k) {
                const T w = j < table.m ? table.units[j * p + k] - shift[k] : T(0);
                out[k * W] = w;
                if (missing) out[(p + k) * W] = -w * w / 2;
                square += static_cast<double>(w) * w;
            }
            const bool used = j < table.m;
            halves[j] = !used ? static_cast<T>(INFINITY) : missing ? T(0) : static_cast<T>(square / 2);
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

template <class T, int K>
static void decide(const UnitTable<T>& table, const LaneBest<T, K>& best, const T* row, double slack,
                   Nearest nearest) {
    constexpr Index W = panel_width<T>;
    constexpr int kWidth = Lanes<T>::width;
    T top[K];  // the K best scores of all lanes
    for (int i = 0; i < K; ++i) top[i] = static_cast<T>(-INFINITY);
    for (int v = 0; v < kVectors; ++v) {
        for (int lane = 0; lane < kWidth; ++lane) {
            for (int i = 0; i < K - 1; ++i) {
                T score = best.scores[v][i][lane];
                for (int place = 0; place < K - 1 && score > top[K - 2]; ++place) {
                    if (score > top[place]) {
                        const T lower = top[place];
                        top[place] = score, score = lower;
                    }
                }
            }
        }
    }
    const double least = static_cast<double>(top[K - 2]) - slack;
    nearest.clear();
    bool lost = !(fabs(least) < INFINITY);  // values that overflow T
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

template <class T, int K>
bool search(const UnitTable<T>& table, const T* shift, bool missing, std::int32_t* ids, double* squares,
            int n_threads) {
    const Index p = table.p, k = K - 1, n_strips = ceil_div(table.n, kStripRows);
    UnitPanels<T> units;
    const Index slots = min_of(n_threads, n_strips);
    const bool packed = units.pack(table, shift, missing);
    T* strips = allocate<T>(slots * units.q * kStripRows);
    auto* kept = reinterpret_cast<LaneBest<T, K>*>(
        allocate<char>(slots * kStripRows * static_cast<Index>(sizeof(LaneBest<T, K>))));
    const bool enough = packed && strips && kept;
    const double rounding = kSafety * static_cast<double>(units.q + 8) * unit_roundoff<T>;
    parallel(enough ? n_strips : 0, n_threads, [&](Index strip, int slot) {
        T* rows = strips + slot * units.q * kStripRows;
        LaneBest<T, K>* best = kept + slot * kStripRows;
        const Index first = strip * kStripRows, used = min_of(kStripRows, table.n - first);
        const Index computed = ceil_div(used, kRows) * kRows;
        double slack[kStripRows];
        for (Index r = 0; r < computed; ++r) {
            const T* row = table.x + (first + min_of(r, used - 1)) * p;
            double square = 0;
            for (Index c = 0; c < p; ++c) {
                const bool known = !missing || row[c] == row[c];
                const T value = known ? row[c] - shift[c] : T(0);
                rows[c * kStripRows + r] = value;
                if (missing) rows[(p + c) * kStripRows + r] = known ? T(1) : T(0);
                square += static_cast<double>(value) * value;
            }
            slack[r] = rounding * units.longest * (sqrt(square) + units.longest);
            best[r].clear();
        }
        for (Index panel = 0; panel < units.count; panel += kGroupPanels) {
            const Index last = min_of(units.count, panel + kGroupPanels);
            for (Index r = 0; r < computed; r += kRows) {
                score_rows<T, K>(units, rows + r, kStripRows, panel, last, best + r);
            }
        }
        for (Index r = 0; r < used; ++r) {
            const Index i = first + r;
            decide<T, K>(table, best[r], table.x + i * p, slack[r], {k, ids + i * k, squares + i * k});
        }
    });
    std::free(units.data), std::free(units.halves), std::free(strips), std::free(kept);
    return enough;
}

}  // namespace

template <class T>
bool nearest_units(UnitTable<T> table, const T* shift, bool missing, std::int64_t k, std::int32_t* ids,
                   double* squares, int n_threads) {
    return k == 1 ? search<T, 2>(table, shift, missing, ids, squares, n_threads)
                  : search<T, 3>(table, shift, missing, ids, squares, n_threads);
}

template bool nearest_units<float>(UnitTable<float>, const float*, bool, std::int64_t, std::int32_t*,
                                   double*, int);
template bool nearest_units<double>(UnitTable<double>, const double*, bool, std::int64_t, std::int32_t*,
                                    double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
