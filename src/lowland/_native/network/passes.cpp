// network_forward and network_backward: whole tables, strip by strip.
#include "network/dense_layers.h"

namespace lowland {
namespace LOWLAND_ISA {

// Copies rows of width p into a strip of padded rows; rows up to a multiple of kRows are 0.
template <class T>
static Index fill_strip(const T* rows, Index p, Index used, Index ld, T* strip) {
    const Index computed = ceil_div(used, Index(kRows)) * kRows;
    for (Index r = 0; r < computed; ++r) {
        for (Index k = 0; k < ld; ++k) strip[r * ld + k] = r < used && k < p ? rows[r * p + k] : T(0);
    }
    return computed;
}

template <class T>
static void take_rows(const T* strip, Index ld, Index used, Index p, T* rows) {
    for (Index r = 0; r < used; ++r) {
        for (Index k = 0; k < p; ++k) rows[r * p + k] = strip[r * ld + k];
    }
}

template <class T>
bool network_forward(const NetworkShape& shape, const T* weights, const T* x, Index n,
                     int first_kept, T* values, int n_threads) {
    DenseLayers<T> layers(shape);
    const int L = layers.n_layers();
    const Index n_strips = ceil_div(n, kStripRows), per_slot = kStripRows * layers.padded_from(0);
    T* scratch = allocate<T>(min_of(n_threads, n_strips) * per_slot);
    const bool enough = scratch && layers.enough_memory();
    if (enough) layers.pack(weights, n_threads);
    parallel(enough ? n_strips : 0, n_threads, [&](Index strip, int slot) {
        const Index first = strip * kStripRows, used = min_of(kStripRows, n - first);
        T* below = scratch + slot * per_slot;
        const Index rows = fill_strip(x + first * shape.sizes[0], shape.sizes[0], used,
                                      layers.padded(0), below);
        T* kept = values;
        for (int l = 1; l <= L; ++l) {
            T* here = below + kStripRows * layers.padded(l - 1);
            layers.step_ahead(l, weights, below, rows, here);
            if (l >= first_kept) {
                take_rows(here, layers.padded(l), used, layers.width(l),
                          kept + first * layers.width(l));
                kept += n * layers.width(l);
            }
            below = here;
        }
    });
    std::free(scratch);
    return enough;
}

template <class T>
bool network_backward(const NetworkShape& shape, const T* weights, const T* x, Index n,
                      const T* values, const T* slope, T* gradient, T* slope_x, int n_threads) {
    DenseLayers<T> layers(shape);
    const int L = layers.n_layers();
    const Index chunk = min_of(kChunkRows, n);
    Panels<T> panels(layers, chunk);
    Index n_weights = 0, widest = 0;
    for (int l = 0; l <= L; ++l) {
        widest = widest < layers.padded(l) ? layers.padded(l) : widest;
        if (l) n_weights = layers.offsets_at(l) + layers.width(l);
    }
    const Index per_slot = 3 * kStripRows * widest;
    T* scratch = allocate<T>(min_of(n_threads, ceil_div(n, kStripRows)) * per_slot);
    double* totals = static_cast<double*>(std::calloc(static_cast<std::size_t>(n_weights),
                                                      sizeof(double)));
    const bool enough = scratch && totals && layers.enough_memory() && panels.enough_memory();
    if (enough) layers.pack(weights, n_threads);
    for (Index begin = 0; enough && begin < n; begin += chunk) {
        const Index in_chunk = min_of(chunk, n - begin);
        panels.set_rows(in_chunk);
        parallel(ceil_div(in_chunk, kStripRows), n_threads, [&](Index strip, int slot) {
            const Index at = strip * kStripRows, used = min_of(kStripRows, in_chunk - at);
            const Index first = begin + at;
            T* h = scratch + slot * per_slot;
            T* here = h + kStripRows * widest;
            T* below = here + kStripRows * widest;
            const T* of_layer = values + n * 0;
            for (int l = 1; l < L; ++l) of_layer += n * layers.width(l);
            Index rows = fill_strip(slope + first * layers.width(L), layers.width(L), used,
                                    layers.padded(L), here);
            for (int l = L; l >= 1; --l) {
                fill_strip(of_layer + first * layers.width(l), layers.width(l), used,
                           layers.padded(l), h);
                if (l < L) panels.keep_values(l, at, h, used);
                layers.through_activation(l, h, rows, here);
                panels.keep_slopes(l, at, here, used);
                if (l > 1 || slope_x) layers.step_back(l, here, rows, below);
                T* const spare = here;
                here = below;
                below = spare;
                if (l > 1) of_layer -= n * layers.width(l - 1);
            }
            if (slope_x) {
                take_rows(here, layers.padded(0), used, layers.width(0),
                          slope_x + first * layers.width(0));
            }
            fill_strip(x + first * layers.width(0), layers.width(0), used, layers.padded(0), h);
            panels.keep_values(0, at, h, used);
        });
        parallel(count_blocks(layers), n_threads, [&](Index number, int) {
            constexpr Index W = panel_width<T>;
            const BlockTask<T> task = block_task(layers, number);
            const int l = task.layer;
            const Index J = layers.panel(l);
            for (Index j = 0; j < layers.n_panels(l); ++j) {
                const Index used_j = layers.used(l, j);
                double block[W * W] = {};
                if (task.panel < 0) {
                    add_offset_slopes(layers, panels, l, j, block);
                    double* into = totals + layers.offsets_at(l) + j * J;
                    for (Index c = 0; c < used_j; ++c) into[c] += block[c];
                    continue;
                }
                add_block_slopes(layers, panels, l, task.panel, j, block);
                const Index first = task.panel * layers.panel(l - 1);
                for (Index i = 0; i < layers.used(l - 1, task.panel); ++i) {
                    double* into =
                        totals + layers.matrix_at(l) + (first + i) * layers.width(l) + j * J;
                    for (Index c = 0; c < used_j; ++c) into[c] += block[i * J + c];
                }
            }
        });
    }
    for (Index e = 0; enough && e < n_weights; ++e) gradient[e] = static_cast<T>(totals[e]);
    std::free(scratch), std::free(totals);
    return enough;
}

#define LOWLAND_INSTANTIATE_PASSES(T)                                                             \
    template bool network_forward<T>(const NetworkShape&, const T*, const T*, Index, int, T*, int); \
    template bool network_backward<T>(const NetworkShape&, const T*, const T*, Index, const T*,   \
                                      const T*, T*, T*, int);

LOWLAND_INSTANTIATE_PASSES(float)
LOWLAND_INSTANTIATE_PASSES(double)

}  // namespace LOWLAND_ISA
}  // namespace lowland
