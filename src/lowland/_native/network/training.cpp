// network_train: steps of Adam. A step is two parallel loops: strips of rows go forward and back, and
// blocks of weights are summed, changed and packed again while they are in the near caches.
#include "network/dense_layers.h"

namespace lowland {
namespace LOWLAND_ISA {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
constexpr double kAloneProducts = 5e5;  // a step of fewer multiplications is not worth a second thread

template <class T>
struct AdamStep {
    T rate;         // divided by 1 - beta1^t
    T root;         // 1 / sqrt(1 - beta2^t)
    T decay_slope;  // 2 decay
};

static inline Lanes<float>::vector root_of(Lanes<float>::vector x) {
#if defined(__AVX2__)
    return reinterpret_cast<Lanes<float>::vector>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
    for (int i = 0; i < Lanes<float>::width; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

static inline Lanes<double>::vector root_of(Lanes<double>::vector x) {
#if defined(__AVX2__)
    return reinterpret_cast<Lanes<double>::vector>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
#else
    for (int i = 0; i < Lanes<double>::width; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

// Changes `used` adjacent weights, at most a panel, by their slopes.
template <class T>
static void change_weights(T* w, T* mean, T* square, const T* slopes, Index used,
                           const AdamStep<T>& step, T decay_slope) {
    typedef typename Lanes<T>::vector Vector;
    typedef typename Lanes<T>::loose Loose;
    constexpr Index lanes = Lanes<T>::width;
    const auto change = [&](Vector& value, Vector& m, Vector& v, Vector g) {
        g += decay_slope * value;
        m = T(kBeta1) * m + T(1 - kBeta1) * g;
        v = T(kBeta2) * v + T(1 - kBeta2) * (g * g);
        value -= step.rate * m / (root_of(v) * step.root + T(kEpsilon));
    };
    Index k = 0;
    for (; k + lanes <= used; k += lanes) {
        Vector value = *reinterpret_cast<const Loose*>(w + k);
        Vector m = *reinterpret_cast<const Loose*>(mean + k);
        Vector v = *reinterpret_cast<const Loose*>(square + k);
        change(value, m, v, *reinterpret_cast<const Loose*>(slopes + k));
        *reinterpret_cast<Loose*>(w + k) = value;
        *reinterpret_cast<Loose*>(mean + k) = m;
        *reinterpret_cast<Loose*>(square + k) = v;
    }
    if (k == used) return;
    Vector value{}, m{}, v{}, g{};
    for (Index c = 0; k + c < used; ++c) {
        value[c] = w[k + c], m[c] = mean[k + c], v[c] = square[k + c], g[c] = slopes[k + c];
    }
    change(value, m, v, g);
    for (Index c = 0; k + c < used; ++c) {
        w[k + c] = value[c], mean[k + c] = m[c], square[k + c] = v[c];
    }
}

// What the threads of a training share.
template <class T>
class Trainer {
   public:
    static constexpr Index W = panel_width<T>;

    Trainer(const NetworkShape& shape, const Training<T>& training, int n_threads)
        : layers_(shape),
          training_(training),
          panels_(layers_, training.batch),
          strip_rows_(strip_rows(training.batch)),
          n_strips_(ceil_div(training.batch, strip_rows_)),
          per_slot_(2 * strip_rows_ * layers_.padded_from(0)) {
        double products = 0;
        for (int l = 1; l <= layers_.n_layers(); ++l) {
            products += 3.0 * static_cast<double>(layers_.width(l - 1) * layers_.width(l));
        }
        products *= static_cast<double>(training.batch);
        n_threads_ = products < kAloneProducts ? 1 : n_threads;
        scratch_ = allocate<T>(n_threads_ * per_slot_);
        strip_errors_ = allocate<double>(n_strips_);
    }
    ~Trainer() { std::free(scratch_), std::free(strip_errors_); }
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    bool enough_memory() const {
        return scratch_ && strip_errors_ && layers_.enough_memory() && panels_.enough_memory();
    }

    void begin() { layers_.pack(training_.weights, n_threads_); }

    // All steps, one after the other.
    void train(double* errors) {
        struct Call {
            Trainer* trainer;
            double* errors;
        } call{this, errors};
        with_crew(
            n_threads_,
            [](Crew& crew, void* context) {
                const Call& call = *static_cast<Call*>(context);
                call.trainer->all_steps(crew, call.errors);
            },
            &call);
    }

   private:
    void all_steps(Crew& crew, double* errors) {
        for (Index begin = 0, k = 0; begin < training_.n_ordered; begin += training_.batch, ++k) {
            const Index n = min_of(training_.batch, training_.n_ordered - begin);
            errors[k] = step(crew, training_.order + begin, n, training_.rates[k],
                             training_.steps_before + k + 1);
        }
    }

    // One step on the given rows; the sum of their errors before it.
    double step(Crew& crew, const Index* rows, Index n, double rate, Index t) {
        panels_.set_rows(n);
        const Index n_strips = ceil_div(n, strip_rows_);
        parallel_in(crew, n_strips, [&](Index strip, int slot) {
            const Index first = strip * strip_rows_;
            strip_errors_[strip] =
                passes(rows + first, first, min_of(strip_rows_, n - first), n, slot);
        });
        double total = 0;
        for (Index strip = 0; strip < n_strips; ++strip) total += strip_errors_[strip];
        const double taken = static_cast<double>(t);
        const AdamStep<T> adam{static_cast<T>(rate / (1 - __builtin_pow(kBeta1, taken))),
                               static_cast<T>(1 / __builtin_sqrt(1 - __builtin_pow(kBeta2, taken))),
                               static_cast<T>(2 * training_.decay)};
        parallel_in(crew, count_blocks(layers_),
                    [&](Index task, int) { change(block_task(layers_, task), adam); });
        return total;
    }

    // About 8 strips in a batch, so that threads end together; the number of threads does not matter.
    static Index strip_rows(Index batch) {
        const Index rows = ceil_div(ceil_div(batch, 8), Index(kRows)) * kRows;
        return min_of(kStripRows, rows);
    }

    // Forward and back for some rows of the batch, which stand in it from `first` on.
    double passes(const Index* rows, Index first, Index used, Index n, int slot) {
        const int L = layers_.n_layers();
        T* h[kMostLayers + 1];
        T* d[kMostLayers + 1];
        T* next = scratch_ + slot * per_slot_;
        for (int l = 0; l <= L; ++l) {
            h[l] = next;
            d[l] = next + strip_rows_ * layers_.padded(l);
            next += 2 * strip_rows_ * layers_.padded(l);
        }
        const Index computed = ceil_div(used, Index(kRows)) * kRows;
        gather(training_.inputs, rows, used, computed, 0, h[0]);
        panels_.keep_values(0, first, h[0], used);
        for (int l = 1; l <= L; ++l) {
            layers_.step_ahead(l, training_.weights, h[l - 1], computed, h[l]);
            if (l < L) panels_.keep_values(l, first, h[l], used);
        }
        const double error = output_slopes(rows, used, computed, n, h[L], d[L]);
        for (int l = L; l >= 1; --l) {
            if (l == training_.code && training_.sparsity > 0) add_sparsity(l, used, n, h[l], d[l]);
            layers_.through_activation(l, h[l], computed, d[l]);
            panels_.keep_slopes(l, first, d[l], used);
            if (l > 1) layers_.step_back(l, d[l], computed, d[l - 1]);
        }
        return error;
    }

    void gather(const T* table, const Index* rows, Index used, Index computed, int l, T* strip) {
        const Index p = layers_.width(l), ld = layers_.padded(l);
        for (Index r = 0; r < computed; ++r) {
            T* out = strip + r * ld;
            const T* row = table + rows[min_of(r, used - 1)] * p;
            for (Index k = 0; k < p; ++k) out[k] = row[k];
            for (Index k = p; k < ld; ++k) out[k] = 0;
        }
    }

    // d = dE/dh_L; returns the sum of squared errors, or of what the tail makes of them.
    double output_slopes(const Index* rows, Index used, Index computed, Index n, const T* h, T* d) {
        const int L = layers_.n_layers();
        const Index q = layers_.width(L), ld = layers_.padded(L);
        const T factor = static_cast<T>(2.0 / (static_cast<double>(n) * static_cast<double>(q)));
        const double tail2 = training_.tail * training_.tail;
        double total = 0;
        for (Index r = 0; r < computed; ++r) {
            const T* target = training_.targets + rows[min_of(r, used - 1)] * q;
            const T* value = h + r * ld;
            T* slope = d + r * ld;
            T sums[8] = {};  // of every eighth column, so that they are one vector
            Index k = 0;
            for (; k + 8 <= q; k += 8) {
                for (int c = 0; c < 8; ++c) {
                    const T error = value[k + c] - target[k + c];
                    slope[k + c] = factor * error;
                    sums[c] += error * error;
                }
            }
            for (int c = 0; k < q; ++k, ++c) {
                const T error = value[k] - target[k];
                slope[k] = factor * error;
                sums[c] += error * error;
            }
            for (k = q; k < ld; ++k) slope[k] = 0;
            double square = 0;
            for (int c = 0; c < 8; ++c) square += static_cast<double>(sums[c]);
            if (tail2 > 0) {
                const T weight = static_cast<T>(1 / (1 + square / tail2));
                for (k = 0; k < q; ++k) slope[k] *= weight;
                square = tail2 * __builtin_log1p(square / tail2);
            }
            if (r < used) total += square;
        }
        return total;
    }

    // d += slope of the mean absolute value.
    void add_sparsity(int l, Index used, Index n, const T* h, T* d) {
        const Index width = layers_.width(l), ld = layers_.padded(l);
        const T size = static_cast<T>(training_.sparsity /
                                      (static_cast<double>(n) * static_cast<double>(width)));
        for (Index r = 0; r < used; ++r) {
            for (Index k = 0; k < width; ++k) {
                const T value = h[r * ld + k];
                d[r * ld + k] += value > 0 ? size : (value < 0 ? -size : T(0));
            }
        }
    }

    void change(BlockTask<T> task, const AdamStep<T>& adam) {
        const int l = task.layer;
        const Index J = layers_.panel(l);
        for (Index j = 0; j < layers_.n_panels(l); ++j) {
            const Index used_j = layers_.used(l, j);
            double totals[W * W] = {};
            T slopes[W * W];
            if (task.panel < 0) {
                add_offset_slopes(layers_, panels_, l, j, totals);
                for (Index e = 0; e < J; ++e) slopes[e] = static_cast<T>(totals[e]);
                change_at(layers_.offsets_at(l) + j * J, slopes, used_j, adam, T(0));
                continue;
            }
            add_block_slopes(layers_, panels_, l, task.panel, j, totals);
            const Index first = task.panel * layers_.panel(l - 1);
            const Index used_i = layers_.used(l - 1, task.panel);
            for (Index e = 0; e < used_i * J; ++e) slopes[e] = static_cast<T>(totals[e]);
            for (Index i = 0; i < used_i; ++i) {
                const Index at = layers_.matrix_at(l) + (first + i) * layers_.width(l) + j * J;
                change_at(at, slopes + i * J, used_j, adam, adam.decay_slope);
            }
            layers_.pack_block(training_.weights, l, task.panel, j);
        }
    }

    void change_at(Index at, const T* slopes, Index used, const AdamStep<T>& adam, T decay) {
        change_weights(training_.weights + at, training_.means + at, training_.squares + at, slopes,
                       used, adam, decay);
    }

    DenseLayers<T> layers_;
    const Training<T>& training_;
    Panels<T> panels_;
    Index strip_rows_, n_strips_, per_slot_;
    int n_threads_;
    T* scratch_;
    double* strip_errors_;
};

template <class T>
bool network_train(const NetworkShape& shape, const Training<T>& training, double* errors,
                   int n_threads) {
    Trainer<T> trainer(shape, training, n_threads);
    if (!trainer.enough_memory()) return false;
    trainer.begin();
    trainer.train(errors);
    return true;
}

template bool network_train<float>(const NetworkShape&, const Training<float>&, double*, int);
template bool network_train<double>(const NetworkShape&, const Training<double>&, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
