// Python's door to manifold sculpting; lists, partners and numbers that do not fit are refused here.
#include <cmath>
#include <new>

#include "common/bindings.h"
#include "unfolding/sculpting.h"

namespace lowland {
namespace {

using Numbers = Vector<double>;
using Starts = Vector<std::int64_t>;
using Ids = Vector<std::int32_t>;

// Lists of n rows among `most` others.
NeighborLists lists_of(const Starts& starts, const Ids& ends, std::int64_t most) {
    const std::int64_t n = size(starts, 0) - 1, n_edges = size(ends, 0);
    check(n >= 0 && starts(0) == 0 && starts(n) == n_edges, "sculpting: starts do not match ends");
    bool fine = true;
    for (std::int64_t i = 0; i < n; ++i) fine &= starts(i) <= starts(i + 1);
    for (std::int64_t e = 0; e < n_edges; ++e) fine &= ends(e) >= 0 && ends(e) < most;
    check(fine, "sculpting: starts must ascend, and neighbors must be rows");
    return {starts.data(), ends.data(), n};
}

void check_partners(const Ids& partner, std::int64_t n_edges, std::int64_t n) {
    check(size(partner, 0) == n_edges, "sculpting: there must be one partner per neighbor");
    bool fine = true;
    for (std::int64_t e = 0; e < n_edges; ++e) fine &= partner(e) >= -1 && partner(e) < n;
    check(fine, "sculpting: a partner is not a row");
}

KeptTerms terms_of(const Starts& starts, const Ids& ends, const Ids& partner, const Rows<double>& sums,
                   const Rows<double>& kept, double width, double scale, std::int64_t n) {
    const NeighborLists lists = lists_of(starts, ends, n);
    const std::int64_t n_edges = size(ends, 0);
    check_partners(partner, n_edges, n);
    check(size(sums, 0) == 3 && size(sums, 1) == n_edges, "sculpting: sums must be (3, n_edges)");
    check(size(kept, 0) == 2 && size(kept, 1) == n_edges, "sculpting: kept must be (2, n_edges)");
    check(width > 0 && std::isfinite(width), "sculpting: width must be positive");
    check(scale >= 0 && scale <= 1, "sculpting: scale must be from 0 to 1");
    const double *s = sums.data(), *k = kept.data();
    return {lists, partner.data(), s, s + n_edges, s + 2 * n_edges, k, k + n_edges, width, scale * scale};
}

// Numbers of neighbors that have a partner, for each of n rows.
void check_edges(const Starts& starts, const Starts& edges, std::int64_t n, const KeptTerms& kept) {
    const std::int64_t count = size(edges, 0), n_edges = kept.lists.starts[kept.lists.n];
    check(size(starts, 0) == n + 1 && starts(0) == 0 && starts(n) == count,
          "sculpt_pass: the starts of the roles do not match their edges");
    bool fine = true;
    for (std::int64_t i = 0; i < n; ++i) fine &= starts(i) <= starts(i + 1);
    for (std::int64_t r = 0; r < count; ++r) {
        fine &= edges(r) >= 0 && edges(r) < n_edges && kept.partner[edges(r)] >= 0;
    }
    check(fine, "sculpt_pass: an angle of the roles is not one of the lists");
}

Roles roles_of(const Starts& partner_starts, const Starts& partner_edges, const Starts& corner_starts,
               const Starts& corner_edges, const Ids& rows, std::int64_t n, const KeptTerms& kept) {
    check_edges(partner_starts, partner_edges, n, kept);
    check_edges(corner_starts, corner_edges, n, kept);
    bool fine = size(rows, 0) == kept.lists.starts[kept.lists.n];
    for (std::int64_t e = 0; fine && e < size(rows, 0); ++e) fine = rows(e) >= 0 && rows(e) < n;
    check(fine, "sculpt_pass: rows must have the row of each neighbor");
    return {partner_starts.data(), partner_edges.data(), corner_starts.data(), corner_edges.data(),
            rows.data()};
}

void angle_partners(Rows<double> z, Starts starts, Ids ends, Rows<double> x, Starts fitted_starts,
                    Ids fitted_ends, bool own, std::int64_t first, OutVector<std::int32_t> partner,
                    Out<double> sums, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(x, 0), d = size(x, 1), n_edges = size(ends, 0);
    check(size(z, 1) == d && size(starts, 0) == size(z, 0) + 1 && size(fitted_starts, 0) == n + 1,
          "angle_partners: z and x must have as many columns, and one list per row");
    check(first >= 0 && first <= d, "angle_partners: first must be from 0 to the columns");
    check(size(partner, 0) == n_edges && size(sums, 0) == 3 && size(sums, 1) == n_edges,
          "angle_partners: partner must be (n_edges,) and sums (3, n_edges)");
    const AngleRows rows{z.data(), x.data(), d, lists_of(starts, ends, n),
                         lists_of(fitted_starts, fitted_ends, n), own};
    double* s = sums.data();
    const AnglePartners out{partner.data(), s, s + n_edges, s + 2 * n_edges, first};
    if (!LOWLAND_RUN(isa, angle_partners(rows, out, threads))) throw std::bad_alloc();
}

void sculpt_terms(Starts starts, Ids ends, Ids partner, Rows<double> sums, Rows<double> kept, double width,
                  double scale, Rows<double> z, Rows<double> y, Out<double> terms,
                  OutVector<double> errors, int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), q = size(y, 1), n_edges = size(ends, 0);
    const KeptTerms wanted = terms_of(starts, ends, partner, sums, kept, width, scale, n);
    check(q >= 1 && size(z, 1) == q && size(z, 0) == wanted.lists.n && size(errors, 0) == wanted.lists.n,
          "sculpt_terms: z must be (m, q) for m lists, errors (m,)");
    check(size(terms, 0) == 2 && size(terms, 1) == n_edges, "sculpt_terms: terms must be (2, n_edges)");
    const SculptedMap map{z.data(), y.data(), n, q};
    const TermsOut out{terms.data(), terms.data() + n_edges, errors.data()};
    if (!LOWLAND_RUN(isa, sculpt_terms(wanted, map, out, threads))) throw std::bad_alloc();
}

std::int64_t sculpt_pass(Starts starts, Ids ends, Ids partner, Rows<double> sums, Rows<double> kept,
                         double width, double scale, Starts partner_starts,
                         Starts partner_edges, Starts corner_starts, Starts corner_edges, Ids rows,
                         Ids seeds, Vector<std::uint8_t> fixed, Numbers steps, double adjusted, std::int64_t sweeps, Out<double> y, Out<double> errors,
                         const std::string& isa) {
    const std::int64_t n = size(y, 0), q = size(y, 1);
    const KeptTerms wanted = terms_of(starts, ends, partner, sums, kept, width, scale, n);
    check(q >= 1 && wanted.lists.n == n && size(fixed, 0) == n, "sculpt_pass: y must be (n, q) for n lists");
    check(size(errors, 0) == 2 && size(errors, 1) == n, "sculpt_pass: errors must be (2, n)");
    check(size(steps, 0) == n, "sculpt_pass: there must be one step per point");
    check(adjusted >= 0 && std::isfinite(adjusted), "sculpt_pass: adjusted must be a number >= 0");
    bool fine = sweeps >= 0;
    for (std::int64_t s = 0; s < size(seeds, 0); ++s) fine &= seeds(s) >= 0 && seeds(s) < n;
    check(fine, "sculpt_pass: a seed is not a row, or sweeps are negative");
    std::int64_t moves = 0;
    const Roles roles = roles_of(partner_starts, partner_edges, corner_starts, corner_edges, rows, n, wanted);
    const Pass pass{seeds.data(), size(seeds, 0), fixed.data(), steps.data(), adjusted, sweeps};
    const PassOut out{errors.data(), errors.data() + n, &moves};
    if (!LOWLAND_RUN(isa, sculpt_pass(wanted, roles, y.data(), q, pass, out))) throw std::bad_alloc();
    return moves;
}

void sculpt_places(Starts starts, Ids ends, Ids partner, Rows<double> sums, Rows<double> kept, double width,
                   Rows<double> y, Numbers steps, double least, Out<double> places, Out<double> errors,
                   int threads, const std::string& isa) {
    check_threads(threads);
    const std::int64_t n = size(y, 0), q = size(y, 1), m = size(errors, 0);
    const KeptTerms wanted = terms_of(starts, ends, partner, sums, kept, width, 0.0, n);
    check(q >= 1 && wanted.lists.n == m && size(places, 0) == m * size(errors, 1) && size(places, 1) == q,
          "sculpt_places: places must be (m * n_starts, q), errors (m, n_starts)");
    bool fine = size(steps, 0) == m && least > 0;
    for (std::int64_t i = 0; fine && i < m; ++i) fine = steps(i) <= least * 1e60;
    check(fine, "sculpt_places: there must be one step per row, and the least step must be positive");
    const Descents descents{places.data(), errors.data(), m, size(errors, 1), steps.data(), least};
    if (!LOWLAND_RUN(isa, sculpt_places(wanted, y.data(), q, descents, threads))) throw std::bad_alloc();
}

}  // namespace

void bind_sculpting(nb::module_& m) {
    using namespace nb::literals;
    m.def("angle_partners", &angle_partners, "z"_a.noconvert(), "starts"_a.noconvert(),
          "ends"_a.noconvert(), "x"_a.noconvert(), "fitted_starts"_a.noconvert(),
          "fitted_ends"_a.noconvert(), "own"_a, "first"_a, "partner"_a.noconvert(),
          "sums"_a.noconvert(), "threads"_a, "isa"_a = "auto");
    m.def("sculpt_terms", &sculpt_terms, "starts"_a.noconvert(), "ends"_a.noconvert(),
          "partner"_a.noconvert(), "sums"_a.noconvert(), "kept"_a.noconvert(), "width"_a, "scale"_a,
          "z"_a.noconvert(), "y"_a.noconvert(), "terms"_a.noconvert(), "errors"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
    m.def("sculpt_pass", &sculpt_pass, "starts"_a.noconvert(), "ends"_a.noconvert(),
          "partner"_a.noconvert(), "sums"_a.noconvert(), "kept"_a.noconvert(), "width"_a, "scale"_a,
          "partner_starts"_a.noconvert(), "partner_edges"_a.noconvert(),
          "corner_starts"_a.noconvert(), "corner_edges"_a.noconvert(), "rows"_a.noconvert(),
          "seeds"_a.noconvert(), "fixed"_a.noconvert(), "steps"_a.noconvert(), "adjusted"_a, "sweeps"_a,
          "y"_a.noconvert(), "errors"_a.noconvert(), "isa"_a = "auto");
    m.def("sculpt_places", &sculpt_places, "starts"_a.noconvert(), "ends"_a.noconvert(),
          "partner"_a.noconvert(), "sums"_a.noconvert(), "kept"_a.noconvert(), "width"_a,
          "y"_a.noconvert(), "steps"_a.noconvert(), "least"_a, "places"_a.noconvert(), "errors"_a.noconvert(),
          "threads"_a, "isa"_a = "auto");
}

}  // namespace lowland
