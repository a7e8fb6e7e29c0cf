// Kernels of manifold sculpting: neighbors, the partners of their angles, and a pass over all points.
//
// Point i keeps, for each of its neighbors j, the distance |i - j| and the angle at j between i and a
// partner m, a neighbor of j on the far side of it. Of the axes that are scaled away only sums are
// needed: the squared length of i - j, of m - j, and the product of the two; they are stored per
// neighbor and multiplied by the square of the scale.
#pragma once
#include <cstdint>

namespace lowland {

// The neighbors of each of n rows: ends[starts[i] .. starts[i + 1]].
struct NeighborLists {
    const std::int64_t* starts;
    const std::int32_t* ends;
    std::int64_t n;
};

// Rows z with their neighbors among the rows x, which have neighbors themselves.
struct AngleRows {
    const double *z, *x;
    std::int64_t d;
    NeighborLists lists, fitted;
    bool own;  // row i of z is row i of x, and not its own partner
};

// Per neighbor: the partner (-1: there is none), and sums over the axes from `first` on.
struct AnglePartners {
    std::int32_t* partner;
    double *gap, *arm, *product;
    std::int64_t first;
};

// What a point must keep, per neighbor; `width` is what a distance error is divided by.
struct KeptTerms {
    NeighborLists lists;
    const std::int32_t* partner;
    const double *gap, *arm, *product;
    const double *distance, *angle;
    double width, scale;  // of the sums: the square of that of the axes
};

// Points z, each with its list of neighbors in the map y; z is y for a map's own points.
struct SculptedMap {
    const double *z, *y;
    std::int64_t n, q;  // n: the points of y
};

struct TermsOut {
    double *distance, *angle, *errors;  // per neighbor, per neighbor, per point
};

// The angles that a point is the partner in, and those that it is the corner of: numbers of neighbors
// in the lists, edges[starts[i] .. starts[i + 1]], and the rows that those lists belong to.
struct Roles {
    const std::int64_t *partner_starts, *partner_edges, *corner_starts, *corner_edges;
    const std::int32_t* rows;
};

struct Pass {
    const std::int32_t* seeds;  // one per connected part of the graph
    std::int64_t n_seeds;
    const std::uint8_t* fixed;
    const double* steps;  // of each point
    double adjusted;  // weight of neighbors that were adjusted before
    std::int64_t sweeps;
};

struct PassOut {
    double *before, *after;  // the local error of each point, before and after it was adjusted
    std::int64_t* moves;
};

// Places of new rows: starts (m, n_starts, q) are overwritten by where they lead, with the errors.
struct Descents {
    double *places, *errors;
    std::int64_t m, n_starts;
    const double* steps;  // the first of each row
    double least;  // the length at which a descent ends
};

#define LOWLAND_DECLARE_SCULPTING(isa)                                                            \
    namespace isa {                                                                               \
    bool angle_partners(const AngleRows& rows, const AnglePartners& out, int threads);            \
    bool sculpt_terms(const KeptTerms& kept, const SculptedMap& map, const TermsOut& out, int);   \
    bool sculpt_pass(const KeptTerms& kept, const Roles& roles, double* y, std::int64_t q,        \
                     const Pass& pass, const PassOut& out);                                      \
    bool sculpt_places(const KeptTerms& kept, const double* y, std::int64_t q,                    \
                       const Descents& descents, int threads);                                    \
    }

LOWLAND_DECLARE_SCULPTING(baseline)
LOWLAND_DECLARE_SCULPTING(avx2)

}  // namespace lowland
