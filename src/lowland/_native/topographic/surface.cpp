// project_on_surface: the nearest point of a simplex is inside of one of its faces, so all faces are
// tried: the minimum over a face's plane counts if its weights are not negative. A simplex of three
// axes has 15 faces. One whose own plane is farther than the best point so far is passed over.
//
// All simplices at a node c share it as their first corner: with r = x - c and the edges
// e_i = v_i - c, the squared distance of c + sum t_i e_i is |r|^2 - 2 t.b + t.G t, b_i = e_i.r,
// G_ij = e_i.e_j. The edges and G are computed once.
//
// From the nearest point of the given nodes the search goes on at the corners around it, until none
// of their simplices is nearer: the point is a minimum over the surface, also where cells are oblique.
#include "topographic/surface.h"

#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

namespace {

typedef Lanes<double>::vector Vector;
constexpr Index kWidth = Lanes<double>::width;
constexpr Index kRowsPerTask = 64;
constexpr int kMost = 4;  // corners of a simplex of three axes
constexpr double kFlat = 1e-13;   // a pivot below this share of its diagonal is rounding
constexpr double kEqual = 1e-14;  // of squared distances: less than this is rounding

// The simplices at each node, by their edges from it.
struct Stars {
    Index stride = 0, most = 0;      // padded columns; the largest number of edges at a node
    double* edges = nullptr;         // of each node, from starts[c] * q on
    Index* counts = nullptr;         // edges of each node
    Index* local = nullptr;          // for each member its q edges
    double* grams = nullptr;         // for each member q x q
};

static inline double dot(const double* a, const double* b, Index stride) {
    Vector sum{};
    for (Index k = 0; k < stride; k += kWidth) {
        sum += *reinterpret_cast<const Vector*>(a + k) * *reinterpret_cast<const Vector*>(b + k);
    }
    return sum_of(sum);
}

static void fill_star(const Surface& s, Index c, Stars& stars, Index* ends) {
    const Index q = s.q;
    double* edges = stars.edges + s.starts[c] * q * stars.stride;
    Index count = 0;
    for (Index member = s.starts[c]; member < s.starts[c + 1]; ++member) {
        const Index* corners = s.simplices + s.members[member] * (q + 1);
        Index* local = stars.local + member * q;
        for (Index i = 0, edge = 0; i <= q; ++i) {
            if (corners[i] == c) continue;
            Index at = 0;
            while (at < count && ends[at] != corners[i]) ++at;
            if (at == count) {
                ends[count++] = corners[i];
                double* e = edges + at * stars.stride;
                for (Index k = 0; k < stars.stride; ++k) {
                    e[k] = k < s.p ? s.nodes[corners[i] * s.p + k] - s.nodes[c * s.p + k] : 0;
                }
            }
            local[edge++] = at;
        }
        for (Index i = 0; i < q; ++i) {
            for (Index j = 0; j <= i; ++j) {
                const double product = dot(edges + local[i] * stars.stride,
                                           edges + local[j] * stars.stride, stars.stride);
                double* gram = stars.grams + member * q * q;
                gram[i * q + j] = gram[j * q + i] = product;
            }
        }
    }
    stars.counts[c] = count;
}

// H s = h for a positive definite H of size n <= 3, in place; false if H is flat.
static inline bool solve(double (*H)[kMost], double* h, int n) {
    for (int j = 0; j < n; ++j) {
        const double diagonal = H[j][j];
        for (int k = 0; k < j; ++k) H[j][j] -= H[j][k] * H[j][k] * H[k][k];
        if (!(H[j][j] > kFlat * diagonal)) return false;
        for (int i = j + 1; i < n; ++i) {
            for (int k = 0; k < j; ++k) H[i][j] -= H[i][k] * H[j][k] * H[k][k];
            H[i][j] /= H[j][j];
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k) h[i] -= H[i][k] * h[k];
    }
    for (int i = n - 1; i >= 0; --i) {
        h[i] /= H[i][i];
        for (int k = i + 1; k < n; ++k) h[i] -= H[k][i] * h[k];
    }
    return true;
}

// The point of one simplex as products: G and b with a first corner at 0.
struct Corners {
    int count;
    double G[kMost][kMost], b[kMost], square;
};

// The minimum over the plane of a face: its weights and its squared distance; false if it is flat.
static inline bool minimum_over(const Corners& at, int face, double* weights, double& square) {
    int corner[kMost], n = 0;
    for (int i = 0; i < at.count; ++i) {
        weights[i] = 0;
        if (face >> i & 1) corner[n++] = i;
    }
    double H[kMost][kMost], h[kMost];
    const int o = corner[0];
    for (int i = 1; i < n; ++i) {
        const int a = corner[i];
        h[i - 1] = (at.b[a] - at.b[o]) - (at.G[a][o] - at.G[o][o]);
        for (int j = 1; j <= i; ++j) {
            const int c = corner[j];
            H[i - 1][j - 1] = (at.G[a][c] - at.G[a][o]) - (at.G[o][c] - at.G[o][o]);
        }
    }
    if (!solve(H, h, n - 1)) return false;
    weights[o] = 1;
    for (int i = 1; i < n; ++i) {
        weights[corner[i]] = h[i - 1];
        weights[o] -= h[i - 1];
    }
    square = at.square;
    for (int i = 0; i < at.count; ++i) {
        double slope = -2 * at.b[i];
        for (int j = 0; j < at.count; ++j) slope += at.G[i][j] * weights[j];
        square += weights[i] * slope;
    }
    return true;
}

static inline bool inside(const double* weights, int count) {
    bool fine = true;
    for (int i = 0; i < count; ++i) fine &= weights[i] >= 0;
    return fine;
}

// The nearest point of a simplex, if it is nearer than `best`.
static bool improve(const Corners& at, double& best, double* weights) {
    double tried[kMost], square;
    const int all = (1 << at.count) - 1;
    bool better = false;
    for (int face = all; face > 0; --face) {
        if (!minimum_over(at, face, tried, square)) continue;
        if (face == all && square >= best) return false;
        if (!inside(tried, at.count) || square >= best) continue;
        best = square;
        better = true;
        for (int i = 0; i < at.count; ++i) weights[i] = tried[i];
        if (face == all) break;
    }
    return better;
}

// The nearest point found so far: its simplex, the weights of its corners, its squared distance.
struct Nearest {
    Index simplex;
    double weights[kMost], square;
};

// Tries all simplices at node c; whether one of them is nearer than all before.
template <class T>
static bool visit(const Surface& s, const Stars& stars, const T* x, Index c, double* scratch,
                  Nearest& nearest) {
    const Index q = s.q;
    const double* edges = stars.edges + s.starts[c] * q * stars.stride;
    double *r = scratch, *dots = scratch + stars.stride, weights[kMost];
    for (Index k = 0; k < s.p; ++k) r[k] = static_cast<double>(x[k]) - s.nodes[c * s.p + k];
    for (Index e = 0; e < stars.counts[c]; ++e) {
        dots[e] = dot(edges + e * stars.stride, r, stars.stride);
    }
    Corners at{static_cast<int>(q + 1), {}, {}, dot(r, r, stars.stride)};
    // the same point by another corner is not nearer
    double best = nearest.simplex < 0 ? __builtin_inf() : nearest.square - kEqual * at.square;
    bool better = false;
    for (Index member = s.starts[c]; member < s.starts[c + 1]; ++member) {
        for (Index i = 0; i < q; ++i) {
            at.b[i + 1] = dots[stars.local[member * q + i]];
            for (Index j = 0; j < q; ++j) {
                at.G[i + 1][j + 1] = stars.grams[(member * q + i) * q + j];
            }
        }
        if (!improve(at, best, weights)) continue;
        better = true;
        nearest.simplex = s.members[member];
        nearest.square = best;
        for (Index i = 0, other = 1; i <= q; ++i) {
            const bool first = s.simplices[nearest.simplex * (q + 1) + i] == c;
            nearest.weights[i] = weights[first ? 0 : other++];
        }
    }
    return better;
}

template <class T>
static void one_row(const Surface& s, const Stars& stars, const Projection<T>& task, Index row,
                    double* scratch) {
    const T* x = task.x + row * s.p;
    Nearest nearest{-1, {}, 0};
    for (Index i = 0; i < task.k; ++i) {
        visit(s, stars, x, task.near[row * task.k + i], scratch, nearest);
    }
    bool better = nearest.simplex >= 0;
    for (Index step = 0; better && step < s.m; ++step) {
        const Nearest from = nearest;
        better = false;
        for (Index i = 0; i <= s.q; ++i) {
            if (from.weights[i] <= 0) continue;
            const Index c = s.simplices[from.simplex * (s.q + 1) + i];
            better |= visit(s, stars, x, c, scratch, nearest);
        }
    }
    task.found[row] = nearest.simplex;
    task.squares[row] = nearest.square > 0 ? nearest.square : 0;
    if (nearest.simplex < 0) return;
    for (Index i = 0; i <= s.q; ++i) task.weights[row * (s.q + 1) + i] = nearest.weights[i];
}

}  // namespace

template <class T>
bool project_on_surface(const Surface& s, const Projection<T>& task, int n_threads) {
    const Index q = s.q, pairs = s.starts[s.m];
    Stars stars;
    stars.stride = ceil_div(s.p, kWidth) * kWidth;
    for (Index c = 0; c < s.m; ++c) {
        const Index edges = (s.starts[c + 1] - s.starts[c]) * q;
        if (edges > stars.most) stars.most = edges;
    }
    const Index room = stars.stride + ceil_div(stars.most, kWidth) * kWidth;
    stars.edges = allocate<double>(pairs * q * stars.stride);
    stars.counts = allocate<Index>(s.m);
    stars.local = allocate<Index>(pairs * q);
    stars.grams = allocate<double>(pairs * q * q);
    Index* ends = allocate<Index>(stars.most);
    double* scratch = allocate<double>(n_threads * room);
    const bool enough =
        stars.edges && stars.counts && stars.local && stars.grams && ends && scratch;
    if (enough) {
        for (Index c = 0; c < s.m; ++c) fill_star(s, c, stars, ends);
        for (Index e = 0; e < n_threads * room; ++e) scratch[e] = 0;
        parallel(ceil_div(task.n, kRowsPerTask), n_threads, [&](Index part, int slot) {
            const Index end = min_of(task.n, (part + 1) * kRowsPerTask);
            for (Index row = part * kRowsPerTask; row < end; ++row) {
                one_row(s, stars, task, row, scratch + slot * room);
            }
        });
    }
    std::free(stars.edges), std::free(stars.counts), std::free(stars.local);
    std::free(stars.grams), std::free(ends), std::free(scratch);
    return enough;
}

template bool project_on_surface(const Surface&, const Projection<float>&, int);
template bool project_on_surface(const Surface&, const Projection<double>&, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
