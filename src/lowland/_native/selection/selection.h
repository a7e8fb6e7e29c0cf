// Entry points of the kernels that judge single columns, declared once per instruction set.
#pragma once
#include <cstdint>

namespace lowland {

// Columns in rows of length n, each sorted, and the class of every value; psi(m) is the digamma
// function of m = 1 .. n.
struct ClassColumns {
    const double* values;
    const std::int32_t* codes;
    std::int64_t m, n, n_classes;
};

// Pairs (x, y) of m columns x and one y, n each: once in the order of x, once in the order of y.
// y_rank says where a pair of the first order stands in the second.
struct PairColumns {
    const double* x;       // (m, n), sorted
    const double* y_of_x;  // (m, n)
    const std::int32_t* y_rank;
    const double* y;       // (n,), sorted
    const double* x_of_y;  // (m, n)
    std::int64_t m, n;
};

#define LOWLAND_DECLARE_SELECTION(isa)                                                            \
    namespace isa {                                                                               \
    bool class_digammas(ClassColumns columns, std::int64_t k, const double* psi, double* out,     \
                        int n_threads);                                                           \
    bool pair_digammas(PairColumns columns, std::int64_t k, const double* psi, double* out,       \
                       int n_threads);                                                            \
    template <class T>                                                                            \
    bool manhattan_rows(const T* panels, std::int64_t n, const T* rows, std::int64_t m,           \
                        std::int64_t d, double* out, int n_threads);                              \
    }

LOWLAND_DECLARE_SELECTION(baseline)
LOWLAND_DECLARE_SELECTION(avx2)

}  // namespace lowland
