// Python's door to projections on a surface; indices and sizes that do not fit are refused here.
#include <new>

#include "common/bindings.h"
#include "topographic/surface.h"

namespace lowland {
namespace {

using Ids = Rows<std::int64_t>;
using Numbers = Vector<std::int64_t>;

template <class Array>
void check_below(const Array& values, std::int64_t count, std::int64_t bound, const char* message) {
    const std::int64_t* value = values.data();
    for (std::int64_t i = 0; i < count; ++i) check(value[i] >= 0 && value[i] < bound, message);
}

void check_stars(const Ids& simplices, const Numbers& starts, const Numbers& members) {
    const std::int64_t m = size(starts, 0) - 1, corners = size(simplices, 1);
    const std::int64_t *start = starts.data(), *member = members.data();
    check(start[0] == 0 && start[m] == size(members, 0),
          "project_on_surface: starts must lead from 0 to the number of members");
    for (std::int64_t c = 0; c < m; ++c) {
        check(start[c] <= start[c + 1] && start[c + 1] <= start[m],
              "project_on_surface: starts must not decrease");
        for (std::int64_t i = start[c]; i < start[c + 1]; ++i) {
            const std::int64_t* corner = simplices.data() + member[i] * corners;
            std::int64_t same = 0;
            for (std::int64_t k = 0; k < corners; ++k) same += corner[k] == c;
            check(same == 1, "project_on_surface: a member must have its node as a corner once");
        }
    }
}

template <class T>
void project_on_surface(Rows<T> x, Ids near, Rows<double> nodes, Ids simplices, Numbers starts,
                        Numbers members, OutVector<std::int64_t> found, Out<double> weights,
                        OutVector<double> squares, int threads, const std::string& isa) {
    const std::int64_t n = size(x, 0), p = size(x, 1), m = size(nodes, 0);
    const std::int64_t corners = size(simplices, 1), k = size(near, 1);
    check_threads(threads);
    check(p >= 1 && size(nodes, 1) == p, "project_on_surface: nodes must have the columns of x");
    check(corners >= 2 && corners <= 4, "project_on_surface: simplices have 2 to 4 corners");
    check(size(near, 0) == n && k >= 1, "project_on_surface: near must have a row for each of x");
    check(size(starts, 0) == m + 1, "project_on_surface: starts must have one entry more than nodes");
    check(size(found, 0) == n && size(squares, 0) == n && size(weights, 0) == n &&
              size(weights, 1) == corners,
          "project_on_surface: the results must have a row for each of x");
    check_below(near, n * k, m, "project_on_surface: near must be nodes");
    check_below(simplices, size(simplices, 0) * corners, m, "project_on_surface: corners must be nodes");
    check_below(members, size(members, 0), size(simplices, 0),
                "project_on_surface: members must be simplices");
    check_stars(simplices, starts, members);
    const Surface surface{nodes.data(), m, p, simplices.data(), corners - 1, starts.data(),
                          members.data()};
    const Projection<T> task{x.data(),    n, near.data(), k, found.data(), weights.data(),
                             squares.data()};
    if (!LOWLAND_RUN(isa, project_on_surface(surface, task, threads))) throw std::bad_alloc();
}

template <class T>
void bind_for(nb::module_& m) {
    using namespace nb::literals;
    m.def("project_on_surface", &project_on_surface<T>, "x"_a.noconvert(), "near"_a.noconvert(),
          "nodes"_a.noconvert(), "simplices"_a.noconvert(), "starts"_a.noconvert(),
          "members"_a.noconvert(), "found"_a.noconvert(), "weights"_a.noconvert(),
          "squares"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

}  // namespace

void bind_surface(nb::module_& m) {
    bind_for<float>(m);
    bind_for<double>(m);
}

}  // namespace lowland
