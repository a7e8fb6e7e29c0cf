// The best few of many scored candidates, kept per row in a small buffer.
#pragma once
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

// Scores are larger for nearer points; ties go to the smaller id.
template <class T>
struct Entry {
    T score;
    std::int32_t id;
};

template <class T>
static inline bool better(const Entry<T>& a, const Entry<T>& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

template <class T>
static inline void swap(Entry<T>& a, Entry<T>& b) {
    const Entry<T> c = a;
    a = b;
    b = c;
}

// Puts the `keep` best of n entries first, the worst of them at keep - 1 (quickselect).
template <class T>
static void select_best(Entry<T>* e, Index n, Index keep) {
    Index low = 0, high = n - 1;
    const Index target = keep - 1;
    while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (better(e[middle], e[low])) swap(e[middle], e[low]);
        if (better(e[high], e[low])) swap(e[high], e[low]);
        if (better(e[high], e[middle])) swap(e[high], e[middle]);
        const Entry<T> pivot = e[middle];
        Index i = low, j = high;
        while (i <= j) {
            while (better(e[i], pivot)) ++i;
            while (better(pivot, e[j])) --j;
            if (i <= j) swap(e[i++], e[j--]);
        }
        if (target <= j) {
            high = j;
        } else if (target >= i) {
            low = i;
        } else {
            return;
        }
    }
}

template <class T>
static inline Index count_reaching(const Entry<T>* e, Index n, T score) {
    Index count = 0;
    for (Index i = 0; i < n; ++i) count += e[i].score >= score;
    return count;
}

// A score that at least `keep` of n entries reach, but not many more; guessed from a sample of them,
// in one or two passes without a branch. Returns false if there is none, as among many ties.
template <class T>
static bool guess_threshold(const Entry<T>* e, Index n, Index keep, T* threshold) {
    constexpr Index kSample = 24;
    if (n < 2 * kSample) return false;
    T sample[kSample];  // best first
    for (Index s = 0; s < kSample; ++s) {
        const T score = e[s * n / kSample].score;
        Index at = s;
        for (; at > 0 && sample[at - 1] < score; --at) sample[at] = sample[at - 1];
        sample[at] = score;
    }
    for (Index s = kSample * keep / n; s < kSample; ++s) {
        const Index count = count_reaching(e, n, sample[s]);
        if (count < keep) continue;
        *threshold = sample[s];
        return count - keep <= (n - keep) / 2;
    }
    return false;
}

// Moves e[root] down a heap of n entries whose top is the worst.
template <class T>
static void sift_down(Entry<T>* e, Index root, Index n) {
    for (Index child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && better(e[child], e[child + 1])) ++child;
        if (!better(e[root], e[child])) return;
        swap(e[root], e[child]);
    }
}

// Sorts n entries, best first (heapsort: no worst case, no recursion).
template <class T>
static void sort_best(Entry<T>* e, Index n) {
    for (Index root = n / 2 - 1; root >= 0; --root) sift_down(e, root, n);
    for (Index end = n - 1; end > 0; --end) {
        swap(e[0], e[end]);
        sift_down(e, 0, end);
    }
}

// The threshold of a row that has not been cut yet: passes all finite scores, but not -infinity.
template <class T>
static constexpr T lowest() {
    return sizeof(T) == 4 ? static_cast<T>(-__FLT_MAX__) : static_cast<T>(-__DBL_MAX__);
}

// The buffers of all rows: up to `capacity` entries each, of which the `keep` best always stay.
// A candidate is worth pushing while its score is at least the row's threshold.
template <class T>
struct Best {
    Entry<T>* entries;
    std::int32_t* counts;
    T* thresholds;
    Index capacity, keep;

    void push(Index row, T score, Index id) const {
        Entry<T>* own = entries + row * capacity;
        own[counts[row]++] = {score, static_cast<std::int32_t>(id)};
        if (counts[row] == capacity) thin(row);
    }
    // Makes room in a full buffer: at least the `keep` best stay.
    void thin(Index row) const {
        Entry<T>* own = entries + row * capacity;
        T threshold;
        if (!guess_threshold(own, Index(counts[row]), keep, &threshold)) return cut(row);
        Index left = 0;
        for (Index e = 0; e < counts[row]; ++e) {
            own[left] = own[e];
            left += own[left].score >= threshold;
        }
        counts[row] = static_cast<std::int32_t>(left);
        if (threshold > thresholds[row]) thresholds[row] = threshold;
    }
    // Leaves the `keep` best, the worst of them last.
    void cut(Index row) const {
        Entry<T>* own = entries + row * capacity;
        if (counts[row] < keep) return;
        select_best(own, counts[row], keep);
        counts[row] = static_cast<std::int32_t>(keep);
        thresholds[row] = own[keep - 1].score;
    }
};

}  // namespace LOWLAND_ISA
}  // namespace lowland
