// mean_cosines: a Dijkstra search per vertex that ends after k others, Floyd's algorithm among them,
// and the law of cosines.
//
// A vertex is the work of one task, so that the number of threads does not change a bit. What a search
// has touched is forgotten after it; the memory of a thread is that of the whole graph, once.
#include "unfolding/mean_cosines.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kVerticesPerTask = 16;
constexpr std::int32_t kUnseen = -1;   // not reached yet
constexpr std::int32_t kWaiting = -2;  // in the heap; a settled vertex has its number, from 0

// What one thread needs.
struct Search {
    double* distance;      // from the center, of the vertices that are reached
    std::int32_t* state;   // kUnseen, kWaiting or a number
    std::int32_t* heap;    // binary, nearest first, ties by vertex number; a vertex may occur twice
    double* keys;          // their distances when they were pushed
    std::int32_t* seen;    // vertices that are reached
    double* among;         // (k + 1) x (k + 1) distances among the settled vertices

    bool acquire(Index n, Index n_edges, Index k) {
        distance = allocate<double>(n);
        state = allocate<std::int32_t>(n);
        heap = allocate<std::int32_t>(n_edges + 1);
        keys = allocate<double>(n_edges + 1);
        seen = allocate<std::int32_t>(n);
        among = allocate<double>((k + 1) * (k + 1));
        if (!(distance && state && heap && keys && seen && among)) return false;
        for (Index v = 0; v < n; ++v) state[v] = kUnseen;
        return true;
    }
    void release() {
        std::free(distance), std::free(state), std::free(heap);
        std::free(keys), std::free(seen), std::free(among);
    }
    bool before(double key, std::int32_t v, Index place) const {
        return key < keys[place] || (key == keys[place] && v < heap[place]);
    }
};

void push(const Search& s, Index size, double key, std::int32_t v) {
    Index i = size;
    for (; i > 0 && s.before(key, v, (i - 1) / 2); i = (i - 1) / 2) {
        s.keys[i] = s.keys[(i - 1) / 2];
        s.heap[i] = s.heap[(i - 1) / 2];
    }
    s.keys[i] = key;
    s.heap[i] = v;
}

// Removes the first entry of a heap of `size` entries.
void drop_first(const Search& s, Index size) {
    const double key = s.keys[size - 1];
    const std::int32_t v = s.heap[size - 1];
    Index i = 0;
    for (Index child; (child = 2 * i + 1) < size - 1;) {
        if (child + 1 < size - 1 && s.before(s.keys[child + 1], s.heap[child + 1], child)) ++child;
        if (s.before(key, v, child)) break;
        s.keys[i] = s.keys[child];
        s.heap[i] = s.heap[child];
        i = child;
    }
    s.keys[i] = key;
    s.heap[i] = v;
}

// Settles the center and the k vertices nearest to it; their numbers in `state`, themselves in `near`.
// Returns how many there are, and in n_seen how many are reached.
Index settle(const EdgeLists<double>& graph, const Search& s, std::int32_t center, Index k,
             std::int32_t* near, Index& n_seen) {
    Index size = 1, settled = 0;
    s.distance[center] = 0;
    s.state[center] = kWaiting;
    s.seen[0] = center;
    n_seen = 1;
    push(s, 0, 0, center);
    while (size > 0 && settled <= k) {
        const std::int32_t v = s.heap[0];
        drop_first(s, size--);
        if (s.state[v] >= 0) continue;  // an entry from before a shorter path was found
        s.state[v] = static_cast<std::int32_t>(settled);
        near[settled++] = v;
        for (Index e = graph.starts[v]; e < graph.starts[v + 1]; ++e) {
            const std::int32_t u = graph.columns[e];
            const double through = s.distance[v] + graph.weights[e];
            if (s.state[u] >= 0 || (s.state[u] == kWaiting && !(through < s.distance[u]))) continue;
            if (s.state[u] == kUnseen) s.seen[n_seen++] = u;
            s.state[u] = kWaiting;
            s.distance[u] = through;
            push(s, size++, through, u);
        }
    }
    return settled;
}

// Lengths of the shortest paths among the settled vertices, by Floyd's algorithm.
void connect(const EdgeLists<double>& graph, const Search& s, const std::int32_t* near, Index count) {
    double* d = s.among;
    for (Index e = 0; e < count * count; ++e) d[e] = __builtin_inf();
    for (Index i = 0; i < count; ++i) {
        d[i * count + i] = 0;
        for (Index e = graph.starts[near[i]]; e < graph.starts[near[i] + 1]; ++e) {
            const std::int32_t j = s.state[graph.columns[e]];
            if (j >= 0 && graph.weights[e] < d[i * count + j]) d[i * count + j] = graph.weights[e];
        }
    }
    for (Index m = 0; m < count; ++m) {
        const double* through = d + m * count;
        for (Index i = 0; i < count; ++i) {
            const double to = d[i * count + m];
            double* row = d + i * count;
            for (Index j = 0; j < count; ++j) {
                const double path = to + through[j];
                row[j] = path < row[j] ? path : row[j];
            }
        }
    }
}

// The cosine of the angle between sides a and b of a triangle whose third side is c. This form of
// (a^2 + b^2 - c^2) / 2ab does not square anything, and a - c is at most b.
double cosine(double a, double b, double c) {
    const double larger = a < b ? b : a, smaller = a < b ? a : b;
    const double found =
        0.5 * (smaller / larger) + ((larger - c) / smaller) * (0.5 * (1 + c / larger));
    return found > 1 ? 1 : found < -1 ? -1 : found;
}

// The mean cosine of the settled vertices around number 0; a pair of a vertex with itself counts 1.
double mean_cosine(const Search& s, Index count) {
    if (count < 2) return 0;
    double sum = 0;
    for (Index j = 1; j < count; ++j) {
        sum += 0.5;
        for (Index l = 1; l < j; ++l) {
            sum += cosine(s.among[j], s.among[l], s.among[j * count + l]);
        }
    }
    return 2 * sum / (static_cast<double>(count - 1) * static_cast<double>(count - 1));
}

}  // namespace

bool mean_cosines(EdgeLists<double> graph, Index k, double* out, int n_threads) {
    const Index n_tasks = ceil_div(graph.n, kVerticesPerTask);
    const int slots = static_cast<int>(min_of(n_threads, n_tasks));
    auto* searches = static_cast<Search*>(std::calloc(slots + 1, sizeof(Search)));
    std::int32_t* near = allocate<std::int32_t>((slots + 1) * (k + 1));
    const Index n_edges = graph.n ? graph.starts[graph.n] - graph.starts[0] : 0;
    bool enough = searches && near;
    for (int slot = 0; enough && slot < slots; ++slot) {
        enough = searches[slot].acquire(graph.n, n_edges, k);
    }
    parallel(enough ? n_tasks : 0, n_threads, [&](Index task, int slot) {
        const Search& s = searches[slot];
        std::int32_t* own = near + slot * (k + 1);
        const Index end = min_of(graph.n, (task + 1) * kVerticesPerTask);
        for (Index v = task * kVerticesPerTask; v < end; ++v) {
            Index n_seen;
            const Index count = settle(graph, s, static_cast<std::int32_t>(v), k, own, n_seen);
            connect(graph, s, own, count);
            out[v] = mean_cosine(s, count);
            for (Index i = 0; i < n_seen; ++i) s.state[s.seen[i]] = kUnseen;
        }
    });
    for (int slot = 0; searches && slot < slots; ++slot) searches[slot].release();
    std::free(searches), std::free(near);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
