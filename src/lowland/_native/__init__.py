"""Compiled kernels: plain arrays and scalars in, results in arrays the caller allocated.

Every kernel takes ``threads`` (its result does not depend on it) and ``isa`` ("auto", or one of
``instruction_sets()``) and works for float32 and float64. The tests compare each one with its
definition in numpy.

- ``instruction_sets()``: those of this processor; ``instruction_set()``: the one that "auto" takes.
  That is the last of them, or what ``LOWLAND_INSTRUCTION_SET`` says, which is read once.

- ``all_finite(x)``: no NaN, no infinity.
- ``scatter_matrix(x, shift, sums, out)``: column sums of ``y = x - shift`` and the upper triangle
  of ``y.T @ y``; exact zeros of y are skipped.
- ``inner(a, shift_a, b, shift_b, symmetric, out)``: ``(a - shift_a).T @ (b - shift_b)``.
- ``project(x, shift, v, out)``: ``(x - shift) @ v``; no row depends on the others.
- ``sparse_times(starts, columns, values, v, offset, out)``: ``x @ v - offset`` for CSR x, likewise.
  Column numbers are trusted: pass only what scipy has checked.
- ``pack_points``, ``join_rounds``, ``query_groups``, ``probe_lists``, ``refine_neighbors``,
  ``rerank``, ``complete``: the steps of a neighbor search; see ``knn.h`` and the engines
  ``exact_search`` and ``cell_search``.
- ``shortest_paths(starts, columns, weights, sources, rows, place, out)``: row ``rows[i]`` of out
  gets the distances from vertex ``sources[i]`` along edges, in column j to vertex ``place[j]``.
  ``PATH_LANES`` sources are processed at once; consecutive ones should be near each other.
- ``calibrate(starts, distances, log_perplexity, probabilities, betas)``: for each row i, whose
  distances are those from ``starts[i]`` to ``starts[i+1]``, probabilities proportional to
  ``exp(-betas[i] * distances**2)`` of the given entropy. Infinity and NaN get 0.
- ``transpose(starts, columns, values, work, out_starts, out_columns, out_values)``: the transpose
  of an n x n CSR matrix, columns ascending, without columns -1 and without diagonal.
- ``union_starts(a_starts, a_columns, b_starts, b_columns, starts)``, ``union_sum(a_starts,
  a_columns, a_values, b_..., scale, starts, columns, values)``: ``(a + b) * scale`` of CSR matrices
  with ascending columns; first where its rows start, then what is in them.
- ``attract(starts, columns, weights, z, y, inverse_dof, forces, sums, a, b)``: the pull of the
  neighbors y on the points z of a map, UMAP's if a > 0; column numbers are trusted.
  ``permute_edges`` reorders such lists.
- ``spread(y, low, pitch, charges)`` and ``gather(y, low, pitch, own_mean, own_wave, field,
  potential, forces)``: from the points of a map to a grid, and from a field on it back to the
  points, by B-splines of order 6.
- ``convolve(charges, spectrum, wide, field)``: the convolution of a plane with an even kernel;
  ``fourier_order(order)``: the frequencies in the order of its spectrum; see ``convolve.cpp``.
- ``settle_rows(ids, weights, y, inverse_dof, mean_potential, low, pitch, field, steps, close, z, a,
  b)``: the places z of new rows in the map y, whose field on a grid is given; no row depends on
  others.
- ``descend(...)``: one step of gradient descent with momentum and gains.
- ``fuzzy_weights(distances, target, connectivity, mean_distance, weights, nearest, widths)``:
  UMAP's memberships of the neighbors of each row; they sum to the target.
- ``fuzzy_repel(points, y, same, a, b, soft, heights, first, per_octave, potential,
  forces)``: UMAP's repulsion of points by all points y, and its potential from a table of heights;
  ``fuzzy_sample(y, seed, draws, ...)``: the same estimated by drawn points. See ``fuzzy.h``.
- ``map_radii(starts, columns, weights, y, a, b, sums)``, ``radius_forces(..., sums, slopes,
  forces)``: sums of memberships, plain and times squared distances, over the edges of each point
  of a map, and minus the gradient of the sum of slopes times their quotients.
- ``draw_groups(first, n, seed, groups, out)``: random rows for the rows from ``first`` on, all
  different within a group; ``draw_far(near, seed, out)``: the same but for the near ones;
  ``redraw_far(near, y, reach, seed, far, within)``: likewise among points of a map within a reach,
  in place. All are functions of seed, row and slot.
- ``listed_squares(x, first, ids, out)``: squared distances of the rows from ``first`` on to rows.
- ``pair_starts(ids, starts)``, ``pair_lists(ids, starts, columns)``: the partners of each point in
  both directions, each list filled up with the point itself to a multiple of ``PAIR_LANES``.
- ``pair_forces(near_starts, near, mid_..., far_..., weights, y, gradient, losses)``: the gradient
  of the loss of PaCMAP or LocalMAP, and half the losses of each point; ``pair_step(..., weights,
  rate, y, stepped, means, squares)``: a step of Adam; column numbers are trusted. See
  ``pair_maps.h``.
- ``settle_pairs(ids, y, local, far, reach, low, pitch, field, steps, close, z)``: the places z of
  new rows in such a map, whose field on a grid may be given; no row depends on others.
- ``repel_pairs(y, gaussian, dof, weights, potential, forces)``: for the map y with similarities
  ``K = (1 + r^2/dof)^-dof`` and ``G = K / (1 + r^2/dof)``, or ``K = G = exp(-r^2)`` if gaussian,
  ``potential_i = sum_j K_ij`` and ``forces_i = sum_j G_ij (y_i - y_j) (u_i + u_j)`` over j != i.
  u are the weights; if they are empty, the last factor is 1. O(n^2 d).
- ``repel_from(y_new, y, gaussian, dof, potential, forces)``: the same for every row of y_new over
  all rows of y, without weights.
- ``repel_tree(y, dof, angle, potential, forces)``: ``repel_pairs`` of up to three columns without
  weights, where a cell seen under less than ``angle`` (side / distance) counts as one point at its
  center of mass. O(n log n); exact for angle 0.
- ``count_ranks(panels, halves, x, rows, starts, partners, rounding, ranks)``: the rank of row
  ``partners[p]`` of x from ``rows[i]``, for p in ``starts[i] .. starts[i + 1]``: 1 + the
  number of other rows that are nearer, ties by row number.
- ``count_nearer(panels, halves, x, query_panels, query_halves, queries, own, starts, squares, ties,
  rounding, counts)``: adds to ``counts[p]`` the number of rows of x that are nearer to query i than
  ``squares[p]``, and of those at that distance the ones numbered below ``ties[p]``;
  ``pair_squares(a, b, out)``: squared distances of rows of a and b, in the same arithmetic.
- ``sort_rows(values, inverse, out)``: the stable order of each row; inverse: ranks from 0.
- ``mid_ranks(values, out)``: ranks from 0, the mean of them where entries are equal.
- ``distance_rows(panels, rows, root, out)``: squared distances of rows to packed points, or roots.
- ``distance_sums(a, b, own, scale, out)``: per row, sums of a, b, a^2, b^2, a b, (a - scale b)^2
  and (a - scale b)^2 / a over all columns but ``own``; ``add_column_sums(a, b, first, scale, out)``
  adds the same per column.
- ``kernel_rows(rows, points, kind, offset, degree, out)``: values of a kernel function for packed
  rows and points; ``kernel_times(points, kind, offset, degree, tiles, filled, v, out)``: the matrix
  of all pairs times v, computed on the fly or kept in tiles. ``kernel_tiles.h`` lists the kinds.
- ``symmetric_times(tiles, v, out)``: a symmetric matrix, kept as tiles of its upper half, times v.
- ``class_digammas(values, codes, n_classes, k, psi, out)``: for each sorted row of values, the sum
  over them of ``psi[c]``, where c values lie nearer than the k-th nearest of the same class.
- ``pair_digammas(x, y_of_x, y_rank, y, x_of_y, k, psi, out)``: for each sorted row x, whose
  partners in y are ``y_of_x``, the sum of ``psi[c_x] + psi[c_y]``, where c_x values of x and c_y of
  y lie nearer than the k-th nearest pair (larger of the two gaps). Always with the value itself.
- ``manhattan_rows(panels, rows, out)``: sums of absolute differences of rows to packed points.
- ``patch_counts(members, starts, entries, counts)``, ``patch_sums(members, starts, entries,
  factors, identity, sign, out_starts, columns, values)``: the sum over patches of ``identity * I +
  sign * F @ F.T``, each on its members, as a CSR matrix; first how much is in each row, then what.
  ``entries[starts[v]:starts[v + 1]]`` are the places of v in ``members``.
- ``stress_rows(z, y, delta, weights, power, stress, forces)``: for every point of z, with
  ``gap = delta - |z_i - y_j|``, ``stress_i = sum_j w gap^2`` and half its gradient; w are the
  weights or, if they are empty, ``delta^-power``. NaN is an unknown distance.
- ``stress_pairs(y, first, second, delta, weights, stress, forces)``: the same for listed pairs of
  one map; ``pair_distances(y, first, second, out)``: their distances.
- ``local_stress_rows(z, y, delta, radii_z, radii_y, kind, tradeoff, center, width, rounding,
  stress, potential, degrees, forces)``: stress in which a pair counts by its distance in the map,
  in the data, or in both; ``local_stress.h`` lists the laws.
- ``pool_adjacent(d, weights, groups, fit)``: the non-decreasing sequence nearest to d, which may be
  put in any order within ``groups[g] .. groups[g + 1]``.
- ``torus_energy(z, y, sides, delta, rigidity, nearest, energy, forces, stiffness)``: the repulsion
  of every point of z from all points of y on a flat torus; see ``torus_energy.h``. Each row of
  ``delta`` belongs to ``len(z) / len(delta)`` points of z in a row; coordinates in 0 .. side.
- ``rank_forces(y, points, ties, k, push, even, spacing, reach, stress, forces, weights)``: for the
  map y, and for each point the list of its nearest ones in the data, how far the ranks in the map
  are from those in the list, and where this pulls the points; see ``rank_forces.cpp``.
- ``rank_heights(y, points, ties, k, z, out)``: the same stress for new rows with the places z;
  ``rank_places(y, points, ties, k, equal, z)``: places where it is low.
- ``unit_sums(z, y, distances, units)``: for every point of z ``sum_j |z_i - y_j|`` and
  ``sum_j (z_i - y_j) / |z_i - y_j|`` over all points of y in another place. O(m n d).
- ``mean_cosines(starts, columns, lengths, k, out)``: for every vertex of a graph the mean cosine of
  the angles at it between its k nearest vertices along the graph. O(n k^3).
- ``angle_partners(z, starts, ends, x, fitted_starts, fitted_ends, own, first, partner, sums)``: for
  each neighbor j of each row of z, the neighbor l of j for which the angle at j is widest, and
  ``|z_i - x_j|^2``, ``|x_l - x_j|^2`` and their product over the columns from ``first`` on.
- ``sculpt_terms(starts, ends, partner, sums, kept, width, scale, z, y, terms, errors)``: those
  distances and angles in a map, and the local errors of its points; ``sculpt_pass(..., seeds,
  fixed, step, adjusted, sweeps, y, errors)``: one pass of manifold sculpting, in breadth-first
  order, which returns the number of moves; ``sculpt_places(..., y, step, least, places, errors)``:
  descents of new points. See ``sculpting.h``.
- ``gtm_sums(x, mean, nodes, beta, missing, logs, sums, masses)``: the E step of a mixture of equal
  Gaussians at the nodes, and what the M step needs: the log sum of exp(-beta d^2 / 2) of each row,
  and for each node the sums of rows and of ones, weighted by its posteriors, over known values;
  ``gtm_posteriors(..., logs, posteriors)``: the posteriors themselves.
- ``covariance_matrix(u, v, a, b, shape, variance, bias, out, radial, upper)``: covariances of
  Gaussian processes, ``bias + variance f(|u_i - v_j|^2) + a_i . b_j`` and, unless ``radial`` is
  empty, ``variance f'``; ``covariance_slopes(u, v, a, b, shape, g, by_row, by_column, upper)``:
  sums that slopes of ``sum_ij g_ij k_ij`` are made of, for each row of u and, unless ``by_column``
  is empty, of v. With ``upper``, only pairs i <= j of the same points. See ``covariance.h``.
- ``ppca_sums(x, mean, weights, noise, rare, logs, squares, products, grams, total)``: the E step of
  probabilistic PCA with missing values (NaN): log p of each row, and for each column the sums that
  its regression on the posterior places needs. Columns with few known values are ``rare``;
  ``ppca_posteriors(x, mean, weights, noise, places, logs, covariances)``: the mean of the posterior
  of each row and, unless it has no columns, its covariance as a triangle. See ``ppca.h``.
- ``gaussian_field(u, b, v, w, sums, pulls)``: with ``k_ij = exp(-|u_i - v_j|^2 / 2)`` the field
  ``sum_j k_ij w_j`` at every point of u and, unless b is empty, the gradient of ``b_i . sums_i`` by
  ``u_i``. O(n m d); no point depends on the others.
- ``network_forward(sizes, activations, tied, weights, x, first_kept, values)``: the values of the
  layers of a network for each row, layer after layer from ``first_kept`` on;
  ``network_backward(..., x, values, slope, gradient, slope_x)``: slopes by the weights and, unless
  ``slope_x`` is empty, by x, from those by the output; ``network_train(..., weights, means,
  squares, inputs, targets, order, batch, rates, steps_before, decay, sparsity, code, tail,
  errors)``: steps of Adam on batches of rows, which change weights, means and squares. See
  ``network.h``.
- ``nearest_units(x, units, shift, missing, ids, squares)``: the one or two units (columns of ids)
  nearest to each row, and their squared distances; equal ones by their number. NaN is a missing
  value, if ``missing``: distances are over the known columns. ``shift`` is a point amidst the rows.
- ``sum_by_unit(x, nearest, missing, counts, sums)``: sums over the rows whose number is that of the
  unit; counts are (m, 1), or (m, p) with missing values.
- ``squares_to_units(x, units, nearest, lists, squares)``: squared distances of each row to the
  units ``lists[nearest[i]]``; infinity where it is -1.
- ``som_steps(rows, rates, neighborhood, codebook)``: Kohonen's rule, one row after the other, in
  place: ``w_j += rates[t] * neighborhood[c, j] * (x_t - w_j)``, c the nearest unit of the row x_t.
- ``project_on_polyline(x, knots, before, after, segments, along, squares)``: for every row the
  number of the nearest segment between consecutive knots, how far along it the nearest point is,
  and its squared distance. The ends are prolonged by ``before`` and ``after``. O(n m p).
- ``project_on_surface(x, near, nodes, simplices, starts, members, found, weights, squares)``: the
  nearest point to each row of x on the simplices at its nodes ``near``, and downhill from there:
  the simplex, the weights of its corners, the squared distance. The simplices at node c are
  ``members[starts[c]:starts[c + 1]]``.
"""

from lowland._native.kernels import (
    DISTANCE_SUMS,
    ENTRY_BYTES_FLOAT32,
    ENTRY_BYTES_FLOAT64,
    PAIR_LANES,
    PANEL_WIDTH_FLOAT32,
    PANEL_WIDTH_FLOAT64,
    PATH_LANES,
    TILE_SIDE_FLOAT32,
    TILE_SIDE_FLOAT64,
    add_column_sums,
    all_finite,
    angle_partners,
    attract,
    calibrate,
    class_digammas,
    complete,
    convolve,
    count_nearer,
    count_nested,
    count_ranks,
    covariance_matrix,
    covariance_slopes,
    descend,
    distance_rows,
    distance_sums,
    draw_far,
    draw_groups,
    fourier_order,
    fuzzy_repel,
    fuzzy_sample,
    fuzzy_weights,
    gather,
    gaussian_field,
    gtm_posteriors,
    gtm_sums,
    inner,
    instruction_set,
    instruction_sets,
    join_rounds,
    kernel_rows,
    kernel_times,
    listed_squares,
    local_stress_rows,
    manhattan_rows,
    map_radii,
    mean_cosines,
    mid_ranks,
    nearest_units,
    network_backward,
    network_forward,
    network_train,
    pack_points,
    pair_digammas,
    pair_distances,
    pair_forces,
    pair_lists,
    pair_squares,
    pair_starts,
    pair_step,
    patch_counts,
    patch_sums,
    permute_edges,
    pool_adjacent,
    ppca_posteriors,
    ppca_sums,
    probe_lists,
    project,
    project_on_polyline,
    project_on_surface,
    query_groups,
    radius_forces,
    rank_forces,
    rank_heights,
    rank_places,
    redraw_far,
    refine_neighbors,
    repel_from,
    repel_pairs,
    repel_tree,
    rerank,
    scatter_matrix,
    sculpt_pass,
    sculpt_places,
    sculpt_terms,
    settle_pairs,
    settle_rows,
    shortest_paths,
    som_steps,
    sort_rows,
    sparse_times,
    spread,
    squares_to_units,
    stress_pairs,
    stress_rows,
    sum_by_unit,
    symmetric_times,
    torus_energy,
    transpose,
    union_starts,
    union_sum,
    unit_sums,
)

__all__ = [
    "DISTANCE_SUMS",
    "ENTRY_BYTES_FLOAT32",
    "ENTRY_BYTES_FLOAT64",
    "PAIR_LANES",
    "PANEL_WIDTH_FLOAT32",
    "PANEL_WIDTH_FLOAT64",
    "PATH_LANES",
    "TILE_SIDE_FLOAT32",
    "TILE_SIDE_FLOAT64",
    "add_column_sums",
    "all_finite",
    "angle_partners",
    "attract",
    "calibrate",
    "class_digammas",
    "complete",
    "convolve",
    "count_nearer",
    "count_nested",
    "count_ranks",
    "covariance_matrix",
    "covariance_slopes",
    "descend",
    "distance_rows",
    "distance_sums",
    "draw_far",
    "draw_groups",
    "fourier_order",
    "fuzzy_repel",
    "fuzzy_sample",
    "fuzzy_weights",
    "gather",
    "gaussian_field",
    "gtm_posteriors",
    "gtm_sums",
    "inner",
    "instruction_set",
    "instruction_sets",
    "join_rounds",
    "kernel_rows",
    "kernel_times",
    "listed_squares",
    "local_stress_rows",
    "manhattan_rows",
    "map_radii",
    "mean_cosines",
    "mid_ranks",
    "nearest_units",
    "network_backward",
    "network_forward",
    "network_train",
    "pack_points",
    "pair_digammas",
    "pair_distances",
    "pair_forces",
    "pair_lists",
    "pair_squares",
    "pair_starts",
    "pair_step",
    "patch_counts",
    "patch_sums",
    "permute_edges",
    "pool_adjacent",
    "ppca_posteriors",
    "ppca_sums",
    "probe_lists",
    "project",
    "project_on_polyline",
    "project_on_surface",
    "query_groups",
    "radius_forces",
    "rank_forces",
    "rank_heights",
    "rank_places",
    "redraw_far",
    "refine_neighbors",
    "repel_from",
    "repel_pairs",
    "repel_tree",
    "rerank",
    "scatter_matrix",
    "sculpt_pass",
    "sculpt_places",
    "sculpt_terms",
    "settle_pairs",
    "settle_rows",
    "shortest_paths",
    "som_steps",
    "sort_rows",
    "sparse_times",
    "spread",
    "squares_to_units",
    "stress_pairs",
    "stress_rows",
    "sum_by_unit",
    "symmetric_times",
    "torus_energy",
    "transpose",
    "union_starts",
    "union_sum",
    "unit_sums",
]
