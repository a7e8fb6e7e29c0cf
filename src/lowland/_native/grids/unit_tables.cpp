// sum_by_unit: sums over the rows of each unit. squares_to_units: distances to a list of units.
#include "grids/squares.h"
#include "grids/units.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

constexpr Index kUnitsPerTask = 4, kRowsPerTask = 256;

}  // namespace

// Rows are sorted by their unit first; each unit is summed by one task, in the order of its rows.
template <class T>
bool sum_by_unit(const T* x, Index n, Index p, const std::int32_t* nearest, Index m, bool missing,
                 double* counts, double* sums, int n_threads) {
    Index* starts = allocate<Index>(m + 2);
    Index* order = allocate<Index>(n);
    const bool enough = starts && order;
    if (enough) {
        for (Index j = 0; j < m + 2; ++j) starts[j] = 0;
        for (Index i = 0; i < n; ++i) ++starts[nearest[i] + 2];
        for (Index j = 1; j < m + 2; ++j) starts[j] += starts[j - 1];
        for (Index i = 0; i < n; ++i) order[starts[nearest[i] + 1]++] = i;
    }
    const Index wide = missing ? p : 1;
    parallel(enough ? ceil_div(m, kUnitsPerTask) : 0, n_threads, [&](Index task, int) {
        const Index end = min_of(m, (task + 1) * kUnitsPerTask);
        for (Index j = task * kUnitsPerTask; j < end; ++j) {
            double* sum = sums + j * p;
            double* count = counts + j * wide;
            for (Index k = 0; k < p; ++k) sum[k] = 0;
            for (Index k = 0; k < wide; ++k) count[k] = 0;
            for (Index e = starts[j]; e < starts[j + 1]; ++e) {
                const T* row = x + order[e] * p;
                if (missing) {
                    for (Index k = 0; k < p; ++k) {
                        const bool known = row[k] == row[k];
                        sum[k] += known ? static_cast<double>(row[k]) : 0.0;
                        count[k] += known ? 1.0 : 0.0;
                    }
                } else {
                    for (Index k = 0; k < p; ++k) sum[k] += static_cast<double>(row[k]);
                }
            }
            if (!missing) count[0] = static_cast<double>(starts[j + 1] - starts[j]);
        }
    });
    std::free(starts), std::free(order);
    return enough;
}

// squares(i, e) = |x_i - w_u|^2, u = lists(nearest_i, e); infinity where u is -1.
template <class T>
bool squares_to_units(UnitTable<T> table, const std::int32_t* nearest, const std::int32_t* lists,
                      Index width, double* squares, int n_threads) {
    parallel(ceil_div(table.n, kRowsPerTask), n_threads, [&](Index task, int) {
        const Index end = min_of(table.n, (task + 1) * kRowsPerTask);
        for (Index i = task * kRowsPerTask; i < end; ++i) {
            const std::int32_t* list = lists + nearest[i] * width;
            for (Index e = 0; e < width; ++e) {
                squares[i * width + e] = list[e] < 0 ? __builtin_inf()
                                                     : known_square(table.x + i * table.p,
                                                                    table.units + list[e] * table.p, table.p);
            }
        }
    });
    return true;
}

template bool sum_by_unit<float>(const float*, Index, Index, const std::int32_t*, Index, bool, double*,
                                 double*, int);
template bool sum_by_unit<double>(const double*, Index, Index, const std::int32_t*, Index, bool, double*,
                                  double*, int);
template bool squares_to_units<float>(UnitTable<float>, const std::int32_t*, const std::int32_t*, Index,
                                      double*, int);
template bool squares_to_units<double>(UnitTable<double>, const std::int32_t*, const std::int32_t*, Index,
                                       double*, int);

}  // namespace LOWLAND_ISA
}  // namespace lowland
