// Python's door to the kernels: shapes and strides in, the right instruction set chosen, GIL let go.
#include "common/bindings.h"
#include "products/products.h"
#include "common/threads.h"

namespace nb = nanobind;

namespace lowland {
void bind_affinity(nb::module_& m);
void bind_covariance(nb::module_& m);
void bind_embedding(nb::module_& m);
void bind_fuzzy(nb::module_& m);
void bind_gaussian_field(nb::module_& m);
void bind_network(nb::module_& m);
void bind_geodesics(nb::module_& m);
void bind_gtm(nb::module_& m);
void bind_kernel_tiles(nb::module_& m);
void bind_knn(nb::module_& m);
void bind_local_stress(nb::module_& m);
void bind_mean_cosines(nb::module_& m);
void bind_pair_maps(nb::module_& m);
void bind_patches(nb::module_& m);
void bind_polyline(nb::module_& m);
void bind_ppca(nb::module_& m);
void bind_repulsion(nb::module_& m);
void bind_ranks(nb::module_& m);
void bind_rank_visu(nb::module_& m);
void bind_sculpting(nb::module_& m);
void bind_som_steps(nb::module_& m);
void bind_selection(nb::module_& m);
void bind_stress(nb::module_& m);
void bind_surface(nb::module_& m);
void bind_torus_energy(nb::module_& m);
void bind_unit_sums(nb::module_& m);
void bind_units(nb::module_& m);
}

namespace {

using namespace lowland;

template <class T>
bool all_finite(nb::ndarray<const T, nb::c_contig, nb::device::cpu> x, int threads,
                const std::string& isa) {
    check_threads(threads);
    const auto n = static_cast<std::int64_t>(x.size());
    return LOWLAND_RUN(isa, all_finite(x.data(), n, threads));
}

template <class T>
void scatter_matrix(Matrix<T> x, Vector<T> shift, nb::ndarray<double, nb::ndim<1>, nb::c_contig> sums,
             Out<double> out, int threads, const std::string& isa) {
    const std::int64_t n = x.shape(0), p = x.shape(1);
    check_threads(threads);
    check(p == 1 || x.stride(1) == 1, "scatter_matrix: the rows of x must be contiguous");
    check(shift.shape(0) == x.shape(1) && sums.shape(0) == x.shape(1),
          "scatter_matrix: shift and sums must be (p,)");
    check(out.shape(0) == x.shape(1) && out.shape(1) == x.shape(1), "scatter_matrix: out must be (p, p)");
    if (!LOWLAND_RUN(isa, scatter_matrix(x.data(), n, p, x.stride(0), shift.data(), sums.data(), out.data(),
                                  threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
lowland::Operand<T> operand(const Matrix<T>& x, const Matrix<T>& shift) {
    check(shift.shape(0) == x.shape(0) && shift.shape(1) == x.shape(1),
          "inner: a shift must be broadcast to the shape of its matrix");
    return {x.data(), x.stride(0), x.stride(1), shift.data(), shift.stride(0), shift.stride(1)};
}

template <class T>
void inner(Matrix<T> a, Matrix<T> shift_a, Matrix<T> b, Matrix<T> shift_b, bool symmetric,
           Out<double> out, int threads, const std::string& isa) {
    check_threads(threads);
    check(!symmetric || a.shape(1) == b.shape(1), "inner: symmetric takes the same operand twice");
    check(a.shape(0) == b.shape(0), "inner: a and b must have the same number of rows");
    check(out.shape(0) == a.shape(1) && out.shape(1) == b.shape(1), "inner: out has a wrong shape");
    const auto left = operand<T>(a, shift_a), right = operand<T>(b, shift_b);
    const std::int64_t m = a.shape(1), n = b.shape(1), depth = a.shape(0);
    if (!LOWLAND_RUN(isa, inner(left, m, right, n, depth, symmetric, out.data(), threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void project(Matrix<T> x, Vector<T> shift, nb::ndarray<const T, nb::ndim<2>, nb::c_contig> v, Out<T> out,
             int threads, const std::string& isa) {
    const std::int64_t n = x.shape(0), p = x.shape(1), q = v.shape(1);
    check_threads(threads);
    check(p == 1 || x.stride(1) == 1, "project: the rows of x must be contiguous");
    check(static_cast<std::int64_t>(shift.shape(0)) == p && static_cast<std::int64_t>(v.shape(0)) == p,
          "project: shift and v must have as many rows as x has columns");
    check(out.shape(0) == x.shape(0) && out.shape(1) == v.shape(1), "project: out has a wrong shape");
    if (!LOWLAND_RUN(isa, project(x.data(), n, p, x.stride(0), shift.data(), v.data(), q, out.data(),
                                  threads))) {
        throw std::bad_alloc();
    }
}

template <class T, class I>
void sparse_times(Vector<I> starts, Vector<I> columns, Vector<T> values,
                  nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> v, Vector<T> offset,
                  Out<T> out, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = out.shape(0), q = out.shape(1), stored = values.shape(0);
    check(static_cast<std::int64_t>(starts.shape(0)) == n + 1, "sparse_times: starts must be (n + 1,)");
    check(v.shape(1) == out.shape(1) && offset.shape(0) == out.shape(1),
          "sparse_times: v, offset and out must have as many columns");
    check(columns.shape(0) == values.shape(0) && starts(0) >= 0 && starts(n) <= stored,
          "sparse_times: starts, columns and values do not fit together");
    LOWLAND_RUN(isa, sparse_times(starts.data(), columns.data(), values.data(), n, v.data(), q,
                                  offset.data(), out.data(), threads));
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    using namespace nb::literals;
    m.def("sparse_times", &sparse_times<T, I>, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "values"_a.noconvert(), "v"_a.noconvert(), "offset"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
}

template <class T>
void bind_products(nb::module_& m) {
    using namespace nb::literals;
    m.def("all_finite", &all_finite<T>, "x"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("scatter_matrix", &scatter_matrix<T>, "x"_a.noconvert(), "shift"_a.noconvert(), "sums"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("inner", &inner<T>, "a"_a.noconvert(), "shift_a"_a.noconvert(), "b"_a.noconvert(),
          "shift_b"_a.noconvert(), "symmetric"_a, "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("project", &project<T>, "x"_a.noconvert(), "shift"_a.noconvert(), "v"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a, "isa"_a = "auto");
}

// For the tests of the pool: counts the leaves of a tree of nested parallel loops.
std::int64_t count_nested(std::int64_t width, int depth, int threads) {
    struct Level {
        std::int64_t width;
        int depth, threads;
        std::int64_t leaves;
        static void run(void* context, std::int64_t, int) {
            auto* level = static_cast<Level*>(context);
            std::int64_t leaves = 1;
            if (level->depth > 1) {
                Level below{level->width, level->depth - 1, level->threads, 0};
                lowland::parallel_for(below.width, below.threads, run, &below);
                leaves = below.leaves;
            }
            __atomic_add_fetch(&level->leaves, leaves, __ATOMIC_RELAXED);
        }
    };
    nb::gil_scoped_release release;
    Level top{width, depth, threads, 0};
    lowland::parallel_for(width, threads, Level::run, &top);
    return top.leaves;
}

}  // namespace

NB_MODULE(kernels, m) {
    m.def("instruction_sets", [] {
        nb::list sets;
        sets.append("baseline");
        if (has_avx2()) sets.append("avx2");
        return sets;
    });
    m.def("instruction_set", [] { return std::string(auto_is_avx2() ? "avx2" : "baseline"); });
    m.def("count_nested", &count_nested, nb::arg("width"), nb::arg("depth"), nb::arg("threads"));
    lowland::bind_affinity(m);
    lowland::bind_embedding(m);
    lowland::bind_covariance(m);
    lowland::bind_fuzzy(m);
    lowland::bind_gaussian_field(m);
    lowland::bind_network(m);
    lowland::bind_geodesics(m);
    lowland::bind_gtm(m);
    lowland::bind_kernel_tiles(m);
    lowland::bind_knn(m);
    lowland::bind_local_stress(m);
    lowland::bind_mean_cosines(m);
    lowland::bind_pair_maps(m);
    lowland::bind_patches(m);
    lowland::bind_polyline(m);
    lowland::bind_ppca(m);
    lowland::bind_repulsion(m);
    lowland::bind_ranks(m);
    lowland::bind_rank_visu(m);
    lowland::bind_sculpting(m);
    lowland::bind_selection(m);
    lowland::bind_som_steps(m);
    lowland::bind_stress(m);
    lowland::bind_surface(m);
    lowland::bind_torus_energy(m);
    lowland::bind_unit_sums(m);
    lowland::bind_units(m);
    bind_products<float>(m);
    bind_products<double>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
}
