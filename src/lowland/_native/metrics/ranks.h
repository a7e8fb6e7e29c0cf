// Entry points of the kernels behind the quality measures: ranks, sorted rows, distances.
#pragma once
#include "neighbors/knn.h"

namespace lowland {

// Which ranks are asked for: row rows[i] wants those of partners[starts[i]] .. partners[starts[i+1]-1].
struct Partners {
    const std::int32_t* rows;
    std::int64_t n_rows;
    const std::int64_t* starts;
    const std::int32_t* partners;
    std::int32_t* ranks;
};

// How many points are nearer to query i than squares[p], for p in starts[i] .. starts[i+1]; of points
// at exactly this distance those with numbers below ties[p]. own[i] is the query's own number or -1.
struct Thresholds {
    std::int64_t n_rows;
    const std::int32_t* own;
    const std::int64_t* starts;
    const double* squares;
    const std::int32_t* ties;
    std::int64_t* counts;  // are added to
};

// Sums that distance_sums makes per row, and add_column_sums per column, of distances a and b.
constexpr std::int64_t kDistanceSums = 7;

#define LOWLAND_DECLARE_RANKS(isa)                                                                \
    namespace isa {                                                                               \
    template <class T, class X>                                                                   \
    bool count_ranks(Points<T> points, const X* x, std::int64_t n, std::int64_t d,                \
                     Partners asked, double rounding, int n_threads);                             \
    template <class T, class X>                                                                   \
    bool count_nearer(Points<T> points, const X* x, std::int64_t n, std::int64_t d,               \
                      Points<T> queries, const X* z, Thresholds asked, double rounding,           \
                      int n_threads);                                                             \
    template <class X>                                                                            \
    bool pair_squares(const X* a, const X* b, std::int64_t m, std::int64_t d, double* out,        \
                      int n_threads);                                                             \
    bool sort_rows(const double* values, std::int64_t m, std::int64_t n, bool inverse,            \
                   std::int32_t* out, int n_threads);                                             \
    bool mid_ranks(const double* values, std::int64_t m, std::int64_t n, double* out,             \
                   int n_threads);                                                                \
    template <class X>                                                                            \
    bool distance_rows(const X* panels, std::int64_t n, const X* rows, std::int64_t m,            \
                       std::int64_t d, bool root, double* out, int n_threads);                    \
    bool distance_sums(const double* a, const double* b, std::int64_t m, std::int64_t n,          \
                       const std::int32_t* own, double scale, double* out, int n_threads);        \
    bool add_column_sums(const double* a, const double* b, std::int64_t m, std::int64_t n,        \
                         std::int64_t first, double scale, double* out, int n_threads);           \
    }

LOWLAND_DECLARE_RANKS(baseline)
LOWLAND_DECLARE_RANKS(avx2)

}  // namespace lowland
