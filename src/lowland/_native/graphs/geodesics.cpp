// shortest_paths: distances in a graph from many sources, 32 at a time.
//
// Why it is fast. The distances from 32 sources to a vertex are adjacent in memory, so that an edge is
// relaxed for all of them by a few vector instructions. A queue would need another order for every
// source. Instead the vertices are swept forth and back in the order of distance from the first
// source, and only vertices whose distances have changed relax their edges. Near sources have nearly
// the same order, so that each vertex is visited about three times.
//
// Why the result is exact and always has the same bits. Rounded addition is monotone and edges are not
// negative, so every algorithm that relaxes edges until nothing changes ends at the same numbers: the
// least left-to-right rounded sum over all walks from the source. The order of the vertices, the other
// sources and the threads have no influence.

#include "graphs/geodesics.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kLanes = kPathLanes;
constexpr Index kMostBatches = 4;   // batches of sources that share one order of the vertices
constexpr int kMostSweeps = 64;     // neighbor graphs take about ten

// What one thread needs.
template <class T>
struct Scratch {
    T* lanes;                // n x 32 distances of a batch
    T* single;               // n distances of one source
    std::int32_t* order;     // the vertices in the order they are swept in
    std::int32_t* heap;      // 4-ary, least distance first
    std::int32_t* position;  // of a vertex in the heap, or one of the marks below
    unsigned char* news;     // whether a distance of a vertex has changed since it last relaxed its edges

    bool acquire(Index n) {
        lanes = allocate<T>(n * kLanes);
        single = allocate<T>(n);
        order = allocate<std::int32_t>(n);
        heap = allocate<std::int32_t>(n);
        position = allocate<std::int32_t>(n);
        news = allocate<unsigned char>(n);
        return lanes && single && order && heap && position && news;
    }
    void release() {
        std::free(lanes), std::free(single), std::free(order);
        std::free(heap), std::free(position), std::free(news);
    }
};

constexpr std::int32_t kUnseen = -1;
constexpr std::int32_t kSettled = -2;

// Moves vertex v from place i of the heap up to the place of its key.
template <class T>
void sift_up(const Scratch<T>& s, Index i, std::int32_t v) {
    const T key = s.single[v];
    while (i > 0) {
        const Index parent = (i - 1) / 4;
        if (!(key < s.single[s.heap[parent]])) break;
        s.heap[i] = s.heap[parent];
        s.position[s.heap[i]] = static_cast<std::int32_t>(i);
        i = parent;
    }
    s.heap[i] = v;
    s.position[v] = static_cast<std::int32_t>(i);
}

// Removes the nearest vertex from a heap of `size` vertices.
template <class T>
std::int32_t pop(const Scratch<T>& s, Index size) {
    const std::int32_t nearest = s.heap[0], last = s.heap[size - 1];
    const T key = s.single[last];
    Index i = 0;
    for (Index child; (child = 4 * i + 1) < size - 1;) {
        const Index end = min_of(child + 4, size - 1);
        Index least = child;
        for (Index c = child + 1; c < end; ++c) {
            if (s.single[s.heap[c]] < s.single[s.heap[least]]) least = c;
        }
        if (!(s.single[s.heap[least]] < key)) break;
        s.heap[i] = s.heap[least];
        s.position[s.heap[i]] = static_cast<std::int32_t>(i);
        i = least;
    }
    s.heap[i] = last;
    s.position[last] = static_cast<std::int32_t>(i);
    s.position[nearest] = kSettled;
    return nearest;
}

// Dijkstra from one root over vertices not yet settled; appends them to the order, returns its length.
template <class T>
Index settle(const EdgeLists<T>& graph, const Scratch<T>& s, std::int32_t root, Index length) {
    Index size = 1;
    s.single[root] = 0;
    sift_up(s, 0, root);
    while (size > 0) {
        const std::int32_t v = pop(s, size--);
        s.order[length++] = v;
        for (Index e = graph.starts[v]; e < graph.starts[v + 1]; ++e) {
            const std::int32_t u = graph.columns[e];
            const T through = s.single[v] + graph.weights[e];
            if (s.position[u] == kSettled || !(through < s.single[u])) continue;
            s.single[u] = through;
            sift_up(s, s.position[u] == kUnseen ? size++ : s.position[u], u);
        }
    }
    return length;
}

template <class T>
void forget(const Scratch<T>& s, Index n) {
    for (Index v = 0; v < n; ++v) s.position[v] = kUnseen;
    for (Index v = 0; v < n; ++v) s.single[v] = T(__builtin_inff());
}

// The vertices that the sources reach, in order of distance from the first source that reaches them.
template <class T>
Index find_order(const EdgeLists<T>& graph, const Scratch<T>& s, const std::int32_t* sources,
                 Index n_sources) {
    forget(s, graph.n);
    Index length = 0;
    for (Index i = 0; i < n_sources; ++i) {
        if (s.position[sources[i]] == kUnseen) length = settle(graph, s, sources[i], length);
    }
    return length;
}

// Relaxes the edges of vertex v in all lanes.
template <class T>
void tell_neighbors(const EdgeLists<T>& graph, const Scratch<T>& s, std::int32_t v) {
    typedef typename Lanes<T>::vector Vector;
    constexpr int kVectors = kLanes / Lanes<T>::width;
    Vector own[kVectors];
    for (int k = 0; k < kVectors; ++k) own[k] = reinterpret_cast<Vector*>(s.lanes + v * kLanes)[k];
    for (Index e = graph.starts[v]; e < graph.starts[v + 1]; ++e) {
        const std::int32_t u = graph.columns[e];
        Vector* other = reinterpret_cast<Vector*>(s.lanes + u * kLanes);
        const Vector weight = graph.weights[e] - Vector{};
        auto nearer = own[0] + weight < other[0];
        other[0] = nearer ? own[0] + weight : other[0];
        for (int k = 1; k < kVectors; ++k) {
            const Vector through = own[k] + weight;
            const auto less = through < other[k];
            other[k] = less ? through : other[k];
            nearer |= less;
        }
        s.news[u] |= any_lane(nearer);
    }
}

// Distances from at most 32 sources by sweeps; false if they do not converge within kMostSweeps.
template <class T>
bool sweep(const EdgeLists<T>& graph, const Scratch<T>& s, Index length, const std::int32_t* sources,
           Index n_sources) {
    for (Index i = 0; i < graph.n * kLanes; ++i) s.lanes[i] = T(__builtin_inff());
    for (Index v = 0; v < graph.n; ++v) s.news[v] = 0;
    for (Index l = 0; l < n_sources; ++l) {
        s.lanes[sources[l] * kLanes + l] = 0;
        s.news[sources[l]] = 1;
    }
    for (int turn = 0; turn < kMostSweeps; ++turn) {
        bool quiet = true;
        for (Index i = 0; i < length; ++i) {
            const std::int32_t v = s.order[turn % 2 ? length - 1 - i : i];
            if (!s.news[v]) continue;
            s.news[v] = 0;
            quiet = false;
            tell_neighbors(graph, s, v);
        }
        if (quiet) return true;
    }
    return false;
}

// Turns lanes into rows, 16 columns at a time so that rows are written by cache lines.
template <class T>
void write_rows(const Scratch<T>& s, const PathRequest<T>& request, Index n, Index first, Index n_sources) {
    constexpr Index kColumns = 16;
    for (Index begin = 0; begin < n; begin += kColumns) {
        const Index width = min_of(kColumns, n - begin);
        const T* from[kColumns];
        for (Index j = 0; j < width; ++j) from[j] = s.lanes + request.place[begin + j] * kLanes;
        for (Index l = 0; l < n_sources; ++l) {
            T* row = request.out + request.rows[first + l] * n + begin;
            for (Index j = 0; j < width; ++j) row[j] = from[j][l];
        }
    }
}

// Dijkstra's algorithm from one source after another, for graphs that need too many sweeps.
template <class T>
void write_singly(const EdgeLists<T>& graph, const Scratch<T>& s, const PathRequest<T>& request,
                  Index first, Index n_sources) {
    for (Index i = first; i < first + n_sources; ++i) {
        forget(s, graph.n);
        settle(graph, s, request.sources[i], 0);
        T* row = request.out + request.rows[i] * graph.n;
        for (Index j = 0; j < graph.n; ++j) row[j] = s.single[request.place[j]];
    }
}

}  // namespace

template <class T>
bool shortest_paths(EdgeLists<T> graph, PathRequest<T> request, int n_threads) {
    const Index n_batches = ceil_div(request.n_sources, kLanes);
    Index batches = min_of(kMostBatches, n_batches / (4 * Index(n_threads)));
    batches = batches < 1 ? 1 : batches;
    const Index per_task = batches * kLanes, n_tasks = ceil_div(request.n_sources, per_task);
    const int slots = static_cast<int>(min_of(n_threads, n_tasks));
    auto* scratch = static_cast<Scratch<T>*>(std::calloc(slots + 1, sizeof(Scratch<T>)));
    bool enough = scratch != nullptr;
    for (int slot = 0; enough && slot < slots; ++slot) enough = scratch[slot].acquire(graph.n);

    parallel(enough ? n_tasks : 0, n_threads, [&](Index task, int slot) {
        const Scratch<T>& s = scratch[slot];
        const Index begin = task * per_task, end = min_of(request.n_sources, begin + per_task);
        Index length = find_order(graph, s, request.sources + begin, end - begin);
        for (Index first = begin; first < end; first += kLanes) {
            const Index n_sources = min_of(kLanes, end - first);
            if (sweep(graph, s, length, request.sources + first, n_sources)) {
                write_rows(s, request, graph.n, first, n_sources);
            } else {
                write_singly(graph, s, request, begin, end - begin);
                return;
            }
        }
    });

    for (int slot = 0; scratch && slot < slots; ++slot) scratch[slot].release();
    std::free(scratch);
    return enough;
}

template bool shortest_paths<float>(EdgeLists<float>, PathRequest<float>, int);
template bool shortest_paths<double>(EdgeLists<double>, PathRequest<double>, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
