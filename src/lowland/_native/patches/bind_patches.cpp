// Python's door to the patch kernels; lists that do not fit together are refused here.
#include <limits>
#include <new>

#include "common/bindings.h"
#include "patches/patches.h"

namespace lowland {
namespace {

using Starts = Vector<std::int64_t>;

Patches checked(const Rows<std::int32_t>& members, const Starts& starts, const Starts& entries) {
    const std::int64_t n = size(starts, 0) - 1, places = size(members, 0) * size(members, 1);
    check(n >= 0 && n < std::numeric_limits<std::int32_t>::max(), "patches: starts must be (n + 1,)");
    check(size(members, 1) >= 1, "patches: a patch needs members");
    check(starts(0) == 0 && starts(n) == size(entries, 0), "patches: starts and entries do not fit");
    for (std::int64_t i = 0; i < places; ++i) {
        check(members.data()[i] >= -1 && members.data()[i] < n, "patches: a member is not below n");
    }
    for (std::int64_t v = 0; v < n; ++v) {
        check(starts(v) <= starts(v + 1), "patches: starts must not fall");
        for (std::int64_t e = starts(v); e < starts(v + 1); ++e) {
            check(entries(e) >= 0 && entries(e) < places && members.data()[entries(e)] == v,
                  "patches: entries are not the places of the members");
        }
    }
    return {members.data(), starts.data(), entries.data(), size(members, 1), n};
}

void patch_counts(Rows<std::int32_t> members, Starts starts, Starts entries,
                  OutVector<std::int64_t> counts, int threads, const std::string& isa) {
    check_threads(threads);
    const Patches patches = checked(members, starts, entries);
    check(size(counts, 0) == patches.n, "patch_counts: counts must be (n,)");
    if (!LOWLAND_RUN(isa, patch_counts(patches, counts.data(), threads))) throw std::bad_alloc();
}

template <class T>
void patch_sums(Rows<std::int32_t> members, Starts starts, Starts entries,
                nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu> factors, T identity,
                T sign, Starts out_starts, OutVector<std::int32_t> columns, OutVector<T> values,
                int threads, const std::string& isa) {
    check_threads(threads);
    const Patches patches = checked(members, starts, entries);
    check(size(factors, 0) == size(members, 0) && size(factors, 1) == patches.size,
          "patch_sums: factors must be (patches, size, width)");
    check(size(out_starts, 0) == patches.n + 1 && out_starts(0) == 0 &&
              out_starts(patches.n) == size(columns, 0) && size(columns, 0) == size(values, 0),
          "patch_sums: out_starts, columns and values do not fit together");
    for (std::int64_t v = 0; v < patches.n; ++v) {
        check(out_starts(v) <= out_starts(v + 1), "patch_sums: out_starts must not fall");
    }
    const PatchFactors<T> given{factors.data(), size(factors, 2), identity, sign};
    if (!LOWLAND_RUN(isa, patch_sums(patches, given, out_starts.data(), columns.data(), values.data(),
                                     threads))) {
        throw std::bad_alloc();
    }
}

template <class T>
void bind(nb::module_& m) {
    using namespace nb::literals;
    m.def("patch_sums", &patch_sums<T>, "members"_a.noconvert(), "starts"_a.noconvert(),
          "entries"_a.noconvert(), "factors"_a.noconvert(), "identity"_a, "sign"_a,
          "out_starts"_a.noconvert(), "columns"_a.noconvert(), "values"_a.noconvert(), "threads"_a,
          "isa"_a = "auto");
}

}  // namespace

void bind_patches(nb::module_& m) {
    using namespace nb::literals;
    m.def("patch_counts", &patch_counts, "members"_a.noconvert(), "starts"_a.noconvert(),
          "entries"_a.noconvert(), "counts"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    bind<float>(m);
    bind<double>(m);
}

}  // namespace lowland
