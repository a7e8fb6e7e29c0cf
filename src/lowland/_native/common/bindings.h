// What the files that bind kernels to Python share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace lowland {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline bool has_avx2() {
#ifdef LOWLAND_HAS_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

// Whether "auto" means AVX2: the processor decides, unless the environment does. It is read at the
// first kernel call, under the GIL, and never again, because results of one process should not mix
// two sets. An initializer that throws runs again at the next call.
inline bool auto_is_avx2() {
    static const bool avx2 = [] {
        const char* given = std::getenv("LOWLAND_INSTRUCTION_SET");
        const std::string name = given ? given : "";
        if (name.empty() || name == "auto") return has_avx2();
        if (name == "baseline") return false;
        if (name == "avx2" && has_avx2()) return true;
        throw std::invalid_argument(
            "LOWLAND_INSTRUCTION_SET is not one of instruction_sets() or 'auto'");
    }();
    return avx2;
}

inline bool wants_avx2(const std::string& isa) {
    if (isa == "auto") return auto_is_avx2();
    if (isa == "baseline") return false;
    if (isa == "avx2" && has_avx2()) return true;
    throw std::invalid_argument("isa='" + isa + "' is not one of instruction_sets() or 'auto'");
}

inline void check(bool fine, const char* message) {
    if (!fine) throw std::invalid_argument(message);
}

inline void check_threads(int threads) { check(threads >= 1, "threads must be at least 1"); }

template <class Array>
std::int64_t size(const Array& array, int axis) {
    return static_cast<std::int64_t>(array.shape(axis));
}

}  // namespace lowland

// Runs a kernel of the chosen instruction set without the GIL; false means it found no memory.
#ifdef LOWLAND_HAS_AVX2
#define LOWLAND_RUN(isa, call)                                       \
    ([&] {                                                           \
        const bool avx2 = lowland::wants_avx2(isa);                  \
        nanobind::gil_scoped_release release;                        \
        return avx2 ? lowland::avx2::call : lowland::baseline::call; \
    }())
#else
#define LOWLAND_RUN(isa, call)                \
    ([&] {                                    \
        lowland::wants_avx2(isa);             \
        nanobind::gil_scoped_release release; \
        return lowland::baseline::call;       \
    }())
#endif
