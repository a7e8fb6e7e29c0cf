// Random numbers by counters: a number is a function of a seed and of what it is drawn for, so that no
// draw depends on other draws, nor on the number of threads.
#pragma once
#include "common/isa.h"

namespace lowland {
namespace LOWLAND_ISA {

// The finalizer of splitmix64 (Steele, Lea & Flood 2014): every bit of x has an influence on all bits.
static inline std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// A stream for a row and a slot; its numbers are counted.
struct Counter {
    std::uint64_t key, count = 0;
    Counter(std::uint64_t seed, Index row, Index slot)
        : key(mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(row)) + static_cast<std::uint64_t>(slot))) {}
    // An integer below n < 2^32: the high part of a product, whose bias is below n / 2^32.
    Index below(Index n) {
        const std::uint64_t bits = mixed(key + 0x9e3779b97f4a7c15ull * ++count) >> 32;
        return static_cast<Index>((bits * static_cast<std::uint64_t>(n)) >> 32);
    }
};

}  // namespace LOWLAND_ISA
}  // namespace lowland
