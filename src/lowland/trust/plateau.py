"""The plateau of a parameter, such as the perplexity: the values whose maps are equally good.

A map is good if it keeps more neighbors than a map of structureless data does, and if maps of two
halves of the rows agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.constraints import Integer, Real, check_argument
from lowland._base.context import generator
from lowland._base.errors import DataError, ParameterError, shown, unknown_name
from lowland._base.monitor import Monitor, Phase
from lowland._base.threads import resolve_n_jobs
from lowland._base.validation import check_matrix
from lowland._engines.linalg.procrustes import turned_like
from lowland.metrics import Comparison
from lowland.trust.refitting import component_scores, without_structure
from lowland.trust.result import OtherMap, Plateau

# Checks of the arguments.


FEWEST_ROWS = 100  # two halves then share 25 rows
SET_HERE = {"random_state": "seed", "n_jobs": "n_jobs", "verbose": "verbose"}


def check_method(method: Any) -> type[Reducer]:
    """The class of a method whose maps can be compared."""
    cls = registry.get(method) if isinstance(method, str) else method
    if not (isinstance(cls, type) and issubclass(cls, Reducer)):
        raise ParameterError(
            f"method={shown(method)} is not allowed; give the class of a method, or its name."
        )
    if cls.needs_target or cls.wraps:
        why = "needs classes" if cls.needs_target else "makes maps without edges"
        raise ParameterError(f"method: {cls.__name__} {why}, which is not compared here.")
    return cls


def check_values(parameter: str, values: Any, default: float) -> list[Any]:
    """The values and the default, ascending, each once, as numbers of Python."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        values = [values]
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise ParameterError(f"values=[] is empty; give the values of {parameter} to try.")
    for value in listed:
        if not Real().allows(value):
            raise ParameterError(f"values: {shown(value)} is not allowed; give numbers to try.")
    if not math.isnan(default):
        whole = all(isinstance(value, int) for value in listed)
        listed.append(int(default) if whole and default == int(default) else default)
    return [listed[i] for i in np.unique(np.array(listed, np.float64), return_index=True)[1]]


def check_data(X: Any, n_jobs: int | None) -> Any:
    """X as a finite matrix, dense or CSR, of enough rows."""
    options: dict[str, Any] = {"accept_sparse": True, "threads": resolve_n_jobs(n_jobs)}
    return check_matrix(X, owner="parameter_plateau", min_rows=FEWEST_ROWS, **options)


def check_parameters(cls: type[Reducer], parameter: str, fixed: dict[str, Any]) -> None:
    """Refuse parameters that the method does not have, or that are set otherwise."""
    for name in (parameter, *fixed):
        if name in fixed and (name in SET_HERE or name == parameter):
            where = SET_HERE.get(name, "values")
            raise ParameterError(f"{name}={shown(fixed[name])} is not allowed; use {where!r}.")
        if name not in cls.parameters():
            kind = f"parameter of {cls.__name__}"
            raise ParameterError(unknown_name(kind, str(name), list(cls.parameters())))
    if fixed.get("metric", "euclidean") != "euclidean":
        raise ParameterError(
            f"metric={shown(fixed['metric'])} is not allowed; data without structure are made of "
            "principal components, which keep Euclidean distances only."
        )


# A plateau of a parameter in one sentence.


def plateau_sentence(found: Plateau, noise: float) -> str:
    """Which values show the same, how much, and whether the default is one of them.

    An excess up to ``noise`` may be chance; then only the agreement of two halves distinguishes
    the values.
    """
    parameter, values, excess, overlap, on, default, recommended, *_ = found
    name = parameter if "_" in parameter else parameter.capitalize()
    what, several = f"{name} {_span(values, on)}", sum(on) > 1
    if max(excess) <= noise:
        text = (
            "No tried value keeps more of the nearest rows than it would of data without structure "
            f"(excess at most {_share(max(excess))}), which does not show any groups. {what} "
            f"{'are' if several else 'is'} steadiest between halves of the rows"
        )
    else:
        shown = sorted(one for one, there in zip(excess, on, strict=True) if there)
        ends = dict.fromkeys([_share(shown[0]), _share(shown[-1])])  # one if they are the same
        text = (
            f"{what} {'show the same' if several else 'shows most'}: neighbors kept beyond chance "
            f"{' to '.join(ends)}"
        )
    if recommended == default:
        lies = "lies on this plateau" if several else "is this value"
        return f"{text}; the default {default:g} {lies}."
    if math.isnan(default):
        return f"{text}; take {recommended:g}."
    place = values.index(default)
    return (
        f"{text}; the default {default:g} keeps {_share(excess[place])}, and maps of two "
        f"halves share {_share(overlap[place])} of their neighbors (at best "
        f"{_share(max(overlap))}): take {recommended:g}."
    )


def _span(values: Sequence[float], on: Sequence[bool]) -> str:
    """``15 to 50`` for values side by side, ``5, 30 and 50`` for others."""
    places = [place for place, there in enumerate(on) if there]
    texts = [f"{values[place]:g}" for place in places]
    if len(places) == 1:
        return texts[0]
    if places[-1] - places[0] == len(places) - 1:
        return f"{texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _share(value: float) -> str:
    """``.31``, as shares are written in sentences; never ``-.00``."""
    text = f"{value:.2f}"
    return "0" if text in ("0.00", "-0.00") else text.replace("0.", ".", 1)


NEIGHBORS = 15
PERPLEXITIES = (5.0, 15.0, 30.0, 50.0, 100.0)
# A difference of half a neighbor of 15 is nothing that a person would see in a map.
MARGIN = 0.5 / NEIGHBORS
ERRORS = 2.0  # standard errors of a difference that may be chance
SAME = 1.2  # factor within which two perplexities give the same map: one of them is tried


class _Rows(NamedTuple):
    """The rows that maps are made of: all, without structure, and two parts that share rows."""

    rows: np.ndarray  # (m,) numbers in X, ascending
    data: np.ndarray  # (m, q) component scores
    null: np.ndarray  # (m, q) rows without structure
    parts: tuple[np.ndarray, np.ndarray]  # places in ``rows``, ascending
    core: np.ndarray  # places that are in both


class _Measured(NamedTuple):
    """What is measured of one value, row by row, and its map."""

    recall: np.ndarray  # (m,)
    null_recall: np.ndarray  # (m,)
    overlap: np.ndarray  # (size of the core,)
    Y: np.ndarray

    @property
    def excess(self) -> float:
        return float(self.recall.mean() - self.null_recall.mean())


def perplexity_plateau(
    X: Any,
    values: Sequence[float] | None = None,
    *,
    rows: int = 5_000,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    like: Any = None,
    **fixed: Any,
) -> Plateau:
    """The perplexities of t-SNE whose maps are as good as the best one.

    See :func:`parameter_plateau`, of which this is the case ``TSNE``, ``"perplexity"``. For the
    default values it takes about 20 times as long as one map of 5 000 rows: half a minute with two
    cores.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n, p)
        The rows, prepared as for a map: scaled, without missing values.
    values : sequence of float or None, default=None
        None tries 5, 15, 30, 50, 100 and a hundredth of the mapped rows, as far as a third of the
        rows allows. The default of t-SNE, 30, is always tried.
    rows, seed, n_jobs, verbose, like, **fixed
        See :func:`parameter_plateau`.

    Examples
    --------
    >>> from lowland.datasets import blobs
    >>> found = perplexity_plateau(blobs(200, random_state=0).X, [2, 30], max_iter=300)
    >>> found.values, found.recommended
    ([2.0, 30.0], 30.0)
    """
    from lowland.methods.embedding.tsne import TSNE  # here: methods are imported on first use

    X = check_data(X, n_jobs)
    check_argument("rows", rows, Integer(FEWEST_ROWS))
    if values is None:
        m = min(X.shape[0], rows)
        most = round((m - 1) / 3, 2)
        values = [value for value in PERPLEXITIES if value <= most]
        share = float(round(m / 100))
        apart = all(max(share / value, value / share) > SAME for value in values)
        if PERPLEXITIES[0] <= share <= most and apart:
            values.append(share)
    options: dict[str, Any] = {"rows": rows, "seed": seed, "n_jobs": n_jobs, "verbose": verbose}
    return parameter_plateau(X, TSNE, "perplexity", values, like=like, **options, **fixed)


def parameter_plateau(
    X: Any,
    method: type[Reducer] | str,
    parameter: str,
    values: Sequence[float],
    *,
    rows: int = 5_000,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    like: Any = None,
    **fixed: Any,
) -> Plateau:
    """The values of a parameter whose maps are as good as the best one.

    Two numbers for each value: the *excess*, the share of the 15 nearest rows that the map keeps
    minus the same share for data without structure (see :func:`null_rows`);
    and the *overlap*, the share of 15 map neighbors that maps of two halves of the rows, which have
    half of their rows in common, agree on. A value is on the plateau if both are within half a
    neighbor of 15 of the best, plus twice the standard error of the difference. If the best excess
    and the best overlap exclude each other, it is on the plateau if it is within half a neighbor
    of the best compromise.

    The default of the method is tried, too, and recommended if it lies on the plateau; else the
    value of the plateau nearest to it, or the middle one if there is no default.

    Each value costs two maps of ``rows`` rows and two of half as many.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n, p)
        The rows, prepared as for a map. More than 50 columns are reduced to as many principal
        components.
    method : class or str
        The method or its name, such as ``Isomap`` or ``"isomap"``.
    parameter : str
        A parameter of the method that is a number.
    values : sequence of float
        The values to try.
    rows : int, default=5000
        The largest number of rows to map; a sample is drawn if there are more.
    seed : int, default=0
        Of the sample, of the permutations and of the maps.
    n_jobs : int or None, default=None
        Threads; the result does not depend on their number.
    verbose : bool, default=False
        Show progress.
    like : array of shape (n, q) or None, default=None
        A map of all rows of X that the maps are turned to resemble; None: the first of them.
    **fixed
        Other parameters of the method.

    Returns
    -------
    Plateau
        Values ascending, with their excess, overlap and map; ``sentence`` states the result in
        words.

    Notes
    -----
    The number of rows matters: a perplexity, like a number of neighbors, covers another share of
    another number of rows. What is found for a sample holds for maps of about as many rows.

    The excess is about nearest rows. Groups in which the rows lie at random have none, even if the
    groups are clear, because the nearest rows within a group are random.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> X = swiss_roll(300, random_state=0).X
    >>> found = parameter_plateau(X, "isomap", "n_neighbors", [8, 60])
    >>> found.values, found.default
    ([8.0, 10.0, 60.0], 10.0)
    """
    cls = check_method(method)
    check_parameters(cls, parameter, fixed)
    declared: Any = cls.parameters()[parameter].default
    default = float(declared) if Real().allows(declared) else math.nan
    X = check_data(X, n_jobs)
    if like is not None:
        like = check_matrix(like, owner="parameter_plateau", argument="like")
        if len(like) != X.shape[0]:
            raise DataError(f"like has {len(like)} rows, but X has {X.shape[0]}; give a map of X.")
    tried = check_values(parameter, values, default)
    check_argument("rows", rows, Integer(FEWEST_ROWS))
    check_argument("seed", seed, Integer(0))
    some = _drawn(X, rows, seed, resolve_n_jobs(n_jobs))
    found = []
    with (
        Monitor(f"{cls.__name__} {parameter}", verbose=verbose) as monitor,
        monitor.phase("maps", total=4 * len(tried)) as phase,
    ):
        # the neighbors of the rows are found once, for all maps
        tables = (some.data, some.null)
        compared = [Comparison(Z, Z[:, :1], sample=None, n_jobs=n_jobs) for Z in tables]
        for value in tried:
            options = {parameter: value, **fixed, "n_jobs": n_jobs}
            Y, null_Y, *of_parts = _maps(cls, options, some, seed, phase)
            recalls = [
                one.with_map(Z).overlaps(NEIGHBORS)[:, -1] / NEIGHBORS
                for one, Z in zip(compared, (Y, null_Y), strict=True)
            ]
            found.append(_Measured(*recalls, _overlaps(some, of_parts, n_jobs), Y))
    known = [float(value) for value in tried]
    on = _on_plateau(found)
    best = _recommended(known, on, default)
    excess = [one.excess for one in found]
    overlap = [float(one.overlap.mean()) for one in found]
    noise = MARGIN + ERRORS * max(_error(one.recall) + _error(one.null_recall) for one in found)
    reference = found[0].Y if like is None else like[some.rows]
    shown_maps = [
        OtherMap(f"{parameter} {value:g}", some.rows, turned_like(reference, one.Y))
        for value, one in zip(known, found, strict=True)
    ]
    plateau = Plateau(parameter, known, excess, overlap, on, default, best, "", shown_maps)
    return plateau._replace(sentence=plateau_sentence(plateau, noise))


# --- rows and maps ----------------------------------------------------------------------------


def _drawn(X: Any, most: int, seed: int, threads: int) -> _Rows:
    """The rows of the maps. Two parts have m / 2 rows each, and m / 4 in common."""
    n, rng = X.shape[0], generator(seed)
    m = min(n, most)
    rows = np.sort(rng.choice(n, m, replace=False)) if m < n else np.arange(n)
    data = component_scores(X[rows], threads)
    null = without_structure(data, rng)
    order, quarter = rng.permutation(m), m // 4
    core = np.sort(order[:quarter])
    first, second = order[: 2 * quarter], np.r_[order[:quarter], order[2 * quarter : 3 * quarter]]
    return _Rows(rows, data, null, (np.sort(first), np.sort(second)), core)


def _maps(
    cls: type[Reducer], options: dict[str, Any], some: _Rows, seed: int, phase: Phase
) -> list[np.ndarray]:
    """Maps of the data, of the null, and of the two parts; the last with its own seed."""
    tables = [some.data, some.null, *(some.data[part] for part in some.parts)]
    maps = []
    for table, its_seed in zip(tables, (seed, seed, seed, seed + 1), strict=True):
        model = cls(**options, random_state=its_seed)
        try:
            maps.append(np.asarray(model.fit_transform(table), np.float64))
        except ParameterError as error:
            raise ParameterError(
                f"{error} (the smallest of the compared maps have {len(some.parts[0])} rows)"
            ) from error
        if not np.isfinite(maps[-1]).all():
            raise DataError(
                f"{model!r} leaves rows out of the map; give a value that keeps all of them."
            )
        phase.advance()
    return maps


# --- what is measured -------------------------------------------------------------------------


def _overlaps(some: _Rows, maps: list[np.ndarray], n_jobs: int | None) -> np.ndarray:
    """For each row of both parts, the share of map neighbors in one map that are so in the other.

    Neighbors among the common rows; 15, or a quarter of the rows if they are fewer than 60.
    """
    parts = zip(some.parts, maps, strict=True)
    one, other = (Y[np.searchsorted(part, some.core)] for part, Y in parts)
    k = min(NEIGHBORS, len(some.core) // 4)
    return Comparison(one, other, sample=None, n_jobs=n_jobs).overlaps(k)[:, -1] / k


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _on_plateau(found: list[_Measured]) -> list[bool]:
    """Which values are as good as the best, up to what may be chance, and a margin.

    The rows are the same for all values, so the errors are those of differences row by row.
    """
    best = max(found, key=lambda one: one.excess)
    steady = max(found, key=lambda one: float(one.overlap.mean()))
    short = []
    for one in found:
        error = math.hypot(
            _error(best.recall - one.recall), _error(best.null_recall - one.null_recall)
        )
        by_excess = best.excess - one.excess - ERRORS * error
        lost = steady.overlap - one.overlap
        by_overlap = float(lost.mean()) - ERRORS * _error(lost)
        short.append(max(by_excess, by_overlap, 0.0))
    return [each <= min(short) + MARGIN for each in short]


def _recommended(values: list[float], on: list[bool], default: float) -> float:
    plateau = [value for value, there in zip(values, on, strict=True) if there]
    if math.isnan(default):
        return plateau[(len(plateau) - 1) // 2]

    def away(value: float) -> float:
        """From the default: by their ratio if both are positive."""
        if value > 0 and default > 0:
            return abs(math.log(value / default))
        return abs(value - default)

    return min(plateau, key=away)
