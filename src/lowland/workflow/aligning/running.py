"""``align_tables``: several tables in one map, in one call."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._base import registry
from lowland._base.chain import JointModel
from lowland._base.errors import ParameterError, StoppedError, count, unknown_name
from lowland._base.interrupts import stopped_by_interrupt
from lowland._base.options import takes_options
from lowland.metrics.quality_table import NOT_MEASURED, Measures, measure_map
from lowland.tables.options import ALIGNING, TableOptions
from lowland.workflow._parameters import MAP_DEFAULTS, RENAMED, RUN_PARAMETERS, method_parameters
from lowland.workflow._stages import OptionalStages, Stages, peak_memory
from lowland.workflow.aligning.pairs import (
    FEWEST,
    HeldOut,
    held_out_rows,
    match_columns,
    measure_held_out,
    paired_rows,
)
from lowland.workflow.aligning.result import AlignedTables, Tables, Worth
from lowland.workflow.aligning.sets import TableSet, joint_table, prepared_sets, set_names
from lowland.workflow.fitting import Fit, first_class
from lowland.workflow.options import ALIGNED, Matching, RunOptions, RunSettings
from lowland.workflow.run import classes_in


def alignment_class() -> Any:
    """The method that aligns tables."""
    return registry.get_alignment("manifold_alignment")


@takes_options(
    matching=(Matching, tuple(Matching.declared())),
    table=(TableOptions, ALIGNING),
    settings=(RunSettings, ALIGNED),
)
def align_tables(
    data: Sequence[Any],
    *,
    method: str = "laplacian",
    matching: Matching,
    table: TableOptions,
    settings: RunSettings,
    **parameters: Any,
) -> AlignedTables:
    """Put two or more tables into one map, so that rows of the same object lie together.

    This is what ``lowland align`` does. Each table is read and prepared as :func:`make_map` does
    it, by itself: the tables may have different rows and columns. Which rows belong together is
    matched by a column of ids (``match``) or by their order (``same_order``); without either, the
    map rests on local patterns alone. Some pairs are held out of a second fit, which measures how
    well partners are found that were not known; the map itself is made with all pairs.

    Parameters
    ----------
    data : sequence of paths, data frames, arrays, sparse matrices or Datasets
        The tables, each as in :func:`make_map`. Options about a table hold for all of them; one
        that names a column holds for the tables that have it.
    method : {"laplacian", "procrustes"}, default="laplacian"
        As in :class:`lowland.ManifoldAlignment`.
    **parameters
        Parameters of :class:`lowland.ManifoldAlignment`, such as ``n_neighbors=20``.

    Returns
    -------
    AlignedTables
        The map, the model, what the held-out pairs tell, and methods that write them.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> from lowland.workflow import align_tables
    >>> X = iris().X
    >>> found = align_tables([X[:, :2], X[:, 2:]], same_order=True, names=["sepals", "petals"])
    >>> found.map.columns
    ['set', 'row', 'x', 'y']
    >>> [Y.shape for Y in found.coordinates]
    [(150, 2), (150, 2)]
    """
    cls = alignment_class()
    if renamed := set(parameters) & {*RENAMED.values()}:
        known = [name for name in cls.parameters() if name not in RUN_PARAMETERS]
        raise ParameterError(unknown_name("parameter", renamed.pop(), known))
    given = {**method_parameters(cls, parameters), "method": method}
    told = f"match={matching.match!r}, same_order={matching.same_order}"
    options = settings.of(table, f"lowland.workflow.align_tables([...], {told})")
    return run_alignment(data, given, matching, options)


def run_alignment(
    data: Sequence[Any], given: dict[str, Any], matching: Matching, options: RunOptions
) -> AlignedTables:
    """Read, prepare, match, fit, measure."""
    cls, stages = alignment_class(), Stages()
    columns = _check(data, matching, options)
    names = set_names(data, matching.names)
    how = dataclasses.replace(options.table, missing_values_taken=cls.allows_nan)
    if options.settings.color is not None:
        how = dataclasses.replace(how, kept=(options.settings.color,))
    with stages.timed("reading"):
        sets = prepared_sets(data, names, how, columns, options.note)
        joint, label_of_set = joint_table(sets, options.settings.color)
        pairs = paired_rows(sets, columns, matching.same_order, options.settings.spelling)
    for note in pairs.notes:
        options.note(note)
    sources = [os.fspath(each) for each in data if isinstance(each, str | os.PathLike)]
    # the label that is most likely the classes; not the name of the set, which comes first
    label = first_class(dataclasses.replace(joint, labels=joint.labels[:, 1:]))
    tables = Tables(sets, joint, label_of_set, pairs, sources, options.settings.color or label)
    fit, maps = _fitted(tables, {**MAP_DEFAULTS, **given}, options.settings, stages)
    if fit.stopped:
        options.note("stopped; the map computed so far is kept")
    model = JointModel(names, [one.preparation for one in sets], fit.estimator)
    fit = fit._replace(model=model)
    keeper, worth = OptionalStages(), Worth([NOT_MEASURED for _ in sets])
    if options.settings.measure:
        with stages.timed("measuring"):
            work = functools.partial(_measured, sets, maps, options.settings.n_jobs)
            measures = keeper.attempt("measures", work, worth.measures)
            worth = Worth(measures, *_trial(tables, matching, fit, keeper))
        told = pairs.rows is None or "held_out" in keeper.lost or not matching.hold_out
        if worth.held_out is None and not told:
            options.note(f"no pairs were held out: {worth.reason}")
    return AlignedTables(tables, fit, worth, options.command, stages, keeper)


def _check(data: Sequence[Any], matching: Matching, options: RunOptions) -> list[str] | None:
    """Refuse what does not go together, before anything is read."""
    say = options.settings.spelling.option
    if isinstance(data, str) or not isinstance(data, list | tuple) or len(data) < 2:
        n = len(data) if isinstance(data, list | tuple) else 1
        raise ParameterError(
            f"an alignment puts several tables into one map, and {count(n, 'table')} "
            f"{'was' if n == 1 else 'were'} given; give two or more."
        )
    if matching.match is not None and matching.same_order:
        raise ParameterError(
            f"{say('match')} and {say('same_order')} were given; rows are matched by ids or by "
            "their order."
        )
    if matching.match is not None and options.table.id_column is not None:
        raise ParameterError(
            f"{say('match')} names the column of ids; leave {say('id_column')} out."
        )
    return match_columns(matching.match, len(data), say("match"))


def _fitted(
    tables: Tables, parameters: dict[str, Any], options: RunSettings, stages: Stages
) -> tuple[Fit, list[np.ndarray]]:
    cls, sets, log = alignment_class(), tables.sets, []
    few = min(sets, key=lambda one: one.numbers.shape[0])
    most = few.numbers.shape[0] - 1  # neighbors that a row of the smallest table has
    if "n_neighbors" not in parameters and 0 < most < cls.parameters()["n_neighbors"].default:
        parameters = {**parameters, "n_neighbors": most}
        rows = count(most + 1, "row")
        log.append(f"{count(most, 'neighbor')} of each row, because {few.name} has only {rows}")
    estimator = cls(
        **parameters, random_state=options.seed, n_jobs=options.n_jobs, verbose=options.verbose
    )
    rows = tables.pairs.rows
    with peak_memory() as peak:
        start = time.perf_counter()
        with stages.timed("fitting"), stopped_by_interrupt(estimator) as stop:
            maps = estimator.fit_transform([one.numbers for one in sets], correspondence=rows)
        seconds = time.perf_counter() - start
    estimator.set_params(verbose=False)  # progress bars are a matter of this run only
    name, maps = registry.snake_case(cls.__name__), [np.asarray(Y) for Y in maps]
    made = (name, estimator, None, np.vstack(maps), seconds, peak.n_bytes)
    return Fit(*made, stop.asked, log), maps


def _measured(
    sets: Sequence[TableSet], maps: Sequence[np.ndarray], n_jobs: int | None
) -> list[Measures]:
    """Each set's part of the map against the prepared rows of that set."""
    cls, found = alignment_class(), []
    for one, Y in zip(sets, maps, strict=True):
        labels = classes_in(one.table, first_class(one.table))
        known = {"metric": one.prepared.metric, "n_jobs": n_jobs}
        seconds = cls.estimate(*one.numbers.shape).seconds
        rows = one.prepared.measured_rows
        found.append(measure_map(rows, Y, labels=labels, map_seconds=seconds, **known))
    return found


def _trial(
    tables: Tables, matching: Matching, fit: Fit, keeper: OptionalStages
) -> tuple[HeldOut | None, str]:
    """What held-out pairs tell, or why none were held out."""
    rows = tables.pairs.rows
    if rows is None:
        return None, "no pairs are known"
    if not matching.hold_out:
        return None, "it was not asked for"
    chosen = held_out_rows(len(rows), matching.hold_out, fit.estimator.random_state)
    if not chosen.any():
        few = count(len(rows), "object")
        return None, f"only {few} are known in several tables; {FEWEST} are needed"
    Xs = [one.numbers for one in tables.sets]

    def measured() -> HeldOut | None:
        trial = type(fit.estimator)(**fit.estimator.get_params())
        try:
            with stopped_by_interrupt(trial) as stop:
                maps = trial.fit_transform(Xs, correspondence=rows[~chosen])
        except StoppedError as error:
            raise KeyboardInterrupt from error  # ends this stage, and no other
        if stop.asked:
            raise KeyboardInterrupt
        return measure_held_out(Xs, rows, chosen, [np.asarray(Y) for Y in maps])

    found = keeper.attempt("held_out", measured, None)
    return found, keeper.lost.get("held_out", "")
