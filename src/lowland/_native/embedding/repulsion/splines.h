// B-splines of order 6 (degree 5) on a grid: weights of the nodes around a point, and interpolation.
//
// Along one axis a point between the nodes b + 2 and b + 3 touches the nodes b .. b + 5. Along the last
// axis these are taken as one vector of 8 with two zero weights: a point costs 6 loads in the plane.
#pragma once
#include "common/isa.h"
#include "embedding/embedding.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kOrder = 6;
typedef Lanes<float>::vector Row;
typedef Lanes<float>::loose LooseRow;
static_assert(Lanes<float>::width == 8, "a row of weights is one vector");

struct Spline {
    Row weights, slopes;  // of the nodes first .. first + 5; the last two lanes are 0
    Index first;
    float t;  // how far the point is past a node, in pitches
};

// 120 times the coefficients of t^0 .. t^5 of the six weights: the pieces of the B-spline.
static constexpr float kPieces[kOrder][8] = {
    {1, 26, 66, 26, 1, 0, 0, 0},     {-5, -50, 0, 50, 5, 0, 0, 0},    {10, 20, -60, 20, 10, 0, 0, 0},
    {-10, 20, 0, -20, 10, 0, 0, 0},  {5, -20, 30, -20, 5, 0, 0, 0},   {-1, 5, -10, 10, -5, 1, 0, 0}};

static inline Row load_row(const float* from) { return *reinterpret_cast<const LooseRow*>(from); }

// Weights of a coordinate and their derivatives, in units of 1/pitch: Horner's scheme for all at once.
template <class T>
static inline Spline spline_at(T x, double low, double inverse_pitch, Index nodes) {
    const double u = (static_cast<double>(x) - low) * inverse_pitch;
    Index cell = static_cast<Index>(u);
    cell = cell < 2 ? 2 : min_of(cell, nodes - 6);  // never outside, whatever the point
    const float t = static_cast<float>(u - static_cast<double>(cell));
    Row weights = load_row(kPieces[kOrder - 1]), slopes = weights;
    for (int k = kOrder - 2; k > 0; --k) {
        weights = weights * t + load_row(kPieces[k]);
        slopes = slopes * t + weights;
    }
    weights = weights * t + load_row(kPieces[0]);
    return {weights * (1.0f / 120), slopes * (1.0f / 120), cell - 2, t};
}

template <int D>
struct Steps {  // how far apart neighbors along an axis are in memory
    Index along[D];
    explicit Steps(const Grid& grid) {
        along[D - 1] = 1;
        for (int k = D - 1; k > 0; --k) along[k - 1] = along[k] * grid.nodes[k];
    }
};

// Calls row(nodes of the last axis, place on the first axis, place on the second) for all rows of
// nodes that a point touches; places count from 0, and are 0 on axes the map does not have.
template <int D, class Body>
static inline void for_rows(const Spline* at, const Steps<D>& steps, Index offset, const Body& row) {
    if constexpr (D == 1) {
        row(offset + at[0].first, 0, 0);
    } else if constexpr (D == 2) {
        const Index start = offset + at[0].first * steps.along[0] + at[1].first;
        for (Index a = 0; a < kOrder; ++a) row(start + a * steps.along[0], a, 0);
    } else {
        const Index start = offset + at[0].first * steps.along[0] + at[1].first * steps.along[1] + at[2].first;
        for (Index a = 0; a < kOrder; ++a) {
            for (Index b = 0; b < kOrder; ++b) row(start + a * steps.along[0] + b * steps.along[1], a, b);
        }
    }
}

// value[0] is the field at a point, value[1 + k] its slope along axis k, per pitch.
template <int D>
static inline void interpolate(const Spline* at, const Steps<D>& steps, const float* nodes, float* value) {
    Row field = {}, slope_a = {}, slope_b = {};
    for_rows<D>(at, steps, 0, [&](Index place, Index a, Index b) {
        const Row row = load_row(nodes + place);
        const float wb = D == 3 ? at[1].weights[b] : 1.0f;
        field += (D == 1 ? 1.0f : at[0].weights[a] * wb) * row;
        if constexpr (D >= 2) slope_a += at[0].slopes[a] * wb * row;
        if constexpr (D == 3) slope_b += at[0].weights[a] * at[1].slopes[b] * row;
    });
    const Row last = at[D - 1].weights;
    value[0] = sum_of(field * last);
    value[D] = sum_of(field * at[D - 1].slopes);
    if constexpr (D >= 2) value[1] = sum_of(slope_a * last);
    if constexpr (D == 3) value[2] = sum_of(slope_b * last);
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
