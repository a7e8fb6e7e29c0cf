"""Every declared parameter changes something: one that is ignored fails, alone and in company."""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from lowland import MDS, PCA
from lowland._base import registry
from lowland._base.chain import Chain
from lowland.errors import DataError, ParameterError
from lowland.preparation.preparation import Preparation
from support.cases import Cases, each
from support.changes import CHANGES, CIRCUMSTANCES, UNUSED_WITH, Change, Nothing
from support.held_out import WEIGHTS, Data, data_of
from support.methods import small
from support.other_values import other_values

ESTIMATORS = [*registry.all_methods(), *registry.all_selectors(), Preparation]
RUN = ("n_jobs", "verbose", "callback")  # by promise they change no byte; tested below
ROUNDING = 1e-7
# Scores of 40 rows have few values: two seeds agree in up to a third of cases, and 3^-20 < 1e-9.
UNSEEDED = 20
REFUSAL = "refusal"  # of every other value, by an error that names the parameter


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "estimator" in metafunc.fixturenames:
        metafunc.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)


def columns_of(kind: str) -> Data:
    """Data for selectors and for Preparation: not negative, with classes."""
    rng = np.random.default_rng(10)
    scores, mix = rng.gamma(2.0, size=(40, 6)), rng.random((6, 6))
    X, new = scores @ mix, rng.gamma(2.0, size=(8, 6)) @ mix
    score = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    y = np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8] if kind == "levels" else [0.5]))
    if kind == "counts":
        X, new = np.round(X), np.round(new)
    if kind == "mixed":
        return Data(mixed_columns(X), mixed_columns(new), y)
    if kind == "gaps":
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    return Data(X, new, y)


def mixed_columns(X: np.ndarray) -> pl.DataFrame:
    """Numbers beside text, hours and days."""
    rows = range(len(X))
    frame = pl.DataFrame(X[:, :2], schema=["a", "b"], orient="row")
    return frame.with_columns(
        size=pl.Series([["low", "medium", "high"][i % 3] for i in rows]),
        hour=pl.Series([i * 7.0 % 24 for i in rows]),
        day=pl.Series([f"2020-12-{1 + i % 5:02d}" for i in rows]),
    )


def usual(cls: type) -> dict[str, Any]:
    """Parameters for few rows and few steps."""
    suited: dict[str, Any] = small(cls) if "n_components" in cls.parameters() else {}
    if cls.__name__ in ("PCA", "KernelPCA"):
        suited["n_components"] = 2
    if "max_iter" in cls.parameters():
        suited["max_iter"] = 15 if "n_init" in cls.parameters() else 60
    if cls.__name__ == "UMAP":
        suited["n_epochs"] = 60
    if "early_exaggeration_iter" in cls.parameters():
        suited["early_exaggeration_iter"] = 20
    if "n_features" in cls.parameters():
        suited["n_features"] = 2
    if "cv" in cls.parameters():
        suited["cv"] = 2
    if "random_state" in cls.parameters():
        suited["random_state"] = 0
    return suited


class Outcome:
    """What a fit gives: places, attributes and warnings."""

    def __init__(self, cls: type, params: dict[str, Any], data: str) -> None:
        made_of_rows = "n_components" in cls.parameters()
        X, new, y = data_of(data) if made_of_rows else columns_of(data)
        self.model = cls(**{**usual(cls), **params})
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            self.places = [self.model.fit_transform(X, y), self.model.transform(new)]
            Z = self.places[0][:5] * 0.9
            for name, given in (("inverse_transform", Z), ("predict_proba", new)):
                if hasattr(self.model, name) and self.is_possible(name):
                    self.places.append(getattr(self.model, name)(given))
        self.warnings = sorted({str(w.message)[:40] for w in heard})

    def is_possible(self, name: str) -> bool:
        given = self.model.get_params().get("metric", self.model.get_params().get("kernel"))
        if name != "inverse_transform":
            return True
        if type(self.model).__name__ == "CurvilinearComponentAnalysis":
            return given == "euclidean"  # rows are found by their Euclidean distances
        return not (isinstance(given, str) and given == "precomputed")

    def differs(self, other: Outcome, where: str) -> bool:
        """Whether the places, their bytes, the warnings or an attribute of that name differ."""
        if where == "warning":
            return self.warnings != other.warnings
        if where == "bytes":
            return [p.tobytes() for p in self.places] != [p.tobytes() for p in other.places]
        if where == "places":
            # one of them may have no inverse
            both = zip(self.places, other.places, strict=False)
            return any(far_apart(a, b) for a, b in both)
        return far_apart(getattr(self.model, where), getattr(other.model, where))


def far_apart(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return (a is None) != (b is None)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return True
    if a.dtype.kind not in "fiub" or not a.size:
        return not np.array_equal(a, b)
    a, b = a.astype(float), b.astype(float)
    if np.isnan(a).all() or np.isnan(b).all():
        return not np.array_equal(a, b, equal_nan=True)
    return bool(np.nanmax(np.abs(a - b)) > ROUNDING * max(np.nanmax(np.abs(a)), 1e-300))


_KNOWN: dict[Any, Outcome] = {}


def outcome(cls: type, params: dict[str, Any], data: str) -> Outcome:
    """Of a fit with these parameters; computed once."""
    key = (cls, data, tuple(sorted((k, named(v)) for k, v in params.items())))
    if key not in _KNOWN:
        _KNOWN[key] = Outcome(cls, params, data)
    return _KNOWN[key]


def named(value: Any) -> str:
    return f"array {id(value)}" if isinstance(value, np.ndarray) else repr(value)


def changes_of(cls: type) -> dict[str, Any]:
    """What is listed in ``support.changes``, and for the other parameters what can be derived."""
    table = CHANGES.get(cls.__name__, {})
    declared = [name for name in cls.parameters() if name not in RUN]
    assert set(table) <= set(declared), (
        f"{cls.__name__} has no parameter {set(table) - set(declared)}"
    )
    return {name: change_of(cls, name) for name in declared}


def change_of(cls: type, name: str) -> Change | Nothing | None:
    return CHANGES.get(cls.__name__, {}).get(name) or derived_change(cls, name)


def default_data(cls: type) -> str:
    """Rows for maps, which are in classes if there must be some; see also ``columns_of``."""
    return "classes" if "n_components" in cls.parameters() and cls.needs_target else "rows"


@functools.cache
def derived_change(cls: type, name: str) -> Change | None:
    """A change that nobody listed: by another value alone, or in the usual circumstances."""
    return next(derived_changes(cls, name), None)


def derived_changes(cls: type, name: str) -> Iterator[Change]:
    """All of them, and at last a value that is refused by an error that names the parameter."""
    refused = []
    for change in possible_changes(cls, name):
        try:
            plain = outcome(cls, change.given, change.data)
            found = outcome(cls, {**change.given, name: change.value}, change.data)
        except ParameterError as error:
            refused += [change._replace(shows=REFUSAL)] if name in str(error) else []
            continue
        except DataError:  # such as more neighbors than rows
            continue
        where = next((w for w in ("places", *cls.fitted_attributes) if found.differs(plain, w)), "")
        if where:
            yield change._replace(shows=where)
    yield from refused[:1]


def possible_changes(cls: type, name: str) -> list[Change]:
    constraint, data = cls.parameters()[name].metadata["constraint"], default_data(cls)
    alone = [Change(other, data=data) for other in other_values(constraint, in_use(cls, name))]
    known = CIRCUMSTANCES.get(name, [])
    return alone + [change for change in known if set(change.given) <= set(cls.parameters())]


def in_use(cls: type, name: str) -> Any:
    """The value of a parameter that is not given."""
    return usual(cls).get(name, cls.parameters()[name].default)


def test_another_value_of_a_parameter_changes_the_result(estimator):
    results = Cases()
    for name, change in changes_of(estimator).items():

        def check(name=name, change=change):
            assert change is not None, (
                f"{estimator.__name__}: no other value of {name} changes a place or an attribute. "
                "If it takes other parameters or data to show, name them in the WITNESS of its "
                "reference test, or in support.changes; a random_state that is not used is FIXED."
            )
            if not isinstance(change, Change):
                data = default_data(estimator)
                plain = outcome(estimator, {}, data)
                other = outcome(estimator, {name: change.value}, data)
                assert not other.differs(plain, "bytes"), change.reason
                return
            if change.shows == REFUSAL:
                return  # found to be refused when it was derived
            given, value = change.given, change.value
            before = given.get(name, in_use(estimator, name))
            assert named(before) != named(value), "the other value is the same"
            plain = outcome(estimator, given, change.data)
            other = outcome(estimator, {**given, name: value}, change.data)
            assert other.differs(plain, change.shows), f"{name}={value!r} changes no {change.shows}"

        results.run(name, check)
    results.finish()


def test_without_a_seed_every_fit_is_another_one(estimator):
    """Where another seed shows, None draws one; a constant in its place would show here."""
    if "random_state" not in estimator.parameters():
        assert estimator is Preparation
        return
    change = change_of(estimator, "random_state")
    if not isinstance(change, Change):  # it is listed as unused
        return
    params = {**change.given, "random_state": None}
    fits = (Outcome(estimator, params, change.data) for _ in range(1 + UNSEEDED))
    first = next(fits)
    assert any(fit.differs(first, change.shows) for fit in fits), "random_state=None is a constant"


# Pairs of these act on the same formula; the others choose a start, a stop or a number of columns.
ASIDE = {"n_components", "random_state", "init", "n_init", "max_iter", "tol", "cv", "scoring"}
ASIDE |= {"n_features", "estimator", "direction"}


def test_a_parameter_is_not_ignored_beside_another_one(estimator):
    """With a changed, b still changes the result, unless its documentation says otherwise."""
    table = {
        name: change
        for name, change in changes_of(estimator).items()
        if isinstance(change, Change) and change.shows != REFUSAL and name not in ASIDE
    }
    unused, idle = UNUSED_WITH.get(estimator.__name__, set()), []
    results = Cases()
    for a, b in itertools.permutations(table, 2):
        if not may_meet(a, table[a], b, table[b]):
            continue

        def check(a=a, b=b):
            if (a, b) in unused:
                idle.append((a, b))
                with contextlib.suppress(ParameterError):  # refused: it is not ignored silently
                    used = shows_beside(estimator, a, table[a], b, table[b])
                    assert not used, f"{b} is used with {a}"
                return
            if {a, b} <= set(CHANGES.get(estimator.__name__, {})):  # both values were chosen
                shown = shows_beside(estimator, a, table[a], b, table[b])
            else:
                shown = any(derived_pairs(estimator, a, b))
            assert shown, f"{b} is ignored with {a}={table[a].value!r}"

        results.run(f"{a}, {b}", check)
    if results.count:
        results.finish()
    assert unused == set(idle), f"not tried: {unused - set(idle)}"


def may_meet(a: str, first: Change, b: str, second: Change) -> bool:
    """Whether b can show beside the changed a: on the same data, with the same a."""
    given = {**first.given, a: first.value}
    needs = any(named(given.get(k, v)) != named(v) for k, v in second.given.items())
    return not needs and b not in given and first.data == second.data


def shows_beside(cls: type, a: str, first: Change, b: str, second: Change) -> bool:
    given = {**second.given, **first.given, a: first.value}
    plain = outcome(cls, given, second.data)
    return outcome(cls, {**given, b: second.value}, second.data).differs(plain, second.shows)


def derived_pairs(cls: type, a: str, b: str) -> Iterator[bool]:
    """Whether b shows beside a, for each pair of their values; extreme ones may hide each other."""
    yield from _shown(cls, a, b, [(change_of(cls, a), change_of(cls, b))])
    listed = CHANGES.get(cls.__name__, {})
    both = ([listed[n]] if n in listed else derived_changes(cls, n) for n in (a, b))
    yield from _shown(cls, a, b, itertools.product(*both))


def _shown(cls: type, a: str, b: str, pairs: Iterable[tuple[Change, Change]]) -> Iterator[bool]:
    for first, second in pairs:
        if may_meet(a, first, b, second) and REFUSAL not in (first.shows, second.shows):
            with contextlib.suppress(ParameterError, DataError):
                yield shows_beside(cls, a, first, b, second)


# --- parameters of the run --------------------------------------------------------------------


def fitted_to(estimator: type, **params: Any) -> tuple[Any, list[bytes]]:
    """The model, and the bytes of what it gives."""
    found = Outcome(estimator, params, default_data(estimator))
    return found.model, [place.tobytes() for place in found.places]


def test_n_jobs_sets_the_number_of_threads_and_changes_no_byte(estimator, monkeypatch):
    if "n_jobs" not in estimator.parameters():
        assert estimator is Preparation
        return
    threads, fit = [], estimator._fit

    def listening(self, X, y, run):
        threads.append(run.threads)
        return fit(self, X, y, run)

    monkeypatch.setattr(estimator, "_fit", listening)
    one, two = (fitted_to(estimator, n_jobs=n)[1] for n in (1, 2))
    assert threads == [1, 2]
    assert one == two


def test_verbose_prints_progress_and_changes_no_byte(estimator, capsys):
    if "verbose" not in estimator.parameters():
        assert estimator is Preparation
        return
    _, silent = fitted_to(estimator)
    assert capsys.readouterr() == ("", "")
    _, spoken = fitted_to(estimator, verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert estimator.__name__ in err
    assert silent == spoken


def test_a_callback_is_called_after_each_step_and_can_stop(estimator):
    if "callback" not in estimator.parameters():
        return
    steps: list[int] = []
    model, heard = fitted_to(estimator, callback=lambda step, Y, loss: steps.append(step))
    assert steps == list(range(1, model.n_iter_ + 1))
    assert heard == fitted_to(estimator)[1]
    model, _ = fitted_to(estimator, callback=lambda step, Y, loss: step == 3)
    assert model.n_iter_ == 3


# --- when to stop -----------------------------------------------------------------------------

BY_STRESS: dict[str, list[dict[str, Any]]] = {
    "MDS": [{}, {"transformation": "interval"}, {"weights": WEIGHTS}, {"pairs": "sparse"}],
    "NonmetricMDS": [{}, {"ties": "secondary"}],
    "Sammon": [{}, {"power": 2}],
    "LinearMDS": [{}, {"power": 0}, {"power": 2}],
    "TCIE": [{}, {"criterion": "path"}],
    "LocalMDS": [{"tau": 1.0}],  # one descent; other values are reached by several
    "PHATE": [{}],
}
DESCENTS = [
    (method, params)
    for method in registry.all_methods()
    if "n_iter_" in method.fitted_attributes and "tol" in method.parameters()
    for params in BY_STRESS.get(method.__name__, [{}])
]
SHOWN = [f"{method.__name__} {sorted(params)}" for method, params in DESCENTS]
LOOK_BACK, LOOK = 5, 50  # the decrease per step is measured over so many steps


# Of several descents one after the other, tol ends the last one, which may have few steps.
ANNEALED = {
    "CurvilinearComponentAnalysis",
    "CurvilinearDistanceAnalysis",
    "DDHDS",
    "MVU",  # rounds of descents
    "DiffeomorphicMap",
    "NonlinearPCA",  # tol is in units of the variance
    "BackConstrainedGPLVM",  # a log-likelihood has no zero: tol is a difference
    "BayesianGPLVM",
    "GPLVM",  # as for GTM
    "GTM",  # a log-likelihood has no zero: tol is a difference
    "PPCA",  # the same; and these rows have no gaps
    "PrincipalCurve",  # first the smoothness settles, then the curve
    "ElasticMap",
    "TradeoffMDS",
}


@each("tol", [1e-2, 1e-3])
@each(("descending", "params"), DESCENTS, ids=SHOWN)
def test_the_fit_stops_when_the_loss_falls_by_less_than_tol_of_itself(descending, params, tol):
    stress = descending.__name__ in BY_STRESS
    usually = {**usual(descending), **params, "tol": tol, "max_iter": 300 if stress else 1000}
    model = descending(**usually).fit(data_of("rows").X)
    assert model.n_iter_ < usually["max_iter"], "choose a larger tol"
    if descending.__name__ in ANNEALED:
        return
    losses = model.loss_history_
    if stress:  # the root of the loss for "interval", stress-1 and relative stress
        roots = descending.__name__ in ("NonmetricMDS", "PHATE")
        power = 2 if params.get("transformation") or roots else 1
        before, after = losses[:-LOOK_BACK] ** power, losses[LOOK_BACK:] ** power
        shares = (before - after) / (LOOK_BACK * np.abs(before))
    else:  # the last loss is that of the last map, the others are those of every 50th step
        looks = losses[:-1][-(-usually["early_exaggeration_iter"] // LOOK) :]
        shares = np.abs(looks[:-1] - looks[1:]) / (LOOK * np.abs(looks[1:]))
    assert shares[-1] <= tol * (1 + 1e-9)
    assert (shares[:-1] > tol * (1 - 1e-9)).all(), "the fit went on"


@each("scale", [1000.0, 1e-3])
@each(("descending", "params"), DESCENTS, ids=SHOWN)
def test_the_unit_of_the_data_does_not_change_the_number_of_steps(descending, params, scale):
    X = data_of("rows").X
    most = 3000 if descending.__name__ in ANNEALED else 300
    usually = {**usual(descending), **params, "tol": 1e-3, "max_iter": most}
    plain, other = (descending(**usually).fit(A) for A in (X, scale * X))
    assert 0 < plain.n_iter_ < most
    if descending.__name__ == "MVU":  # its last round may end a few steps earlier or later
        assert abs(other.n_iter_ - plain.n_iter_) < 200
        return
    assert other.n_iter_ == plain.n_iter_


@each("scale", [1000.0, 1e-3])
@each("transformation", ["ratio", "interval"])
@each("tol", [1e-2, 1e-4])
def test_the_unit_of_the_weights_does_not_change_the_number_of_steps(transformation, tol, scale):
    X = data_of("rows").X
    plain, other = (
        MDS(transformation=transformation, weights=W, tol=tol).fit(X)
        for W in (WEIGHTS, scale * WEIGHTS)
    )
    assert other.n_iter_ == plain.n_iter_ > LOOK_BACK
    np.testing.assert_allclose(other.embedding_, plain.embedding_, atol=1e-6)


# --- setting parameters -----------------------------------------------------------------------


def test_parameters_are_set_all_or_none(estimator):
    """An unknown name, first or last, leaves the known ones as they were."""
    model, before = estimator(), estimator().get_params()
    known = {name: object() for name in estimator.parameters()}
    for params in ({**known, "no_such": 1}, {"no_such": 1, **known}):
        with pytest.raises(ParameterError, match="no_such"):
            model.set_params(**params)
        assert model.get_params() == before


def test_parameters_of_a_model_are_set_all_or_none(estimator):
    if "estimator" not in estimator.parameters():
        return
    alone, given = estimator(), estimator(estimator=LogisticRegression())
    for model, wrong in ((alone, "estimator__C"), (given, "estimator__no_such")):
        before = model.get_params(deep=True)
        with pytest.raises((ParameterError, ValueError), match=r"no_such|is None"):
            model.set_params(**{"cv": 3, "estimator__tol": 0.5, wrong: 1.0})
        assert model.get_params(deep=True) == before
    both = alone.set_params(estimator=LogisticRegression(), estimator__C=0.5, cv=4)
    assert (both.estimator.C, both.cv) == (0.5, 4)


def test_parameters_of_a_chain_are_set_in_all_steps_that_have_them_or_nowhere():
    chain = Chain([Preparation(), PCA(), MDS()])
    with pytest.raises(ParameterError, match="no_such"):
        chain.set_params(n_jobs=1, no_such=1)
    assert [step.get_params().get("n_jobs") for step in chain.steps] == [None, None, None]
    chain.set_params(n_jobs=1, tol=0.5)
    assert [step.get_params().get("n_jobs") for step in chain.steps] == [None, 1, 1]
    assert chain.last.tol == 0.5
