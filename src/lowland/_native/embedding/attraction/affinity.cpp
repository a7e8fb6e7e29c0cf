// calibrate: the width of each row's Gaussian that gives a wanted perplexity.
//
//     p_j = exp(-beta x_j) / S,   S = sum_j exp(-beta x_j),   H = log S + beta E[x],
//     find t = log beta with  H = log_perplexity,
//     dH/dt = -beta^2 Var[x],   d2H/dt2 = -2 beta^2 Var[x] + beta^3 E[(x - E[x])^3].
//
// Why it is fast. Both derivatives come from the sums that H needs anyway, so steps are Halley's
// (error cubed each time), from a start that solves the second-order expansion of H about the
// uniform distribution: three or four passes over a row instead of the thirty of a bisection. The
// exponential is a polynomial on vector lanes, no table and no call.
//
// Why nothing overflows. x_j = d_j^2 - d_min^2 is taken from differences of distances in units of
// the row's largest, so p does not depend on the unit, and the nearest neighbor has exp(0) = 1.

#include "embedding/attraction/affinity.h"
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

typedef Lanes<double>::vector Vector;
typedef std::uint64_t Bits __attribute__((vector_size(kVectorBytes)));  // unsigned: they wrap around
constexpr Index kWidth = Lanes<double>::width;

constexpr double kTolerance = 1e-7;   // of the entropy
constexpr int kMostSteps = 200;       // every other one halves the error or the bracket
constexpr double kFirstReach = 2.0;   // of a step in log beta; doubled each time it is too short
constexpr Index kTaskEntries = 8192;

// Terms of the series of exp on [-log(2)/2, log(2)/2]: relative errors of 6e-9 for results that are
// rounded to float, 2e-16 for double.
template <class T>
constexpr int kTerms = sizeof(T) == 4 ? 7 : 12;

// exp(-y) for y >= 0:  -y = m log 2 + r,  exp(-y) = 2^m exp(r).
template <class T>
inline void exp_of_minus(const Vector& y, Vector& result) {
    constexpr double kLogTwoHigh = 6.93147180369123816490e-01;  // its last 32 bits are zeros
    constexpr double kLogTwoLow = 1.90821492927058770002e-10;
    constexpr double kLogTwoInverse = 1.44269504088896338700;
    constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves m in the last bits
    constexpr double kSmallest = 708.0;            // exp(-708) is still a normal number
    constexpr double kInverseFactorial[] = {
        1.0,           1.0,            1.0 / 2,         1.0 / 6,         1.0 / 24,
        1.0 / 120,     1.0 / 720,      1.0 / 5040,      1.0 / 40320,     1.0 / 362880,
        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
    };
    const Vector shifted = kShift - y * kLogTwoInverse;
    const Vector m = shifted - kShift;
    const Vector r = (-y - m * kLogTwoHigh) - m * kLogTwoLow;
    Vector series = kInverseFactorial[kTerms<T>] - Vector{};
    for (int term = kTerms<T> - 1; term >= 0; --term) series = series * r + kInverseFactorial[term];
    const Bits scaled = reinterpret_cast<Bits>(series) + (reinterpret_cast<Bits>(shifted) << 52);
    result = y < kSmallest ? reinterpret_cast<Vector>(scaled) : Vector{};
}

// One row, in lanes: excess x >= 0, weight 1 for neighbors that exist and 0 for others.
struct Row {
    Vector* excess;
    Vector* present;
    Vector* weights;
    Index n_vectors;
    double count, ties;  // of neighbors, and of those among them as near as the nearest
    double variance;     // of the excess
    double unit;         // distances were multiplied by this

    // Fills the lanes from distances; infinity and NaN are neighbors that do not exist.
    template <class T>
    void read(const T* distances, Index k) {
        const double infinity = __builtin_inf();
        double nearest = infinity, farthest = 0;
        for (Index j = 0; j < k; ++j) {
            const double d = distances[j];
            nearest = d < nearest ? d : nearest;
            farthest = d < infinity && d > farthest ? d : farthest;
        }
        if (!(nearest < infinity)) nearest = 0;
        unit = farthest > 1e-300 ? 1 / farthest : 1e300;
        n_vectors = ceil_div(k, kWidth);
        double* x = reinterpret_cast<double*>(excess);
        double* here = reinterpret_cast<double*>(present);
        const double base = nearest * unit;
        for (Index j = 0; j < k; ++j) {
            const double d = distances[j];
            const bool exists = d < infinity;
            const double beyond = (d - nearest) * unit * (d * unit + base);
            x[j] = exists ? beyond : 0.0;
            here[j] = exists ? 1.0 : 0.0;
        }
        for (Index j = k; j < n_vectors * kWidth; ++j) x[j] = here[j] = 0;
        describe();
    }

    void describe() {
        Vector n = {}, tied = {}, sum = {}, squares = {};
        for (Index v = 0; v < n_vectors; ++v) {
            n += present[v];
            tied += excess[v] > 0.0 ? Vector{} : present[v];
            sum += excess[v];  // 0 where there is no neighbor
            squares += excess[v] * excess[v];
        }
        count = sum_of(n), ties = sum_of(tied);
        const double mean = sum_of(sum) / count;  // of no use, like the variance, if count is 0
        variance = sum_of(squares) / count - mean * mean;
    }

    template <class T>
    void write(double scale, T* probabilities, Index k) const {
        const double* w = reinterpret_cast<const double*>(weights);
        for (Index j = 0; j < k; ++j) probabilities[j] = static_cast<T>(w[j] * scale);
    }

    // Equal weights for all neighbors, or for the nearest only.
    template <class T>
    void write_uniform(bool nearest_only, T* probabilities, Index k) const {
        for (Index v = 0; v < n_vectors; ++v) {
            weights[v] = present[v];
            if (nearest_only) weights[v] = excess[v] > 0.0 ? Vector{} : present[v];
        }
        const double sharers = nearest_only ? ties : count;
        write(sharers > 0 ? 1 / sharers : 0.0, probabilities, k);
    }
};

// The results of one pass over a row about a beta.
struct Spread {
    double total, entropy, slope, curvature;  // the derivatives are by log beta
};

template <class T>
Spread weigh(const Row& row, double beta) {
    Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (Index v = 0; v < row.n_vectors; ++v) {
        const Vector y = beta * row.excess[v];
        Vector w;
        exp_of_minus<T>(y, w);
        w *= row.present[v];
        const Vector wy = w * y, wyy = wy * y;
        row.weights[v] = w;
        s0 += w, s1 += wy, s2 += wyy, s3 += wyy * y;
    }
    const double total = sum_of(s0), mean = sum_of(s1) / total, second = sum_of(s2) / total;
    const double variance = second - mean * mean;
    const double third = sum_of(s3) / total - mean * (3 * second - 2 * mean * mean);
    return {total, __builtin_log(total) + mean, -variance, third - 2 * variance};
}

// Halley's step towards the root of surplus(t), or Newton's where that would go too far.
inline double step_of(double surplus, double slope, double curvature) {
    const double newton = -surplus / slope;
    const double divisor = 1 - 0.5 * surplus * curvature / (slope * slope);
    return divisor > 0.3 ? newton / divisor : newton;
}

// Writes the probabilities of a row and returns its beta, in units of 1 / distance^2.
template <class T>
double calibrate_row(Row& row, double target, T* probabilities, Index k) {
    if (!(target < __builtin_log(row.count) - kTolerance)) {
        row.write_uniform(false, probabilities, k);
        return 0;
    }
    if (target <= __builtin_log(row.ties) + kTolerance) {
        row.write_uniform(true, probabilities, k);
        return __builtin_inf();
    }
    double t = 0.5 * __builtin_log(2 * (__builtin_log(row.count) - target) / row.variance);
    if (!(t > -700 && t < 700)) t = 0;
    double low = -745, high = 709;  // the root lies between; beyond, beta is not a number
    double reach = kFirstReach, previous = __builtin_inf();
    Spread spread = weigh<T>(row, __builtin_exp(t));
    for (int i = 0; i < kMostSteps; ++i) {
        const double surplus = spread.entropy - target, size = surplus < 0 ? -surplus : surplus;
        if (size < kTolerance) break;
        (surplus > 0 ? low : high) = t;
        double next = t + step_of(surplus, spread.slope, spread.curvature);
        const bool slow = size > 0.5 * previous, far = !(next > t - reach && next < t + reach);
        if (slow || far || !(next > low && next < high)) {
            next = surplus > 0 ? t + reach : t - reach;
            reach *= 2;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
        }
        if (next == t) break;
        t = next;
        previous = size;
        spread = weigh<T>(row, __builtin_exp(t));
    }
    row.write(1 / spread.total, probabilities, k);
    return __builtin_exp(t) * row.unit * row.unit;
}

}  // namespace

template <class T>
bool calibrate(const Index* starts, Index n, const T* distances, double log_perplexity,
               T* probabilities, double* betas, int n_threads) {
    Index longest = 0;
    for (Index i = 0; i < n; ++i) {
        const Index k = starts[i + 1] - starts[i];
        longest = k > longest ? k : longest;
    }
    const Index n_vectors = ceil_div(longest, kWidth);
    Index rows_per_task = n > 0 ? n * kTaskEntries / (starts[n] - starts[0] + 1) : 1;
    rows_per_task = rows_per_task < 1 ? 1 : rows_per_task;
    const Index n_tasks = ceil_div(n, rows_per_task);
    const Index slots = min_of(n_threads, n_tasks);
    Vector* lanes = allocate<Vector>(3 * n_vectors * slots);
    if (lanes == nullptr) return false;
    parallel(n_tasks, n_threads, [&](Index task, int slot) {
        Row row = {};
        row.excess = lanes + 3 * n_vectors * slot;
        row.present = row.excess + n_vectors;
        row.weights = row.present + n_vectors;
        const Index begin = task * rows_per_task, end = min_of(n, begin + rows_per_task);
        for (Index i = begin; i < end; ++i) {
            const Index k = starts[i + 1] - starts[i];
            row.read(distances + starts[i], k);
            betas[i] = calibrate_row(row, log_perplexity, probabilities + starts[i], k);
        }
    });
    std::free(lanes);
    return true;
}

template bool calibrate<float>(const Index*, Index, const float*, double, float*, double*, int);
template bool calibrate<double>(const Index*, Index, const double*, double, double*, double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
