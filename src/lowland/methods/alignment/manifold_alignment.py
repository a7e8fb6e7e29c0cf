"""Manifold alignment (Ham, Lee & Saul 2005; Wang & Mahadevan 2008, 2009)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._engines.distances.metrics import METRICS
from lowland._engines.graphs.laplacian import graph_spectrum, nystrom_divisors
from lowland._engines.neighbors.duplicates import at_common_place
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland.methods.alignment import _joint_graph as joint_graphs
from lowland.methods.alignment import _maps as maps
from lowland.methods.alignment._joint_graph import Matches
from lowland.methods.alignment._placing import PlacedTables

HARD_WEIGHT = 10.0  # of merged matches, in the degrees: that of the default mu
METRICS_OF_ROWS = tuple(m for m in METRICS if m not in ("gower", "minkowski", "precomputed"))


class ManifoldAlignment(PlacedTables):
    """One map of several tables in which matched rows meet: L y = lambda D y of the joint graph.

    W = [[W_1, mu W_12], [mu W_12^T, W_2]] joins the neighbor graphs of the tables by the rows that
    are known to be one object; L = D - W. The tables may have different columns and different rows,
    of which a part is matched. Use it to carry what is known of the rows of one table over to
    another one, to find partners of rows without one, and to see two kinds of measurements of the
    same objects in one picture. Not for tables with the same columns, which can be stacked, and not
    without any idea of matches: local patterns find them only in data with little noise. Cost: that
    of a Laplacian eigenmap of all rows, O(n k q) and the neighbor search; without correspondences
    O(n_1 n_2).

    Parameters
    ----------
    method : {"laplacian", "procrustes"}, default="laplacian"
        How the tables come together: by one joint graph, or by turning a map of each. "procrustes"
        rotates, scales and shifts the map of each table by its matched rows onto the first.
    level : {"instance", "feature", "given"}, default="instance"
        What the map is. "instance" gives each row its own place, "feature" is a matrix for
        the columns of each table. For "procrustes" these are Laplacian eigenmaps and PCA, and
        "given" takes the tables themselves as finished maps with ``n_components`` columns.
    n_neighbors : int, default=10
        Number of neighbors of each row within its table.
    mu : float or "hard", default=10.0
        Weight of all matches between two tables, relative to the edges within one table. "hard"
        gives matched rows one place, and keeps known coordinates.
    metric : str, default="euclidean"
        Distance between rows of one table.
    on_disconnected : {"bridge", "largest", "raise"}, default="bridge"
        What to do when the joint graph has several connected components. "bridge" adds the shortest
        edges within tables that connect them. "largest" maps the largest component and places the
        other rows like new rows. "raise" refuses. Tables without a match are refused always.
    ridge : float, default=1e-3
        Penalty of the squared length of a projection; only for ``level="feature"``. In units of the
        longest principal axis of the table. 0 is the equation of the paper.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,) or None
        Eigenvalues lambda, smallest first, without the trivial 0; NaN beyond the rank of the
        columns. None for "procrustes" and for known coordinates.
    disparities_ : ndarray of shape (n_sets,) or None
        Share of the variance of the partners that the turned matched rows of each table do not
        reach; 0 for the first. None for "laplacian".
    n_connected_components_ : int
        Connected components of the joint graph; for "procrustes" the most of a table.

    Notes
    -----
    The weights of the edges follow the density of the rows (those of ``LaplacianEigenmaps``). They
    are divided by their sum in each table, so that neither unit nor size lets one table rule, and
    the matches between two tables have the sum mu. Matches count in D: then the variance of the map
    lies in matched rows, and axes in which a single table varies alone come late. Measured on
    halves of digits, faces, sensors and genes with a sixth of the rows matched, this finds up to
    five times as many partners at 20 axes as D without the matches; mu = 10 finds as many as 1 or
    more, and a larger mu as many. With "hard" the matches are loops of the merged nodes, of the
    same weight. With fewer than some 30 matches single ones may stand apart in the map; mu = 1
    keeps them with the others.

    Two axes show how tables agree, but seldom which row is whose partner. On left and right halves
    of 1797 digits with 300 matches, 12 % of the rows are nearer than the partner with 2 axes and 6
    % with 10; PCA and Procrustes leave 43 % and 20 %. To find partners take 10 to 20 axes.
    "feature" finds more of them than "instance" where tables have many more columns than rows
    (faces), but with more axes than the narrower table has columns it finds none. Where both tables
    sample the same kind of columns at random, PCA and Procrustes find the most: halves of the genes
    of cells, and halves of a vocabulary while few texts are matched. ``ridge`` was chosen on these
    tables.

    An object may be matched with several rows of another table, unless mu is "hard"; a match that
    is given twice counts once. Known coordinates are least squares, min tr(Y^T L Y) + mu times the
    mean squared deviation of the known rows; the other rows lie in between. Without correspondence
    and coordinates, rows are matched whose local patterns are alike. New rows are placed by
    Nystroem's formula from their neighbors in their own table, or by the matrix.

    References
    ----------
    Ham, Lee & Saul (2005), Semisupervised alignment of manifolds, AISTATS; Wang & Mahadevan (2008),
    Manifold alignment using Procrustes analysis, ICML; the same authors (2009), Manifold alignment
    without correspondence, IJCAI, and A general framework for manifold alignment, AAAI Fall
    Symposium.

    Examples
    --------
    >>> from lowland.datasets import digits
    >>> X, known = digits().X, np.arange(0, 1797, 5)
    >>> views, pairs = [X[:, :32], X[:, 32:]], np.column_stack([known, known])
    >>> maps = ManifoldAlignment(2, random_state=0).fit_transform(views, correspondence=pairs)
    >>> [Y.shape for Y in maps]
    [(1797, 2), (1797, 2)]
    """

    method: Literal["laplacian", "procrustes"] = param(
        OneOf("laplacian", "procrustes"), default="laplacian"
    )
    level: Literal["instance", "feature", "given"] = param(
        OneOf("instance", "feature", "given"), default="instance"
    )
    n_neighbors: int = param(Integer(1), default=10)
    mu: float | str = param(Real(0, 1e6, closed="right") | OneOf("hard"), default=10.0)
    metric: str = param(OneOf(*METRICS_OF_ROWS), default="euclidean")
    on_disconnected: str = param(OneOf("bridge", "largest", "raise"), default="bridge")
    ridge: float = param(Real(0, closed="left"), default=1e-3)

    eigenvalues_: np.ndarray | None = fitted("n_components", optional=True, allows_nan=True)
    disparities_: np.ndarray | None = fitted("n_sets", optional=True)
    n_connected_components_: int = fitted(type=int)

    card = Card(
        keeps="who is a neighbor of whom within each table, and which rows are one object",
        use="for two or more tables about the same objects, some of which are matched",
        avoid="for one table, and for tables without any known match unless they have no noise",
        cost="O(n k) time and memory of all rows together, and the neighbor search",
    )
    reference = "Ham, Lee & Saul (2005); Wang & Mahadevan (2008, 2009)"
    aliases = ("alignment",)
    reading = Reading(
        axes="The axes have no meaning except their order.",
        distances="Rows of one table that are near are neighbors, or a path joins them. Rows of "
        "different tables that are near belong to similar objects, as far as the matched rows "
        "around them show.",
        gaps="Groups with few edges between them are pulled apart. The width of a gap has no "
        "meaning.",
        sizes="Sizes and densities are set by the method, not by the data.",
        scale="Each axis has unit variance, weighted by the degrees of the rows.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: n rows of all tables together, p columns of the widest."""
        search = neighbor_graph_cost(n, p, 10)
        return Estimate(search.seconds + 8e-5 * n, 8 * n * (p + 400))

    def _by_neighbors(self) -> bool:
        return self.level == "instance"

    def _fit_tables(
        self, Xs: list[Any], correspondence: Any, coordinates: Any, run: FitContext
    ) -> np.ndarray:
        self._check_question(correspondence, coordinates)
        name, starts = type(self).__name__, self.row_starts_
        q = self._check_axes(int(starts[-1]))
        self.eigenvalues_ = self.disparities_ = None
        known = None
        if coordinates is not None:
            known = joint_graphs.check_coordinates(coordinates, starts, q, name)
        if correspondence is not None:
            pairs = joint_graphs.check_correspondence(correspondence, starts, name)
            matches = joint_graphs.matches_of(pairs, starts)
        elif coordinates is not None:
            none = np.empty(0, np.int64)
            matches = Matches(none, none, np.empty(0))
        else:
            matches = maps.pattern_matches(Xs, starts, self._graph_metric(), name, run)
        if self.method == "procrustes":
            return self._fit_procrustes(Xs, matches, q, run)
        return self._fit_laplacian(Xs, matches, known, q, run)

    # --- one joint graph ----------------------------------------------------------------------

    def _fit_laplacian(
        self, Xs: list[Any], matches: Matches, known: np.ndarray | None, q: int, run: FitContext
    ) -> np.ndarray:
        name, starts, metric = type(self).__name__, self.row_starts_, self._graph_metric()
        hard, node, anchors = self.mu == "hard", np.arange(starts[-1]), np.empty(0, np.int64)
        if hard:
            node = joint_graphs.check_one_to_one(matches, starts, name)
        if known is not None:
            anchors = np.flatnonzero(~np.isnan(known[:, 0]))
        graphs = joint_graphs.neighbor_graphs(Xs, int(self.n_neighbors), metric, name, run)
        connected = joint_graphs.connect_tables(
            graphs, Xs, matches, anchors, self.on_disconnected, metric, run
        )
        self.n_connected_components_ = connected.n_components
        weight = HARD_WEIGHT if hard else float(self.mu)
        joint = joint_graphs.joint_graph(connected, matches, node, starts, weight)
        own = self._kept_rows(Xs, connected.kept)
        rows = np.empty(0, np.int64)
        if known is not None:
            known = known[connected.kept]
            rows = np.flatnonzero(~np.isnan(known[:, 0]))
        if self.level == "feature":
            functions, ridge = maps.linear_functions(own, joint.W, name, run), float(self.ridge)
            if known is None:
                self.eigenvalues_, G = functions.axes(q, ridge)
            else:
                G = functions.nearest(rows, known[rows], weight / rows.size, ridge)
            self._keep_projections(functions.projections(G))
            return self._project_all(Xs, run)
        if known is None:
            modes, degrees = graph_spectrum(joint.W, self._check_axes(joint.W.shape[0]), run)
            Y = modes.vectors * np.sqrt(degrees.sum() / degrees)[:, None]
            self.eigenvalues_ = np.maximum(1 - modes.values, 0.0)
            divisors = nystrom_divisors(self.eigenvalues_)
        else:
            each = None if hard else weight / rows.size
            Y = maps.harmonic_map(joint.W, joint.node[rows], known[rows], each, name, run)
            divisors = np.ones(q)
        Y = at_common_place(Y, joint.equal)[joint.node]
        extensions = np.repeat(np.diag(1 / divisors)[None], self.n_sets_, axis=0)
        self._keep_rows(own, joint.scales, extensions, np.zeros((self.n_sets_, q)))
        return self._with_excluded(Y, Xs, run)

    def _project_all(self, Xs: list[Any], run: FitContext) -> np.ndarray:
        return np.concatenate([self._place(X, d, run) for d, X in enumerate(Xs)])

    # --- one map after the other --------------------------------------------------------------

    def _fit_procrustes(
        self, Xs: list[Any], matches: Matches, q: int, run: FitContext
    ) -> np.ndarray:
        if self.level == "instance":
            return self._turn_eigenmaps(Xs, matches, q, run)
        name, starts = type(self).__name__, self.row_starts_
        self.excluded_, self.n_connected_components_ = np.empty(0, np.int64), 1
        if self.level == "given":
            self._check_finished(Xs, q)
            own = [(np.zeros(q), np.eye(q), X.astype(np.float64)) for X in Xs]
        else:
            own = [maps.principal_map(X, q, run) for X in Xs]
        means, axes, scores = zip(*own, strict=True)
        turns = maps.turns_onto_first(scores, matches, starts, name)
        pairs = zip(axes, turns, strict=True)
        V = [turn.scale * np.einsum("pq,qr->pr", own_axes, turn.R) for own_axes, turn in pairs]
        shifts = np.array([turn.shift for turn in turns])
        self.disparities_ = np.array([turn.disparity for turn in turns])
        self._keep_projections(maps.Projections(np.concatenate(means), np.concatenate(V), shifts))
        return self._project_all(Xs, run)

    def _turn_eigenmaps(
        self, Xs: list[Any], matches: Matches, q: int, run: FitContext
    ) -> np.ndarray:
        name, starts, metric = type(self).__name__, self.row_starts_, self._graph_metric()
        graphs = joint_graphs.neighbor_graphs(Xs, int(self.n_neighbors), metric, name, run)
        options = q, self.on_disconnected, metric, name, run
        own = [maps.eigenmap(graph, X, *options) for graph, X in zip(graphs, Xs, strict=True)]
        self.n_connected_components_ = max(each.n_components for each in own)
        kept = np.concatenate([each.kept + start for each, start in zip(own, starts, strict=False)])
        among = matches.among(kept, int(starts[-1]))[1]
        own_starts = np.cumsum([0, *(each.kept.size for each in own)])
        turns = maps.turns_onto_first([each.Y for each in own], among, own_starts, name)
        self.disparities_ = np.array([turn.disparity for turn in turns])
        divisors = (nystrom_divisors(each.eigenvalues) for each in own)
        pairs = zip(turns, divisors, strict=True)
        extensions = np.array([np.einsum("ai,a,aj->ij", t.R, 1 / d, t.R) for t, d in pairs])
        scales = np.concatenate([each.scales for each in own])
        centers = np.array([turn.shift for turn in turns])
        self._keep_rows(self._kept_rows(Xs, kept), scales, extensions, centers)
        Y = np.concatenate([turn.of(each.Y) for each, turn in zip(own, turns, strict=True)])
        return self._with_excluded(Y, Xs, run)

    # --- checks -------------------------------------------------------------------------------

    def _check_question(self, correspondence: Any, coordinates: Any) -> None:
        """Refuse combinations that have no meaning."""
        turned, hard = self.method == "procrustes", self.mu == "hard"
        refused = None
        if turned and correspondence is None:
            refused = "method='procrustes' needs correspondence; give the matched rows"
        elif turned and coordinates is not None:
            refused = "coordinates need method='laplacian'"
        elif not turned and self.level == "given":
            refused = "level='given' takes finished maps; use method='procrustes'"
        elif hard and not turned and self.level == "feature":
            refused = "mu='hard' needs level='instance'; projections cannot give rows one place"
        elif hard and not turned and correspondence is None and coordinates is None:
            refused = "mu='hard' needs correspondence; give mu as a number without it"
        if refused is not None:
            raise ParameterError(f"{type(self).__name__}: {refused}.")

    def _check_axes(self, n_nodes: int) -> int:
        q = int(self.n_components)
        if q >= n_nodes:
            raise ParameterError(
                f"{type(self).__name__}: n_components={q} is more than {n_nodes} rows of all "
                f"tables allow; ask for at most {n_nodes - 1}."
            )
        return q

    def _check_finished(self, Xs: list[Any], q: int) -> None:
        for d, X in enumerate(Xs):
            if X.shape[1] != q or not isinstance(X, np.ndarray):
                raise DataError(
                    f"{type(self).__name__}: level='given' takes dense maps of n_components={q} "
                    f"columns, but Xs[{d}] has {X.shape[1]}."
                )
