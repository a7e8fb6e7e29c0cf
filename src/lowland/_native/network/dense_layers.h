// The parts of both passes: packed weights, a strip of rows, a block of weights.
//
// Rows are independent of one another, so a strip of them goes forward and back through all layers
// while its values stay in the near caches. Slopes by weights are then sums over rows, a block of
// panel_width x panel_width weights at a time. Both use the register tiles of products/tiles.h. A
// value depends neither on the other rows nor on the number of threads.
#pragma once
#include "network/activations.h"
#include "products/tiles.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr Index kStripRows = 32;   // at most, that share one trip through the layers
constexpr Index kChunkRows = 2048;  // at most, whose values are kept for the sums over rows

// Units of a layer in panels of at most panel_width, which hold about the same number of vectors
// (4 = 2 + 2, not 3 + 1): a lone vector would starve the FMA units.
template <class T>
static inline Index panels_of(Index width) {
    return ceil_div(width, panel_width<T>);
}

template <class T>
static inline Index panel_of(Index width) {
    constexpr Index lanes = Lanes<T>::width;
    return ceil_div(ceil_div(width, lanes), panels_of<T>(width)) * lanes;
}

template <class T>
static inline Index padded_to_panels(Index width) {
    return panels_of<T>(width) * panel_of<T>(width);
}

// out (rows x width) += a (rows x depth) times packed columns, rows a multiple of kRows. Panel j of
// the columns lies at packed + j * stride, k-major.
template <class T>
static void add_product(const T* a, Index a_stride, Index rows, Index depth, const T* packed,
                        Index stride, Index width, T* out, Index out_stride) {
    constexpr Index lanes = Lanes<T>::width;
    const Index W = panel_of<T>(width);
    for (Index begin = 0; begin < depth; begin += kDepth) {
        const Index terms = min_of(kDepth, depth - begin);
        for (Index j = 0; j * W < width; ++j) {
            const Index vectors = ceil_div(min_of(W, width - j * W), lanes);
            for (Index r = 0; r < rows; r += kRows) {
                tile_of(vectors, terms, All(), a + r * a_stride + begin, a_stride, 1,
                        packed + j * stride + begin * W, W, out + r * out_stride + j * W, out_stride);
            }
        }
    }
}

// The layers of a network with packed weights. Layer l = 1 ... L leads from width(l-1) to width(l).
template <class T>
class DenseLayers {
   public:
    explicit DenseLayers(const NetworkShape& shape) : shape_(shape) {
        Index at = 0, packed = 0;
        for (int l = 1; l <= n_layers(); ++l) {
            matrix_at_[l] = at;
            if (owns_matrix(l)) {
                at += width(l - 1) * width(l);
                packed += 2 * padded(l - 1) * padded(l);
            }
            offsets_at_[l] = at;
            at += width(l);
        }
        memory_ = static_cast<T*>(std::calloc(static_cast<std::size_t>(packed + 16), sizeof(T)));
        T* next = memory_;
        for (int l = 1; memory_ && l <= n_layers(); ++l) {
            const int twin = n_layers() + 1 - l;
            if (owns_matrix(l)) {
                ahead_[l] = next;
                back_[l] = next + padded(l - 1) * padded(l);
                next += 2 * padded(l - 1) * padded(l);
            } else {  // W of a tied layer is the transpose of its twin's
                ahead_[l] = back_[twin];
                back_[l] = ahead_[twin];
            }
        }
    }
    ~DenseLayers() { std::free(memory_); }
    DenseLayers(const DenseLayers&) = delete;
    DenseLayers& operator=(const DenseLayers&) = delete;

    bool enough_memory() const { return memory_ != nullptr; }
    int n_layers() const { return shape_.n_layers; }
    Index width(int l) const { return shape_.sizes[l]; }
    Index padded(int l) const { return padded_to_panels<T>(width(l)); }
    Index panel(int l) const { return panel_of<T>(width(l)); }
    Index n_panels(int l) const { return panels_of<T>(width(l)); }
    Index used(int l, Index number) const {  // units in a panel
        const Index left = width(l) - number * panel(l);
        return left < 0 ? 0 : min_of(panel(l), left);
    }
    Activation activation(int l) const { return static_cast<Activation>(shape_.activations[l - 1]); }
    bool owns_matrix(int l) const { return !shape_.tied || 2 * (l - 1) < n_layers(); }
    int twin(int l) const { return n_layers() + 1 - l; }  // its W is the transpose, if tied
    bool has_twin(int l) const { return shape_.tied && twin(l) != l; }
    Index matrix_at(int l) const { return matrix_at_[l]; }
    Index offsets_at(int l) const { return offsets_at_[l]; }

    // Sum of the padded widths of layers first ... L.
    Index padded_from(int first) const {
        Index sum = 0;
        for (int l = first; l <= n_layers(); ++l) sum += padded(l);
        return sum;
    }

    // Packs the block of panel i of the inputs and panel j of the outputs of layer l: columns of W for
    // the way ahead, rows of W for the way back.
    void pack_block(const T* weights, int l, Index i, Index j) {
        const Index I = panel(l - 1), J = panel(l), used_i = used(l - 1, i), used_j = used(l, j);
        const T* from = weights + matrix_at(l) + i * I * width(l) + j * J;
        T* columns = ahead_[l] + j * J * padded(l - 1) + i * I * J;
        T* rows = back_[l] + i * I * padded(l) + j * J * I;
        for (Index r = 0; r < used_i; ++r) {
            for (Index c = 0; c < used_j; ++c) columns[r * J + c] = from[r * width(l) + c];
        }
        for (Index c = 0; c < used_j; ++c) {
            for (Index r = 0; r < used_i; ++r) rows[c * I + r] = columns[r * J + c];
        }
    }

    void pack(const T* weights, int n_threads) {
        for (int l = 1; l <= n_layers(); ++l) {
            if (!owns_matrix(l)) continue;
            parallel(n_panels(l - 1), n_threads, [&](Index i, int) {
                for (Index j = 0; j < n_panels(l); ++j) pack_block(weights, l, i, j);
            });
        }
    }

    // out = s(below W_l + b_l) for a number of rows that is a multiple of kRows.
    void step_ahead(int l, const T* weights, const T* below, Index rows, T* out) const {
        typedef typename Lanes<T>::vector Vector;
        const Index ld = padded(l);
        const T* offsets = weights + offsets_at(l);
        for (Index r = 0; r < rows; ++r) {
            T* row = out + r * ld;
            for (Index j = 0; j < ld; ++j) row[j] = j < width(l) ? offsets[j] : T(0);
        }
        add_product(below, padded(l - 1), rows, width(l - 1), ahead_[l],
                    panel(l) * padded(l - 1), width(l), out, ld);
        if (activation(l) == Activation::linear) return;
        for (Index e = 0; e < rows * ld; e += Lanes<T>::width) {
            Vector& v = *reinterpret_cast<Vector*>(out + e);
            v = activated<T>(v, activation(l));
        }
    }

    // slope = dE/dh_l becomes dE/d(h_{l-1} W_l + b_l).
    void through_activation(int l, const T* h, Index rows, T* slope) const {
        typedef typename Lanes<T>::vector Vector;
        if (activation(l) == Activation::linear) return;
        for (Index e = 0; e < rows * padded(l); e += Lanes<T>::width) {
            *reinterpret_cast<Vector*>(slope + e) *=
                slope_at<T>(*reinterpret_cast<const Vector*>(h + e), activation(l));
        }
    }

    // out = dE/dh_{l-1} from the slope behind the activation.
    void step_back(int l, const T* slope, Index rows, T* out) const {
        for (Index e = 0; e < rows * padded(l - 1); ++e) out[e] = 0;
        add_product(slope, padded(l), rows, width(l), back_[l], panel(l - 1) * padded(l),
                    width(l - 1), out, padded(l - 1));
    }

   private:
    const NetworkShape& shape_;
    T* memory_ = nullptr;
    T* ahead_[kMostLayers + 1] = {};
    T* back_[kMostLayers + 1] = {};
    Index matrix_at_[kMostLayers + 1] = {};
    Index offsets_at_[kMostLayers + 1] = {};
};

// Values and slopes of a chunk of rows in panels: panel_width columns of all rows together, for the
// sums over rows.
template <class T>
class Panels {
   public:
    Panels(const DenseLayers<T>& layers, Index most_rows) : layers_(layers) {
        Index numbers = 0;
        for (int l = 0; l <= layers.n_layers(); ++l) {
            at_[l] = numbers;
            numbers += layers.padded(l) * most_rows;
        }
        values_ = allocate<T>(numbers);
        slopes_ = allocate<T>(numbers);
    }
    ~Panels() { std::free(values_), std::free(slopes_); }
    Panels(const Panels&) = delete;
    Panels& operator=(const Panels&) = delete;

    bool enough_memory() const { return values_ && slopes_; }
    void set_rows(Index rows) { rows_ = rows; }
    Index rows() const { return rows_; }
    const T* values(int l, Index number) const { return panel(values_, l, number); }
    const T* slopes(int l, Index number) const { return panel(slopes_, l, number); }
    void keep_values(int l, Index first, const T* strip, Index rows) {
        keep(values_ + at_[l], l, first, strip, rows);
    }
    void keep_slopes(int l, Index first, const T* strip, Index rows) {
        keep(slopes_ + at_[l], l, first, strip, rows);
    }

   private:
    const T* panel(const T* all, int l, Index number) const {
        return all + at_[l] + number * rows_ * layers_.panel(l);
    }

    void keep(T* into, int l, Index first, const T* strip, Index rows) const {
        const Index ld = layers_.padded(l), W = layers_.panel(l);
        for (Index panel = 0; panel * W < ld; ++panel) {
            T* out = into + (panel * rows_ + first) * W;
            for (Index r = 0; r < rows; ++r) {
                const T* row = strip + r * ld + panel * W;
                for (Index c = 0; c < W; ++c) out[r * W + c] = row[c];
            }
        }
    }

    const DenseLayers<T>& layers_;
    T* values_;
    T* slopes_;
    Index at_[kMostLayers + 1] = {};
    Index rows_ = 0;
};

// total (used_a x J, by rows) += sum over rows of a(row, i) b(row, j), a and b panels of I and J
// columns: in T within kDepth rows, then in double.
template <class T>
static void add_sum_over_rows(const T* a, Index I, Index used_a, const T* b, Index J, Index used_b,
                              Index rows, double* total) {
    constexpr Index W = panel_width<T>;
    alignas(kVectorBytes) T sum[W * W];
    const Index vectors = ceil_div(used_b, Index(Lanes<T>::width));
    for (Index begin = 0; begin < rows; begin += kDepth) {
        const Index terms = min_of(kDepth, rows - begin);
        for (Index e = 0; e < I * J; ++e) sum[e] = 0;
        for (Index i = 0; i < used_a; i += kRows) {
            tile_of(vectors, terms, All(), a + begin * I + i, 1, I, b + begin * J, J, sum + i * J, J);
        }
        for (Index e = 0; e < used_a * J; ++e) total[e] += static_cast<double>(sum[e]);
    }
}

// total (panel of inputs x panel of outputs) += dE/dW of layer l in the block of panels i and j.
template <class T>
static void add_block_slopes(const DenseLayers<T>& layers, const Panels<T>& panels, int l, Index i,
                             Index j, double* total) {
    const Index I = layers.panel(l - 1), J = layers.panel(l), rows = panels.rows();
    const Index used_i = layers.used(l - 1, i), used_j = layers.used(l, j);
    add_sum_over_rows(panels.values(l - 1, i), I, used_i, panels.slopes(l, j), J, used_j, rows,
                      total);
    if (layers.has_twin(l)) {
        const int twin = layers.twin(l);
        add_sum_over_rows(panels.slopes(twin, i), I, used_i, panels.values(twin - 1, j), J, used_j,
                          rows, total);
    }
}

// total (panel of outputs) += dE/db of layer l in panel j.
template <class T>
static void add_offset_slopes(const DenseLayers<T>& layers, const Panels<T>& panels, int l, Index j,
                              double* total) {
    const Index W = layers.panel(l);
    const T* slopes = panels.slopes(l, j);
    for (Index begin = 0; begin < panels.rows(); begin += kDepth) {
        const Index end = min_of(panels.rows(), begin + kDepth);
        alignas(kVectorBytes) T sum[panel_width<T>] = {};
        for (Index r = begin; r < end; ++r) {
            for (Index c = 0; c < W; ++c) sum[c] += slopes[r * W + c];
        }
        for (Index c = 0; c < W; ++c) total[c] += static_cast<double>(sum[c]);
    }
}

// Blocks of weights as tasks: for each layer with a matrix the panels of its inputs, and for each
// layer its offsets.
template <class T>
struct BlockTask {
    int layer;
    Index panel;  // of the inputs; -1: the offsets
};

template <class T>
static Index count_blocks(const DenseLayers<T>& layers) {
    Index n = layers.n_layers();
    for (int l = 1; l <= layers.n_layers(); ++l) {
        if (layers.owns_matrix(l)) n += layers.n_panels(l - 1);
    }
    return n;
}

template <class T>
static BlockTask<T> block_task(const DenseLayers<T>& layers, Index task) {
    for (int l = 1; l <= layers.n_layers(); ++l) {
        const Index n = layers.owns_matrix(l) ? layers.n_panels(l - 1) : 0;
        if (task < n) return BlockTask<T>{l, task};
        task -= n;
    }
    return BlockTask<T>{static_cast<int>(task) + 1, -1};
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
