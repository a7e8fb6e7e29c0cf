// count_ranks: how many rows are nearer than a given one, counted inside tiles of scores.
//
// The rank of j seen from i is 1 + the number of rows l with (d_il, l) < (d_ij, j). No row is sorted
// and no row of distances is stored: scores are compared with a threshold per asked pair while they
// are in registers. A threshold is a band as wide as the rounding of scores; what falls above it is
// nearer, what falls below is not, and the few scores inside are decided in exact arithmetic.
//
// count_nearer does the same for queries against points that they need not be part of, such as one
// block of a table that is read block by block; counts of all blocks add up to ranks.
#include "metrics/ranks.h"

#include "neighbors/scores.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

constexpr Index kTogether = 4;  // left panels that share a pass over the points

// Bit c of the result: whether scores[c] >= threshold, for a row of a tile.
template <class T>
inline unsigned at_least(const T* scores, T threshold) {
    unsigned bits = 0;
#ifdef __AVX2__
    for (int v = 0; v < kVectors; ++v) {
        unsigned part;
        if constexpr (sizeof(T) == 4) {
            const __m256 s = _mm256_load_ps(scores + v * Lanes<T>::width);
            part = _mm256_movemask_ps(_mm256_cmp_ps(s, _mm256_set1_ps(threshold), _CMP_GE_OQ));
        } else {
            const __m256d s = _mm256_load_pd(scores + v * Lanes<T>::width);
            part = _mm256_movemask_pd(_mm256_cmp_pd(s, _mm256_set1_pd(threshold), _CMP_GE_OQ));
        }
        bits |= part << (v * Lanes<T>::width);
    }
#else
    for (Index c = 0; c < panel_width<T>; ++c) {
        bits |= static_cast<unsigned>(scores[c] >= threshold) << c;
    }
#endif
    return bits;
}

// The asked pairs of one row, farthest first, so that the bands ascend, and filled up to whole vectors
// with bands that no score reaches. nearer counts in the integers that vector comparisons give.
template <class T>
struct Pairs {
    typedef decltype(typename Lanes<T>::vector{} < typename Lanes<T>::vector{}) Counts;

    T* low;
    T* high;
    Counts* nearer;
    double* squares;
    std::int32_t* partners;
    std::int32_t* slots;
    Index count;

    // Bytes for one row of `most` pairs; a multiple of a vector's.
    static Index bytes(Index most) {
        const Index room = ceil_div(most, Lanes<T>::width) * Lanes<T>::width;
        return ceil_div(room * (3 * sizeof(T) + 2 * sizeof(double)), kVectorBytes) * kVectorBytes;
    }
    Pairs(char* memory, Index most, Index count) : count(count) {
        const Index room = ceil_div(most, Lanes<T>::width) * Lanes<T>::width;
        nearer = reinterpret_cast<Counts*>(memory);
        low = reinterpret_cast<T*>(memory + room * sizeof(T));
        high = low + room;
        squares = reinterpret_cast<double*>(high + room);
        partners = reinterpret_cast<std::int32_t*>(squares + room);
        slots = partners + room;
    }
    Index n_vectors() const { return ceil_div(count, Lanes<T>::width); }
};

// The band of scores that could be a pair at squared distance t from a point with half square h. A row
// at distance r scores -r^2 / 2 up to rounding * (|x|^2 + (|x| + r)^2), which falls with r once
// r > 4 rounding |x|.
template <class T>
inline void set_band(double t, double half, double rounding, T& low, T& high) {
    const double reach = sqrt(t), least = 4 * rounding * sqrt(2 * half);
    const double slack = slack_of(half, reach > least ? reach : least, rounding);
    low = rounded_down<T>(-t / 2 - slack);
    high = -rounded_down<T>(t / 2 - slack);
}

// The pairs whose squares are the negated scores of scratch, in which they are sorted.
template <class T>
void set_pairs(const std::int32_t* partners, double half, double rounding, Entry<double>* scratch,
               const Pairs<T>& pairs) {
    sort_best(scratch, pairs.count);
    for (Index p = 0; p < pairs.n_vectors() * Lanes<T>::width; ++p) {
        pairs.low[p] = pairs.high[p] = static_cast<T>(INFINITY);
    }
    for (Index v = 0; v < pairs.n_vectors(); ++v) pairs.nearer[v] = typename Pairs<T>::Counts{};
    for (Index p = 0; p < pairs.count; ++p) {
        const Entry<double>& from = scratch[pairs.count - 1 - p];
        pairs.squares[p] = -from.score;
        pairs.slots[p] = from.id;
        pairs.partners[p] = partners[from.id];
        set_band<T>(-from.score, half, rounding, pairs.low[p], pairs.high[p]);
    }
}

// Whether two vectors of counts are equal.
template <class Counts>
inline bool same(const Counts& a, const Counts& b) {
    const Counts gap = a ^ b;
#ifdef __AVX2__
    const __m256i bits = reinterpret_cast<const __m256i&>(gap);
    return _mm256_testz_si256(bits, bits) != 0;
#else
    bool none = true;
    for (unsigned lane = 0; lane < sizeof(Counts) / sizeof(gap[0]); ++lane) none &= gap[lane] == 0;
    return none;
#endif
}

// Decides, for the pairs of vector v, the points of a panel whose scores fall inside a band.
template <class T, class X>
__attribute__((noinline)) void settle(const T* scores, const X* x, Index n, Index d, const X* self,
                                      Index first, const Pairs<T>& pairs, Index v) {
    const Index begin = v * Lanes<T>::width, end = min_of(pairs.count, begin + Lanes<T>::width);
    for (Index point = first; point < min_of(n, first + panel_width<T>); ++point) {
        const T score = scores[point - first];
        double square = -1;
        for (Index p = begin; p < end; ++p) {
            if (!(score >= pairs.low[p]) || score > pairs.high[p]) continue;
            if (square < 0) square = exact_square(self, x + point * d, d);
            const bool tie = square == pairs.squares[p] && point < pairs.partners[p];
            if (square < pairs.squares[p] || tie) {
                pairs.nearer[v][p - begin] += 1;
            }
        }
    }
}

// Counts the points of one panel (numbers first ..) for the pairs of one row: each score is compared
// with whole vectors of bands, as long as the panel has any that reaches them. The row is self, and
// number own among the points, or none of them (-1).
template <class T, class X>
inline void count_panel(T* scores, const X* x, Index n, Index d, const X* self, Index own,
                        Index first, const Pairs<T>& pairs) {
    typedef typename Lanes<T>::vector Vector;
    constexpr Index W = panel_width<T>, kWidth = Lanes<T>::width;
    if (own >= first && own < first + W) scores[own - first] = -static_cast<T>(INFINITY);
    for (Index v = 0; v < pairs.n_vectors(); ++v) {
        if (at_least(scores, pairs.low[v * kWidth]) == 0) return;
        const Vector low = *reinterpret_cast<const Vector*>(pairs.low + v * kWidth);
        const Vector high = *reinterpret_cast<const Vector*>(pairs.high + v * kWidth);
        typename Pairs<T>::Counts possible = {}, sure = {};
        for (Index c = 0; c < W; ++c) {
            const Vector score = scores[c] - Vector{};
            possible -= score >= low;
            sure -= score > high;
        }
        pairs.nearer[v] += sure;
        if (!same(possible, sure)) settle(scores, x, n, d, self, first, pairs, v);
    }
}

// Counts all points for a group of rows: `used` rows in panels `left`, each with its pairs.
template <class T, class X, class PairsOf>
void count_group(const Points<T>& points, const X* x, Index n, Index d, const T* left,
                 const T* halves, const X* const* selves, const Index* own, Index used,
                 const PairsOf& pairs_of) {
    constexpr Index W = panel_width<T>;
    const Index q = points.q;
    alignas(kVectorBytes) T scores[kRows * W];
    for (Index j = 0; j < points.n_panels; ++j) {
        for (Index i = 0; i < ceil_div(used, W); ++i) {
            for (Index r = 0; r < W && i * W + r < used; r += kRows) {
                score_all(left + i * q * W, points.panels + j * q * W, q, halves + i * W,
                          points.halves + j * W, r, scores);
                for (Index row = 0; row < kRows; ++row) {
                    const Index at = i * W + r + row;
                    count_panel(scores + row * W, x, n, d, selves[at], own[at], j * W, pairs_of(at));
                }
            }
        }
    }
}

}  // namespace

// The points are the rows of x in their order, in full coordinates (not a lower bound of them).
template <class T, class X>
bool count_ranks(Points<T> points, const X* x, Index n, Index d, Partners asked, double rounding,
                 int n_threads) {
    constexpr Index W = panel_width<T>, kGroup = kTogether * W;
    const Index q = points.q;
    Index most = 1;
    for (Index i = 0; i < asked.n_rows; ++i) {
        const Index count = asked.starts[i + 1] - asked.starts[i];
        if (count > most) most = count;
    }
    const Index bytes = Pairs<T>::bytes(most);
    T* panels = allocate<T>(n_threads * kGroup * q);
    char* memory = allocate<char>(n_threads * kGroup * bytes);
    Entry<double>* entries = allocate<Entry<double>>(n_threads * most);
    const bool enough = panels && memory && entries;
    parallel(enough ? ceil_div(asked.n_rows, kGroup) : 0, n_threads, [&](Index task, int slot) {
        T* left = panels + slot * kGroup * q;
        T halves[kGroup];
        Index own[kGroup];
        const X* selves[kGroup];
        const Index begin = task * kGroup, used = min_of(kGroup, asked.n_rows - begin);
        const auto pairs_of = [&](Index i) {
            const Index count = i < used ? asked.starts[begin + i + 1] - asked.starts[begin + i] : 0;
            return Pairs<T>(memory + (slot * kGroup + i) * bytes, most, count);
        };
        for (Index i = 0; i < ceil_div(used, W) * W; ++i) {
            own[i] = asked.rows[begin + min_of(i, used - 1)];
            selves[i] = x + own[i] * d;
            const T* from = points.panels + own[i] / W * q * W + own[i] % W;
            T* to = left + i / W * q * W + i % W;
            for (Index k = 0; k < q; ++k) to[k * W] = from[k * W];
            halves[i] = points.halves[own[i]];
            if (i >= used) continue;
            Entry<double>* scratch = entries + slot * most;
            const Pairs<T> pairs = pairs_of(i);
            const std::int32_t* partners = asked.partners + asked.starts[begin + i];
            for (Index p = 0; p < pairs.count; ++p) {
                const double square = exact_square(selves[i], x + Index{partners[p]} * d, d);
                scratch[p] = {-square, static_cast<std::int32_t>(p)};
            }
            set_pairs(partners, double(halves[i]), rounding, scratch, pairs);
        }
        count_group(points, x, n, d, left, halves, selves, own, used, pairs_of);
        for (Index i = 0; i < used; ++i) {
            const Pairs<T> pairs = pairs_of(i);
            std::int32_t* ranks = asked.ranks + asked.starts[begin + i];
            for (Index p = 0; p < pairs.count; ++p) {
                const auto nearer = pairs.nearer[p / Lanes<T>::width][p % Lanes<T>::width];
                ranks[pairs.slots[p]] = static_cast<std::int32_t>(nearer) + 1;
            }
        }
    });
    std::free(panels), std::free(memory), std::free(entries);
    return enough;
}

// The points are the rows of x, and the queries those of z, in full coordinates of one space.
template <class T, class X>
bool count_nearer(Points<T> points, const X* x, Index n, Index d, Points<T> queries, const X* z,
                  Thresholds asked, double rounding, int n_threads) {
    constexpr Index W = panel_width<T>, kGroup = kTogether * W;
    Index most = 1;
    for (Index i = 0; i < asked.n_rows; ++i) {
        const Index count = asked.starts[i + 1] - asked.starts[i];
        if (count > most) most = count;
    }
    const Index bytes = Pairs<T>::bytes(most);
    char* memory = allocate<char>(n_threads * kGroup * bytes);
    Entry<double>* entries = allocate<Entry<double>>(n_threads * most);
    const bool enough = memory && entries;
    parallel(enough ? ceil_div(asked.n_rows, kGroup) : 0, n_threads, [&](Index task, int slot) {
        Index own[kGroup];
        const X* selves[kGroup];
        const Index begin = task * kGroup, used = min_of(kGroup, asked.n_rows - begin);
        const T* halves = queries.halves + begin;
        const auto pairs_of = [&](Index i) {
            const Index count = i < used ? asked.starts[begin + i + 1] - asked.starts[begin + i] : 0;
            return Pairs<T>(memory + (slot * kGroup + i) * bytes, most, count);
        };
        for (Index i = 0; i < ceil_div(used, W) * W; ++i) {
            const Index row = begin + min_of(i, used - 1);
            own[i] = asked.own[row];
            selves[i] = z + row * d;
            if (i >= used) continue;
            Entry<double>* scratch = entries + slot * most;
            const Pairs<T> pairs = pairs_of(i);
            for (Index p = 0; p < pairs.count; ++p) {
                scratch[p] = {-asked.squares[asked.starts[row] + p], static_cast<std::int32_t>(p)};
            }
            set_pairs(asked.ties + asked.starts[row], double(halves[i]), rounding, scratch, pairs);
        }
        count_group(points, x, n, d, queries.panels + begin / W * points.q * W, halves, selves, own,
                    used, pairs_of);
        for (Index i = 0; i < used; ++i) {
            const Pairs<T> pairs = pairs_of(i);
            std::int64_t* counts = asked.counts + asked.starts[begin + i];
            for (Index p = 0; p < pairs.count; ++p) {
                const auto nearer = pairs.nearer[p / Lanes<T>::width][p % Lanes<T>::width];
                counts[pairs.slots[p]] += static_cast<std::int64_t>(nearer);
            }
        }
    });
    std::free(memory), std::free(entries);
    return enough;
}

template <class X>
bool pair_squares(const X* a, const X* b, Index m, Index d, double* out, int n_threads) {
    constexpr Index kStep = 1024;
    parallel(ceil_div(m, kStep), n_threads, [&](Index task, int) {
        for (Index i = task * kStep; i < min_of(m, (task + 1) * kStep); ++i) {
            out[i] = exact_square(a + i * d, b + i * d, d);
        }
    });
    return true;
}

#define LOWLAND_INSTANTIATE(T, X)                                                                 \
    template bool count_ranks<T, X>(Points<T>, const X*, Index, Index, Partners, double, int);    \
    template bool count_nearer<T, X>(Points<T>, const X*, Index, Index, Points<T>, const X*,      \
                                     Thresholds, double, int);

LOWLAND_INSTANTIATE(float, float)
LOWLAND_INSTANTIATE(float, double)
LOWLAND_INSTANTIATE(double, float)
LOWLAND_INSTANTIATE(double, double)

template bool pair_squares<float>(const float*, const float*, Index, Index, double*, int);
template bool pair_squares<double>(const double*, const double*, Index, Index, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
