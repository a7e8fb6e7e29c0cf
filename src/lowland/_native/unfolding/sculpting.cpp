// Manifold sculpting: local errors, and the hill climbing of one point after another.
//
// A point is adjusted while all others stand still, so what its neighbors and their partners give is
// gathered once, in panels of one vector's width; each trial then costs two roots, two divisions and
// a polynomial for four neighbors at a time. A pass is sequential, in breadth-first order from its
// seeds: each point is adjusted to neighbors that were adjusted before. Nothing depends on threads.
#include <math.h>

#include "common/elementary.h"
#include "common/isa.h"
#include "unfolding/sculpting.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

typedef Lanes<double>::vector Vector;
constexpr Index W = Lanes<double>::width;
constexpr Index kRowsPerTask = 64;
constexpr double kPi = 3.14159265358979323846;

static inline Vector square_root(Vector x) {
#if defined(__AVX2__)
    return reinterpret_cast<Vector>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
#else
    Vector root;
    for (Index lane = 0; lane < W; ++lane) root[lane] = sqrt(x[lane]);
    return root;
#endif
}

// acos(x) for |x| <= 1, by the rational function of fdlibm for asin(s) with s = |x| below 1/2 and
// s = sqrt((1 - |x|) / 2) above.
static inline Vector arc_cosine(Vector x) {
    const Vector zero{}, one = fill(1.0);
    const Vector size = x < zero ? -x : x;
    const auto inner = size < 0.5;
    const Vector z = inner ? size * size : (one - size) * 0.5;
    const Vector s = inner ? size : square_root(z);
    const Vector p = z * (0x1.5555555555555p-3 +
                     z * (-3.25565818622400915405e-01 +
                     z * (2.01212532134862925881e-01 +
                     z * (-4.00555345006794114027e-02 +
                     z * (7.91534994289814532176e-04 + z * 3.47933107596021167570e-05)))));
    const Vector q = 1.0 + z * (-2.40339491173441421878e+00 +
                           z * (2.02094576023350569471e+00 +
                           z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02)));
    const Vector arc = s + s * (p / q);
    const Vector acute = inner ? kPi / 2 - arc : 2.0 * arc;  // acos(|x|)
    return x < zero ? kPi - acute : acute;
}

// The neighborhood of one point: everything that does not change while the point moves. First panels
// of neighbors, with a distance and an angle at the neighbor each, then panels of angles at the point.
struct Neighborhood {
    Vector* data;
    Index q;
    Index ends, corners;  // panels of either kind

    static constexpr Index kNumbers = 7;
    static Index vectors_for(Index most, Index q) { return (ceil_div(most, W) + 3) * (2 * q + kNumbers); }
    Vector* panel(Index p) const { return data + p * (2 * q + kNumbers); }

    // Writes one entry: z against `near` with the angle at `near` to `far`, or between both at z.
    void put(Index at, bool corner, const double* near, const double* far, double gap, double arm,
             double product, double distance, double angle, double length_weight, double angle_weight) {
        Vector *place = panel(at / W), *other = place + q, *rest = other + q;
        const Index lane = at % W;
        double length = arm;
        for (Index a = 0; a < q; ++a) {
            place[a][lane] = near[a];
            other[a][lane] = corner ? far[a] : far ? far[a] - near[a] : 0;
            length += other[a][lane] * other[a][lane];
        }
        rest[0][lane] = gap, rest[1][lane] = product;
        rest[2][lane] = corner ? arm : length > 0 ? 1 / sqrt(length) : 0;
        rest[3][lane] = distance, rest[4][lane] = angle;
        rest[5][lane] = length_weight, rest[6][lane] = far ? angle_weight : 0;
    }

    // Fills up a panel with entries that weigh nothing; returns the number of panels so far.
    Index fill_up(Index at) {
        for (; at % W; ++at) {
            Vector *place = panel(at / W);
            for (Index v = 0; v < 2 * q + kNumbers; ++v) place[v][at % W] = 0;
        }
        return at / W;
    }

    void gather(const KeptTerms& kept, const double* y, Index from, Index to,
                const std::uint8_t* done, double adjusted, double twice, const Roles* roles, Index i) {
        Index at = 0;
        for (Index e = from; e < to; ++e, ++at) {
            const Index j = kept.lists.ends[e], m = kept.partner[e];
            const double w = done && done[j] ? adjusted : 1;
            put(at, false, y + j * q, m < 0 ? nullptr : y + m * q, kept.scale * kept.gap[e],
                kept.scale * kept.arm[e], kept.scale * kept.product[e],
                kept.distance[e], kept.angle[e], w * twice, w);
        }
        if (roles) {
            for (Index r = roles->partner_starts[i]; r < roles->partner_starts[i + 1]; ++r, ++at) {
                const Index e = roles->partner_edges[r], j = kept.lists.ends[e];
                put(at, false, y + j * q, y + roles->rows[e] * q, kept.scale * kept.arm[e],
                    kept.scale * kept.gap[e], kept.scale * kept.product[e], 0, kept.angle[e], 0,
                    done[j] ? adjusted : 1);
            }
        }
        ends = corners = fill_up(at);
        if (!roles) return;
        at = ends * W;
        for (Index r = roles->corner_starts[i]; r < roles->corner_starts[i + 1]; ++r, ++at) {
            const Index e = roles->corner_edges[r], a = roles->rows[e], m = kept.partner[e];
            put(at, true, y + a * q, y + m * q, kept.scale * kept.gap[e], kept.scale * kept.arm[e],
                kept.scale * kept.product[e], 0, kept.angle[e], 0, done[a] ? adjusted : 1);
        }
        corners = fill_up(at);
    }
};

// eps = sum_j w_j [((delta - delta_0) / width)^2 + (min(theta - theta_0, 0) / pi)^2] of a point at z. The
// distances and angles go to `terms`, if there is one. The same instructions everywhere: an error of
// a point that has not moved is 0 exactly.
template <int Q>
__attribute__((noinline)) double error_at(const Neighborhood& around, const double* z,
                                          double inverse_width, Vector* terms) {
    const Index q = Q ? Q : around.q;
    const Vector zero{}, one = fill(1.0);
    Vector sum{};
    for (Index p = 0; p < around.ends; ++p) {
        const Vector *near = around.panel(p), *arm = near + q, *rest = arm + q;
        Vector r2 = rest[0], product = rest[1];
        for (Index a = 0; a < q; ++a) {
            const Vector gap = z[a] - near[a];
            r2 += gap * gap;
            product += gap * arm[a];
        }
        const Vector length = square_root(r2);
        const auto apart = r2 > zero;
        Vector cosine = product * rest[2] / (apart ? length : one);
        cosine = cosine > one ? one : (cosine < -one ? -one : cosine);
        const auto known = (rest[2] > zero) & apart;
        const Vector angle = known ? arc_cosine(cosine) : zero;  // of points in one place: none is sharper
        const Vector off = (length - rest[3]) * inverse_width, turned = (angle - rest[4]) * (1 / kPi);
        const Vector turn = turned > zero ? zero : turned;  // only sharper angles count
        sum += rest[5] * (off * off) + rest[6] * (turn * turn);
        if (terms) terms[2 * p] = length, terms[2 * p + 1] = angle;
    }
    for (Index p = around.ends; p < around.corners; ++p) {
        const Vector *one_end = around.panel(p), *other = one_end + q, *rest = other + q;
        Vector a2 = rest[0], product = rest[1], b2 = rest[2];
        for (Index a = 0; a < q; ++a) {
            const Vector u = z[a] - one_end[a], v = z[a] - other[a];
            a2 += u * u;
            b2 += v * v;
            product += u * v;
        }
        const Vector squares = a2 * b2;
        const auto apart = squares > zero;
        Vector cosine = product / square_root(apart ? squares : one);
        cosine = cosine > one ? one : (cosine < -one ? -one : cosine);
        const Vector angle = apart ? arc_cosine(cosine) : zero;
        const Vector turned = (angle - rest[4]) * (1 / kPi);
        const Vector turn = turned > zero ? zero : turned;  // only sharper angles count
        sum += rest[6] * (turn * turn);
    }
    return sum_of(sum);
}

typedef double (*ErrorAt)(const Neighborhood&, const double*, double, Vector*);

static ErrorAt error_of(Index q) {
    return q == 1 ? error_at<1> : q == 2 ? error_at<2> : q == 3 ? error_at<3> : error_at<0>;
}

// Where the adjusted neighbors expect a point: the mean of the straight continuations from the partner
// over the corner. False if no neighbor and its partner have both been adjusted.
static bool expected_place(const KeptTerms& kept, const double* y, Index q, Index from, Index to,
                           const std::uint8_t* done, double* place) {
    Index count = 0;
    for (Index a = 0; a < q; ++a) place[a] = 0;
    for (Index e = from; e < to; ++e) {
        const Index j = kept.lists.ends[e], m = kept.partner[e];
        if (m < 0 || !done[j] || !done[m]) continue;
        double length = kept.scale * kept.arm[e];
        for (Index a = 0; a < q; ++a) {
            const double arm = y[j * q + a] - y[m * q + a];
            length += arm * arm;
        }
        if (!(length > 0)) continue;
        const double ratio = kept.distance[e] / sqrt(length);
        for (Index a = 0; a < q; ++a) place[a] += y[j * q + a] + ratio * (y[j * q + a] - y[m * q + a]);
        ++count;
    }
    for (Index a = 0; a < q; ++a) place[a] /= count ? count : 1;
    return count > 0;
}

static Index longest_list(const NeighborLists& lists) {
    Index most = 1;
    for (Index i = 0; i < lists.n; ++i) {
        const Index length = lists.starts[i + 1] - lists.starts[i];
        most = length > most ? length : most;
    }
    return most;
}

// Moves z by steps along single axes while that lowers the error, and returns the lowest error.
static double climb(ErrorAt error, const Neighborhood& around, double inverse_width, double step,
                    Index sweeps, double best, double* z, Index* moves) {
    for (Index sweep = 0; sweep < sweeps; ++sweep) {
        bool moved = false;
        for (Index a = 0; a < around.q; ++a) {
            const double here = z[a];
            for (int side = 0; side < 2; ++side) {
                z[a] = side ? here - step : here + step;
                const double found = error(around, z, inverse_width, nullptr);
                if (found < best) {
                    best = found, moved = true;
                    break;
                }
                z[a] = here;
            }
        }
        if (!moved) break;
        ++*moves;
    }
    return best;
}

}  // namespace

bool angle_partners(const AngleRows& rows, const AnglePartners& out, int threads) {
    const Index d = rows.d, n = rows.lists.n;
    parallel(ceil_div(n, kRowsPerTask), threads, [&](Index task, int) {
        const Index last = min_of(n, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < last; ++i) {
            const double* own = rows.z + i * d;
            for (Index e = rows.lists.starts[i]; e < rows.lists.starts[i + 1]; ++e) {
                const Index j = rows.lists.ends[e];
                const double* corner = rows.x + j * d;
                double lowest = 2;
                Index partner = -1;
                for (Index f = rows.fitted.starts[j]; f < rows.fitted.starts[j + 1]; ++f) {
                    const Index l = rows.fitted.ends[f];
                    if (rows.own && l == i) continue;
                    const double* other = rows.x + l * d;
                    double gap = 0, arm = 0, product = 0;
                    for (Index a = 0; a < d; ++a) {
                        const double g = own[a] - corner[a], b = other[a] - corner[a];
                        gap += g * g, arm += b * b, product += g * b;
                    }
                    const double cosine = product / (sqrt(gap) * sqrt(arm));  // NaN: no angle
                    if (cosine < lowest) lowest = cosine, partner = l;
                }
                double gap = 0, arm = 0, product = 0;
                for (Index a = out.first; a < d; ++a) {
                    const double g = own[a] - corner[a];
                    const double b = partner < 0 ? 0 : rows.x[partner * d + a] - corner[a];
                    gap += g * g, arm += b * b, product += g * b;
                }
                out.partner[e] = static_cast<std::int32_t>(partner);
                out.gap[e] = gap, out.arm[e] = arm, out.product[e] = product;
            }
        }
    });
    return true;
}

bool sculpt_terms(const KeptTerms& kept, const SculptedMap& map, const TermsOut& out, int threads) {
    const Index q = map.q, n = kept.lists.n, most = longest_list(kept.lists);
    const Index each = Neighborhood::vectors_for(most, q), terms = 2 * ceil_div(most, W);
    Vector* scratch = reinterpret_cast<Vector*>(allocate<double>((each + terms) * W * threads));
    if (!scratch) return false;
    const ErrorAt error = error_of(q);
    parallel(ceil_div(n, kRowsPerTask), threads, [&](Index task, int slot) {
        const Index last = min_of(n, (task + 1) * kRowsPerTask);
        Neighborhood around{scratch + slot * (each + terms), q, 0, 0};
        Vector* found = around.data + each;
        for (Index i = task * kRowsPerTask; i < last; ++i) {
            const Index from = kept.lists.starts[i], to = kept.lists.starts[i + 1];
            around.gather(kept, map.y, from, to, nullptr, 1, 1, nullptr, 0);
            out.errors[i] = error(around, map.z + i * q, 1 / kept.width, found);
            for (Index e = from; e < to; ++e) {
                const Index panel = (e - from) / W, lane = (e - from) % W;
                out.distance[e] = found[2 * panel][lane];
                out.angle[e] = found[2 * panel + 1][lane];
            }
        }
    });
    std::free(scratch);
    return true;
}

bool sculpt_pass(const KeptTerms& kept, const Roles& roles, double* y, Index q, const Pass& pass,
                 const PassOut& out) {
    const Index n = kept.lists.n;
    Index most = 1;
    for (Index i = 0; i < n; ++i) {
        const Index length = kept.lists.starts[i + 1] - kept.lists.starts[i] + roles.partner_starts[i + 1] -
                             roles.partner_starts[i] + roles.corner_starts[i + 1] - roles.corner_starts[i];
        most = length > most ? length : most;
    }
    const Index each = Neighborhood::vectors_for(most, q);
    double* scratch = allocate<double>(each * W + 2 * q);
    std::int32_t* queue = allocate<std::int32_t>(n);
    std::uint8_t* seen = allocate<std::uint8_t>(2 * n);
    if (!scratch || !queue || !seen) {
        std::free(scratch), std::free(queue), std::free(seen);
        return false;
    }
    std::uint8_t* done = seen + n;
    for (Index i = 0; i < 2 * n; ++i) seen[i] = 0;
    Neighborhood around{reinterpret_cast<Vector*>(scratch), q, 0, 0};
    double* z = scratch + each * W;
    const ErrorAt error = error_of(q);
    Index moves = 0, head = 0, tail = 0;
    for (Index s = 0; s < pass.n_seeds; ++s) {
        if (seen[pass.seeds[s]]) continue;
        seen[pass.seeds[s]] = 1;
        queue[tail++] = pass.seeds[s];
        const Index first = head;
        for (; head < tail; ++head) {
            const Index i = queue[head];
            const Index from = kept.lists.starts[i], to = kept.lists.starts[i + 1];
            around.gather(kept, y, from, to, done, pass.adjusted, 2, &roles, i);
            for (Index a = 0; a < q; ++a) z[a] = y[i * q + a];
            const double before = error(around, z, 1 / kept.width, nullptr);
            out.before[i] = out.after[i] = before;
            if (head > first && !pass.fixed[i]) {  // the seed stays, and so do given places
                double best = before;
                double* trial = z + q;
                if (expected_place(kept, y, q, from, to, done, trial)) {
                    const double found = error(around, trial, 1 / kept.width, nullptr);
                    if (found < best) {
                        best = found;
                        for (Index a = 0; a < q; ++a) z[a] = trial[a];
                    }
                }
                out.after[i] = climb(error, around, 1 / kept.width, pass.steps[i], pass.sweeps, best, z, &moves);
                for (Index a = 0; a < q; ++a) y[i * q + a] = z[a];
            }
            done[i] = 1;
            for (Index e = from; e < to; ++e) {
                const Index j = kept.lists.ends[e];
                if (!seen[j]) seen[j] = 1, queue[tail++] = static_cast<std::int32_t>(j);
            }
        }
    }
    *out.moves = moves;
    std::free(scratch), std::free(queue), std::free(seen);
    return true;
}

bool sculpt_places(const KeptTerms& kept, const double* y, Index q, const Descents& descents,
                   int threads) {
    const Index each = Neighborhood::vectors_for(longest_list(kept.lists), q);
    Vector* scratch = reinterpret_cast<Vector*>(allocate<double>(each * W * threads));
    if (!scratch) return false;
    const ErrorAt error = error_of(q);
    parallel(descents.m, threads, [&](Index i, int slot) {
        Neighborhood around{scratch + slot * each, q, 0, 0};
        around.gather(kept, y, kept.lists.starts[i], kept.lists.starts[i + 1], nullptr, 1, 1, nullptr, 0);
        for (Index s = 0; s < descents.n_starts; ++s) {
            const Index at = i * descents.n_starts + s;
            double* z = descents.places + at * q;
            double best = error(around, z, 1 / kept.width, nullptr);
            Index moves = 0;
            for (double step = descents.steps[i]; step > descents.least; step /= 2) {
                best = climb(error, around, 1 / kept.width, step, 100, best, z, &moves);
            }
            descents.errors[at] = best;
        }
    });
    std::free(scratch);
    return true;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
