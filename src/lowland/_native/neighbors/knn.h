// Entry points of the neighbor kernels.
//
// Points are stored in panels of `panel_width` points, coordinate by coordinate: panels[(panel*q + k)*W + i].
// The score of a pair is  x.y - (|x|^2 + |y|^2)/2 = -|x - y|^2 / 2;  `halves` holds |x|^2 / 2, and
// infinity for the empty places of the last panel, which pass no threshold. The error of a computed
// score is at most  rounding * (|x|^2 + |y|^2).
// `tails` holds the length of the coordinates after the first `lead`: after `lead` terms of x.y the
// rest is at most tail_x * tail_y, and most tiles need not be completed. If this check is not used,
// lead is q and tails is null.
#pragma once
#include <cstdint>

namespace lowland {

template <class T>
struct Points {
    const T* panels;
    const T* halves;
    std::int64_t n_panels, q;
    const T* tails;
    std::int64_t lead;
    double rounding;
};

// Rows that ask for neighbors, one after the other, for gathering: the points themselves or others.
template <class T>
struct Asked {
    const T* rows;
    const T* halves;
    const T* tails;
    bool among;
};

template <class T>
struct Kept {  // see neighbors/best.h; entries are (T score, int32 id) pairs
    void* entries;
    std::int32_t* counts;
    T* thresholds;
    std::int64_t capacity, keep;
};

// Blocks of panels with their bounding boxes in the first n_box coordinates: low and high per block,
// and the largest half square of its points.
template <class T>
struct Blocks {
    std::int64_t n_blocks, panels_per_block;
    const T* low;
    const T* high;
    const T* top_halves;
    std::int64_t n_box;
};

#define LOWLAND_DECLARE_KNN(isa)                                                                  \
    namespace isa {                                                                               \
    template <class T>                                                                            \
    std::int64_t entry_bytes();                                                                   \
    template <class T>                                                                            \
    std::int64_t width_of_panels();                                                               \
    template <class T>                                                                            \
    bool pack_points(const T* x, std::int64_t n, std::int64_t q, T* panels, int n_threads);       \
    template <class T>                                                                            \
    bool join_rounds(Points<T> points, Blocks<T> blocks, Kept<T> kept, std::int64_t first,        \
                     std::int64_t last, int n_threads);                                           \
    template <class T>                                                                            \
    bool query_groups(Points<T> queries, Points<T> points, const std::int64_t* groups,            \
                      const std::int64_t* range_starts, const std::int64_t* ranges,               \
                      std::int64_t first, std::int64_t last, const std::int32_t* query_ids,       \
                      const std::int32_t* point_ids, Kept<T> kept, int n_threads);                \
    template <class T>                                                                            \
    bool probe_lists(Points<T> points, Asked<T> asked, const std::int64_t* tasks,                 \
                     std::int64_t n_tasks, const std::int64_t* ranges,                            \
                     const std::int64_t* list_starts, const std::int32_t* queries, Kept<T> kept,  \
                     int n_threads);                                                              \
    template <class T>                                                                            \
    bool snapshot(Kept<T> kept, std::int64_t n, std::int64_t k, std::int32_t* near,               \
                  int n_threads);                                                                 \
    template <class T>                                                                            \
    bool refine_neighbors(const T* rows, const T* halves, std::int64_t n, std::int64_t q,         \
                          const std::int32_t* near, std::int64_t k, Kept<T> kept,                 \
                          int n_threads);                                                         \
    template <class T, class Q, class X>                                                          \
    bool rerank(const Q* queries, const X* x, std::int64_t d, const std::int32_t* query_ids,      \
                std::int64_t n, Kept<T> kept, const std::int32_t* point_ids, const T* halves,     \
                double rounding, std::int64_t k, std::int32_t* ids, double* squares,                 \
                unsigned char* certain, int n_threads);                                           \
    template <class T, class Q, class X>                                                          \
    bool complete(Points<T> queries, Points<T> points, const Q* query_rows, const X* x,           \
                  std::int64_t d, const std::int64_t* rows, std::int64_t n_rows,                  \
                  const std::int32_t* query_ids, const std::int32_t* point_ids,                   \
                  bool self_join, double rounding, std::int64_t k, std::int32_t* ids,                \
                  double* squares, int n_threads);                                                \
    }

LOWLAND_DECLARE_KNN(baseline)
LOWLAND_DECLARE_KNN(avx2)

}  // namespace lowland
