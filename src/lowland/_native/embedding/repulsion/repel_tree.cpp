// repel_tree: Barnes and Hut's repulsion; a cell that is far enough away acts as one point.
//
// Why it is fast. Points are sorted along a Morton curve, so that those of a cell follow one another and
// a tree needs one pointer per node: the next node when its cell is not opened. A vector of consecutive
// points traverses the tree together; a cell is opened when any of them is too near to it. That opens
// a few cells more than a traversal by single points, and the forces become more accurate. The spread
// of the points of a cell enters to second order, for a few instructions: at the same angle the sum of
// the potentials is about 30 times more accurate than with all points at the center.
//
// Barnes & Hut (1986), Nature 324; van der Maaten (2014), JMLR 15.
#include "common/isa.h"
#include "embedding/repulsion/repulsion.h"
#include "embedding/repulsion/similarity.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kLeaf = 8;            // points of a cell that is not divided further
constexpr Index kGroupsPerTask = 16;
constexpr int kTerms = 128;           // terms summed in T before the sum goes on in double

template <int D>
constexpr int kBits = D == 3 ? 21 : 31;  // of a coordinate in a Morton key

// --- Order along the curve ------------------------------------------------------------------------

// The smallest cube that holds the map, and the numbers of its finest cells.
template <class T, int D>
struct Cube {
    double low[D], side, cells_per_unit;

    explicit Cube(const Map<T>& y) : side(0) {
        for (int k = 0; k < D; ++k) {
            T least = y.points[k], most = y.points[k];
            for (Index i = 1; i < y.n; ++i) {
                const T value = y.points[i * D + k];
                least = value < least ? value : least;
                most = value > most ? value : most;
            }
            low[k] = least;
            const double extent = static_cast<double>(most) - low[k];
            side = extent > side ? extent : side;
        }
        cells_per_unit = side > 0 ? static_cast<double>(Index(1) << kBits<D>) / side : 0;
    }

    std::uint64_t cell(T value, int k) const {
        constexpr double last = static_cast<double>((Index(1) << kBits<D>) - 1);
        const double at = (static_cast<double>(value) - low[k]) * cells_per_unit;
        return at > 0 ? static_cast<std::uint64_t>(at < last ? at : last) : 0;
    }
};

// The bits of the cell's numbers in turn, highest first: cells of any size are ranges of keys.
template <class T, int D>
std::uint64_t morton_key(const Cube<T, D>& cube, const T* point) {
    std::uint64_t key = 0, cell[D];
    for (int k = 0; k < D; ++k) cell[k] = cube.cell(point[k], k);
    for (int bit = kBits<D> - 1; bit >= 0; --bit) {
        for (int k = 0; k < D; ++k) key = key << 1 | (cell[k] >> bit & 1);
    }
    return key;
}

struct Keyed {
    std::uint64_t key;
    std::int64_t row;
};

// Sorts by key, equal keys in the order of rows: 11 bits at a time, from the lowest; digits that all
// keys share cost nothing. Returns which of the two buffers holds the result.
Keyed* radix_sort(Keyed* items, Keyed* spare, Index n, int n_bits) {
    constexpr int kDigit = 11;
    constexpr Index kValues = Index(1) << kDigit;
    for (int shift = 0; shift < n_bits; shift += kDigit) {
        Index place[kValues] = {};
        for (Index i = 0; i < n; ++i) ++place[items[i].key >> shift & (kValues - 1)];
        if (place[items[0].key >> shift & (kValues - 1)] == n) continue;
        Index before = 0;
        for (Index value = 0; value < kValues; ++value) {
            const Index count = place[value];
            place[value] = before;
            before += count;
        }
        for (Index i = 0; i < n; ++i) {
            spare[place[items[i].key >> shift & (kValues - 1)]++] = items[i];
        }
        Keyed* const sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

// --- The tree ---------------------------------------------------------------------------------------

// Number, center and sum of squared distances from the center, of points seen so far.
template <int D>
struct Moments {
    double mass, center[D], spread;

    void merge(const Moments& more) {
        const double share = more.mass / (mass + more.mass);
        spread += more.spread;
        for (int k = 0; k < D; ++k) {
            const double shift = more.center[k] - center[k];
            center[k] += share * shift;
            spread += mass * share * shift * shift;
        }
        mass += more.mass;
    }
};

// A cell with points first .. last-1 of the curve. Nodes lie in the order of a walk that opens every
// cell; `skip` is where the walk goes on if this one is not opened (the next node, for a leaf).
template <class T, int D>
struct Node {
    T center[D], mass;
    T spread;  // of the moments, over 2 D
    T reach2;  // (side / angle)^2: a point this far away may take the cell for one point
    std::int32_t first, last, skip;
};

template <class T, int D>
struct Tree {
    Node<T, D>* nodes;  // fewer than 2 n: every cell that is divided has at least two parts
    Index n_nodes;
    T* y[D];            // coordinates along the curve, with room for a whole last group
    Keyed* order;
    double finest_side, inverse_angle;

    // Grows the node of points first .. last-1 and those below it.
    Moments<D> grow(Index first, Index last) {
        const Index own = n_nodes++;
        const std::uint64_t differing = order[first].key ^ order[last - 1].key;
        const int bits = differing ? 64 - __builtin_clzll(differing) : 0;
        const int level = static_cast<int>(ceil_div(bits, D));  // of the smallest cell that holds all
        Moments<D> whole = {};
        if (last - first <= kLeaf || level == 0) {
            for (Index i = first; i < last; ++i) {
                Moments<D> point = {1, {}, 0};
                for (int k = 0; k < D; ++k) point.center[k] = y[k][i];
                whole.merge(point);
            }
        } else {
            for (Index begin = first, end; begin < last; begin = end) {
                end = end_of_part(begin, last, (level - 1) * D);
                whole.merge(grow(begin, end));
            }
        }
        const bool one_place = is_one_place(first, last);
        const double reach = finest_side * static_cast<double>(Index(1) << level) * inverse_angle;
        Node<T, D>& node = nodes[own];
        for (int k = 0; k < D; ++k) {
            node.center[k] = one_place ? y[k][first] : static_cast<T>(whole.center[k]);
        }
        node.mass = static_cast<T>(whole.mass);
        node.spread = one_place ? T(0) : static_cast<T>(whole.spread / (2 * D));
        node.reach2 = one_place ? T(0) : static_cast<T>(reach * reach);
        node.first = static_cast<std::int32_t>(first);
        node.last = static_cast<std::int32_t>(last);
        node.skip = static_cast<std::int32_t>(n_nodes);
        return whole;
    }

    // The end of the points from `begin` on whose keys agree above the lowest `shift` bits.
    Index end_of_part(Index begin, Index last, int shift) const {
        const std::uint64_t part = order[begin].key >> shift;
        Index low = begin, high = last;  // low belongs to the part, high does not
        while (high - low > 1) {
            const Index middle = low + (high - low) / 2;
            (order[middle].key >> shift == part ? low : high) = middle;
        }
        return high;
    }

    // Whether the points first .. last-1 are equal.
    bool is_one_place(Index first, Index last) const {
        if (order[first].key != order[last - 1].key) return false;
        for (int k = 0; k < D; ++k) {
            for (Index i = first + 1; i < last; ++i) {
                if (y[k][i] != y[k][first]) return false;
            }
        }
        return true;
    }
};

// --- The walk ---------------------------------------------------------------------------------------

// Points begin .. begin+W-1 of the curve, one in each lane, and their sums.
template <class T, int D>
struct Group {
    typedef typename Lanes<T>::vector Vector;
    static constexpr Index W = Lanes<T>::width;
    Index begin;
    Vector y[D], number;  // number: 0, 1, 2, ...
    Vector potential, force[D];
    int n_terms;
    double sums[D + 1][W];

    Group(const Tree<T, D>& tree, Index begin) : begin(begin), potential{}, force{}, n_terms(0), sums{} {
        for (int k = 0; k < D; ++k) y[k] = *reinterpret_cast<const Vector*>(tree.y[k] + begin);
        for (int lane = 0; lane < W; ++lane) number[lane] = static_cast<T>(lane);
    }

    // Adds `mass` points in one place.
    template <class Kernel>
    void add_place(const Kernel& kernel, const Vector* gap, Vector r2, Vector mass) {
        const Similarity<T> pair = kernel(r2);
        add(gap, mass * pair.K, mass * pair.G);
    }

    // Adds the points of a cell. To second order, and as if they spread alike in all directions,
    //     sum_j K = mass K + spread L,    L = Laplacian of K = G b,    b = 4 (v + 1)/v q r2 - 2 D,
    // and the force is -(y - center) times its derivative by r2:  dL/dr2 = (v + 1)/v G q (4 q - b).
    template <class Kernel>
    void add_cell(const Kernel& kernel, const Vector* gap, Vector r2, const Node<T, D>& node) {
        r2 = r2 < Format<T>::huge ? r2 : fill<T>(Format<T>::huge);  // 0 times infinity is not a number
        const Similarity<T> pair = kernel(r2);
        const Vector steep = (1 + 1 / kernel.dof) * pair.q;
        const Vector b = 4 * steep * r2 - T(2 * D);
        const Vector bend = steep * (b - 4 * pair.q);
        const Vector K = node.mass * pair.K + node.spread * (pair.G * b);
        add(gap, K, pair.G * (node.mass + node.spread * bend));
    }

    void add(const Vector* gap, Vector K, Vector G) {
        potential += K;
        for (int k = 0; k < D; ++k) force[k] += G * gap[k];
        if (++n_terms == kTerms) settle();
    }

    // Hands the sums in T on to those in double.
    void settle() {
        for (int lane = 0; lane < W; ++lane) {
            sums[0][lane] += potential[lane];
            for (int k = 0; k < D; ++k) sums[1 + k][lane] += force[k][lane];
        }
        potential = Vector{};
        for (int k = 0; k < D; ++k) force[k] = Vector{};
        n_terms = 0;
    }

    // The lanes whose own point is among first .. last-1 of the curve count one point less.
    Vector others(T mass, Index first, Index last) const {
        const T low = static_cast<T>(first - begin), high = static_cast<T>(last - begin);
        return mass - (((number >= low) & (number < high)) ? fill<T>(1) : fill<T>(0));
    }

    template <class Kernel>
    void walk(const Tree<T, D>& tree, const Kernel& kernel) {
        for (Index i = 0; i < tree.n_nodes;) {
            const Node<T, D>& node = tree.nodes[i];
            Vector gap[D];
            const Vector r2 = measure(node.center, gap);
            const bool ours = node.first < begin + W && node.last > begin;  // a point of ours is in it
            if (ours ? node.reach2 == 0 : !any_lane(r2 < node.reach2)) {
                if (ours) {
                    add_place(kernel, gap, r2, others(node.mass, node.first, node.last));
                } else {
                    add_cell(kernel, gap, r2, node);
                }
                i = node.skip;
            } else {
                if (node.skip == i + 1) add_points(tree, kernel, node.first, node.last, ours);
                ++i;
            }
        }
        settle();
    }

    template <class Kernel>
    void add_points(const Tree<T, D>& tree, const Kernel& kernel, Index first, Index last, bool ours) {
        for (Index j = first; j < last; ++j) {
            T point[D];
            for (int k = 0; k < D; ++k) point[k] = tree.y[k][j];
            Vector gap[D];
            const Vector r2 = measure(point, gap);
            add_place(kernel, gap, r2, ours ? others(1, j, j + 1) : fill<T>(1));
        }
    }

    // The squared distances from a place, and where we are as seen from there.
    Vector measure(const T* place, Vector* gap) const {
        Vector r2 = {};
        for (int k = 0; k < D; ++k) {
            gap[k] = y[k] - place[k];
            r2 += gap[k] * gap[k];
        }
        return r2;
    }
};

template <int D, class T, class Kernel>
bool repel(const Map<T>& y, const Kernel& kernel, double angle, Repulsion<T> out, int n_threads) {
    typedef Group<T, D> Walkers;
    const Index n = y.n, n_groups = ceil_div(n, Walkers::W), room = n_groups * Walkers::W;
    if (n == 0) return true;
    Tree<T, D> tree;
    Keyed* keyed = allocate<Keyed>(2 * n);
    T* sorted = allocate<T>(D * room);
    tree.nodes = allocate<Node<T, D>>(2 * n);
    const bool enough = keyed && sorted && tree.nodes;
    if (enough) {
        const Cube<T, D> cube(y);
        parallel(ceil_div(n, Index(4096)), n_threads, [&](Index task, int) {
            for (Index i = task * 4096; i < min_of(n, (task + 1) * 4096); ++i) {
                keyed[i] = {morton_key(cube, y.points + i * D), i};
            }
        });
        tree.order = radix_sort(keyed, keyed + n, n, D * kBits<D>);
        for (int k = 0; k < D; ++k) {
            tree.y[k] = sorted + k * room;
            for (Index i = 0; i < room; ++i) {
                tree.y[k][i] = y.points[tree.order[min_of(i, n - 1)].row * D + k];
            }
        }
        tree.n_nodes = 0;
        tree.finest_side = cube.side / static_cast<double>(Index(1) << kBits<D>);
        tree.inverse_angle = 1 / angle;
        tree.grow(0, n);
    }
    parallel(enough ? ceil_div(n_groups, kGroupsPerTask) : 0, n_threads, [&](Index task, int) {
        for (Index g = task * kGroupsPerTask; g < min_of(n_groups, (task + 1) * kGroupsPerTask); ++g) {
            Walkers group(tree, g * Walkers::W);
            group.walk(tree, kernel);
            for (Index i = group.begin; i < min_of(n, group.begin + Walkers::W); ++i) {
                const Index row = tree.order[i].row, lane = i - group.begin;
                out.potential[row] = group.sums[0][lane];
                for (int k = 0; k < D; ++k) {
                    out.forces[row * D + k] = static_cast<T>(group.sums[1 + k][lane]);
                }
            }
        }
    });
    std::free(keyed), std::free(sorted), std::free(tree.nodes);
    return enough;
}

template <class T, class Kernel>
bool choose_dimension(const Map<T>& y, const Kernel& kernel, double angle, Repulsion<T> out,
                      int n_threads) {
    const auto run = y.d == 1 ? repel<1, T, Kernel> : y.d == 2 ? repel<2, T, Kernel> : repel<3, T, Kernel>;
    return run(y, kernel, angle, out, n_threads);
}

}  // namespace

template <class T>
bool repel_tree(Map<T> y, double dof, double angle, Repulsion<T> out, int n_threads) {
    if (dof == 1) return choose_dimension(y, Cauchy<T>{}, angle, out, n_threads);
    return choose_dimension(y, Student<T>(dof), angle, out, n_threads);
}

template bool repel_tree<float>(Map<float>, double, double, Repulsion<float>, int);
template bool repel_tree<double>(Map<double>, double, double, Repulsion<double>, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
