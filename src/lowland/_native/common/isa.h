// What a kernel file needs to be compiled once per instruction set.
//
// Each set gets its own namespace. Kernel files must not use the standard library's templates: the
// linker would keep one copy of an inline function for all sets, perhaps the one with AVX2 in it.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstdlib>

#include "common/threads.h"

#ifndef LOWLAND_ISA
#define LOWLAND_ISA baseline
#endif

namespace lowland {
namespace LOWLAND_ISA {

using Index = std::int64_t;

// A SIMD vector of T, spelled with the vector extension of GCC and Clang: arithmetic operators work
// on it, and it becomes one AVX2 register or two of SSE or NEON. `loose` may lie at any address.
constexpr int kVectorBytes = 32;

template <class T>
struct Lanes {
    static constexpr int width = kVectorBytes / sizeof(T);
    typedef T vector __attribute__((vector_size(kVectorBytes)));
    typedef T loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// Whether a lane of the comparison is true.
template <class Mask>
static inline bool any_lane(const Mask& mask) {
#if defined(__AVX2__)
    return _mm256_movemask_epi8(reinterpret_cast<__m256i>(mask)) != 0;
#else
    typedef std::int64_t Words __attribute__((vector_size(kVectorBytes)));
    const Words words = reinterpret_cast<Words>(mask);
    return ((words[0] | words[1]) | (words[2] | words[3])) != 0;
#endif
}

// The sum of all lanes, by halves: three shuffles instead of seven.
static inline float sum_of(Lanes<float>::vector v) {
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
}

static inline double sum_of(Lanes<double>::vector v) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
    return v[0] + v[1];
}

// parallel_for over a lambda body(task, slot).
template <class Body>
static inline void parallel(Index n_tasks, int n_threads, const Body& body) {
    parallel_for(
        n_tasks, n_threads,
        [](void* context, std::int64_t task, int slot) {
            (*static_cast<const Body*>(context))(task, slot);
        },
        const_cast<Body*>(&body));
}

// crew_for over a lambda body(task, slot).
template <class Body>
static inline void parallel_in(Crew& crew, Index n_tasks, const Body& body) {
    crew_for(
        crew, n_tasks,
        [](void* context, std::int64_t task, int slot) {
            (*static_cast<const Body*>(context))(task, slot);
        },
        const_cast<Body*>(&body));
}

// Memory for n numbers at a cache line, to be freed with std::free; nullptr when there is none.
template <class T>
static T* allocate(Index n) {
    const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
    return static_cast<T*>(std::aligned_alloc(64, bytes ? bytes : 64));
}

static inline Index min_of(Index a, Index b) { return a < b ? a : b; }
static inline Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

}  // namespace LOWLAND_ISA
}  // namespace lowland
