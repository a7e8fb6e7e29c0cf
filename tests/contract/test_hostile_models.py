"""A model file with hostile contents is refused: every declared check is violated, one by one.

An index out of range, starts that fall, a wrong size, type or number: each is a ``ModelFileError``,
and never a crash. What a check cannot see gives a finite result, or an error that names it. The
violations are made from the declarations, so a new method is under contract without a line.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import lowland
from lowland._base import registry
from lowland._base.models import checks, codec
from lowland._base.models.checks import POSSIBLE, REQUIRED, sizes_of
from lowland._base.models.codec import _parts, _restored
from lowland.errors import LowlandError, ModelFileError
from lowland.preparation.preparation import Preparation
from lowland.workflow.orienting import Orientation
from support.cases import each
from support.methods import small

CLASSES = [
    *registry.all_methods(),
    *registry.all_selectors(),
    *registry.all_alignments(),
    Preparation,
    Orientation,
]
every_class = each("cls", CLASSES, ids=[cls.__name__ for cls in CLASSES])


@functools.cache
def _fitted(cls: type) -> bytes:
    """A small model, pickled; with excluded rows, landmarks, scatter and levels where it can."""
    rng = np.random.default_rng(7)
    X = np.exp(rng.standard_normal((40, 5)) @ rng.standard_normal((5, 5)) / 3)
    X[30:] += 50.0  # far away, so that they are excluded
    y = np.arange(40) % 3
    if cls is Orientation:
        return pickle.dumps(cls().fit(X[:, :3], X[:, 2:]))
    if cls is Preparation:
        frame = pl.DataFrame(X[:, :2], schema=["a", "b"], orient="row")
        frame = frame.with_columns(pl.Series("a", [None, *X[1:, 0]]), kind=pl.lit("x"))
        frame = frame.with_columns(
            answer=pl.Series(["yes", "no"] * 20),
            size=pl.Series(["low", "high"] * 20),
            hour=pl.Series([float(i % 24) for i in range(40)]),
            day=pl.Series([f"{1 + i % 28}.12.2020" for i in range(40)]),
            clock=pl.Series([f"{i % 24}:30" for i in range(40)]),
        )
        encoding = {
            "order": {"size": ["low", "high"]},
            "cyclic": {"hour": 24, "clock": "day"},
            "dates": ["day", "clock"],
        }
        return pickle.dumps(cls(scale="standard", missing="neighbors", **encoding).fit(frame))
    if cls in registry.all_alignments():
        pairs = np.column_stack([np.arange(20)] * 2)
        model = cls(3, n_neighbors=6, on_disconnected="largest", random_state=0)
        return pickle.dumps(model.fit([X, X[:35, :3]], correspondence=pairs))
    params = small(cls)
    names = cls.parameters()
    policy = names.get("on_disconnected")
    if policy is not None and policy.metadata["constraint"].allows("largest"):
        params |= {"on_disconnected": "largest"}
    params |= {"landmarks": 9} if "landmarks" in names else {}
    params |= {"n_landmarks": 9} if "n_landmarks" in names else {}
    params |= {"n_neighbors": 6} if "n_neighbors" in names else {}
    params |= {"n_features": 2} if "n_features" in names else {}
    model = cls(random_state=0, **params)
    if hasattr(model, "partial_fit"):
        targets = (y,) if cls.needs_target else ()
        return pickle.dumps(model.partial_fit(X, *targets))
    return pickle.dumps(model.fit(X, y))


def parts(cls: type) -> tuple[str, dict[str, Any], dict[str, Any]]:
    return _parts(pickle.loads(_fitted(cls)))


def declared(cls: type) -> dict[str, Any]:
    return {**cls.fitted_attributes, **REQUIRED, **POSSIBLE}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of files need not reach the disk, nor look for the same classes in folders."""
    monkeypatch.setattr("os.fsync", lambda file: None)
    monkeypatch.setattr(registry, "get_any", functools.cache(registry.get_any))


def refused(path: Any, cls: type, params: dict[str, Any], state: dict[str, Any], name: str) -> None:
    """The file with this state is refused by a message that names the attribute."""
    class_name = cls.__name__
    codec.write_model(path, class_name, params, state)
    with pytest.raises(ModelFileError, match=re.escape(cls.__name__)) as error:
        lowland.load(path)
    assert str(path) in str(error.value)
    assert name.removesuffix("_") in str(error.value), f"{name}: {error.value}"


@every_class
def test_the_model_itself_is_loaded(cls, tmp_path):
    codec.write_model(tmp_path / "m", *parts(cls))
    lowland.load(tmp_path / "m")


def with_entry(value: Any, entry: Any, place: int = -1) -> Any:
    """A copy of an array with another entry; for a number, the entry itself."""
    if not isinstance(value, np.ndarray):
        return type(value)(entry)
    changed = value.copy()
    changed.flat[place] = entry
    return changed


def violations(check: Any, value: Any, sizes: dict[str, int]) -> Iterator[Any]:
    """Values of the same type and shape as a correct one that contradict the check."""
    if isinstance(check, checks.Interval):
        yield from beyond(check, value, sizes)
    elif isinstance(check, checks.Starts):
        yield from wrong_starts(check, value)
    elif isinstance(check, checks.Ascending) and len(value) > 1:
        if value[0] != value[-1]:
            yield value[::-1].copy()
        if check.strict:
            yield with_entry(value, value[-2])
    elif isinstance(check, checks.Permutation):
        yield from (with_entry(value, entry) for entry in (0, -1, len(value) + 1, 2**31 - 1))
    if isinstance(check, checks.Distinct | checks.Permutation) and len(value) > 1:
        yield with_entry(value, value[0])


def wrong_starts(check: Any, value: np.ndarray) -> Iterator[np.ndarray]:
    """Starts that fall, that are outside of the axis, or that do not end with it."""
    middle, far = len(value) // 2, int(np.iinfo(value.dtype).max)
    for entry in (-1, value[-1] + 1, 100_000 + value[-1], far, -far - 1):
        yield with_entry(value, entry, middle)
    yield with_entry(value, 1, 0)
    yield with_entry(value, value[-1] + 1)
    if value[-1] > 0:
        yield with_entry(value, value[-1] - 1)
        yield value[::-1].copy()
    if check.strict:
        yield with_entry(value, value[middle - 1], middle)


def beyond(check: Any, value: Any, sizes: dict[str, int]) -> Iterator[Any]:
    """Values just outside the bounds of an interval, and far outside."""
    low, high = (checks.size_of(bound, sizes) for bound in (check.low, check.high))
    whole = np.asarray(value).dtype.kind in "iu"
    far = 2**62 if whole else 1e300
    entries = []
    if low is not None:
        entries += [low - 1, -far] + ([low] if check.outside == "low" else [])
    if high is not None:
        entries += [high + 1, far] + ([high] if check.outside == "high" else [])
    limit = np.iinfo(np.asarray(value).dtype).max if whole else np.inf
    yield from (with_entry(value, entry) for entry in entries if abs(entry) <= limit)


@every_class
def test_each_violation_of_a_check_is_refused(cls, tmp_path):
    _, params, state = parts(cls)
    sizes = sizes_of(state, pickle.loads(_fitted(cls)))
    for name, value in state.items():
        for check in declared(cls)[name].meaning if value is not None else ():
            assert check.flaw(value, sizes) is None
            for wrong in violations(check, value, sizes):
                refused(tmp_path / "m", cls, params, {**state, name: wrong}, name)


def wrong_kinds(value: Any, attribute: Any) -> Iterator[Any]:
    """Values of another type or number of dimensions than declared, not finite, or empty."""
    if not attribute.optional:
        yield None
    if not attribute.shape:
        yield from ("text" if attribute.type is not str else 7, [value], np.array(value), True)
        yield 10**30
        yield from (7, np.nan, np.inf, -np.inf) if attribute.type is float else (1.5,)
        return
    yield value[None]
    yield value.tolist()
    if not attribute.may_be_empty:
        yield value[:0]
    if attribute.type is float:
        for entry in (np.inf, -np.inf) if attribute.allows_nan else (np.nan, np.inf):
            wrong = value.copy()
            wrong.flat[-1] = entry
            yield wrong
        yield from (np.ones_like(value, kind) for kind in (np.float16, np.int64, np.complex128))
    if attribute.type is int:
        yield from (value.astype(kind) for kind in ("f8", "i2", "u8", "?"))
    if value.ndim == 2 and attribute.type is float:
        make = scipy.sparse.csc_matrix if attribute.sparse else scipy.sparse.csr_matrix
        yield make(value)


def wrong_sizes(name: str, state: dict[str, Any], cls: type) -> Iterator[Any]:
    """One entry more along an axis whose size another attribute has, too."""
    attributes, value = declared(cls), state[name]
    there = [other for other in state if other != name and state[other] is not None]
    others = {size for other in there for size in attributes[other].shape or ()}
    others |= {"n_features", *(other.removesuffix("_") for other in there)}
    for axis, size in enumerate(attributes[name].shape or ()):
        if size.isdigit() or size.partition(" + ")[0] in others:
            yield np.concatenate([value, value.take([-1], axis=axis)], axis=axis)


@every_class
def test_each_other_kind_or_size_is_refused(cls):
    class_name, params, state = parts(cls)
    for name, value in state.items():
        if value is None:
            continue
        wrong = [*wrong_kinds(value, declared(cls)[name]), *wrong_sizes(name, state, cls)]
        for number, other in enumerate(wrong):
            try:  # a wrong size may show in another attribute, so the message is not compared
                _restored(class_name, params, {**state, name: other})
            except ModelFileError:
                continue
            pytest.fail(f"{name}, violation {number}: {type(other).__name__} was accepted")


@every_class
def test_an_array_of_integers_has_a_check(cls):
    for name, attribute in cls.fitted_attributes.items():
        if attribute.type is int and attribute.shape:
            assert attribute.meaning, f"{name}: declare its check (_base/models/checks.py)"


@every_class
def test_parameters_that_contradict_the_state_are_refused(cls, tmp_path):
    class_name, params, state = parts(cls)
    given = {"metric": "precomputed", "kernel": "precomputed", "n_components": 4}
    for name, value in given.items():
        constraint = cls.parameters()[name].metadata["constraint"] if name in params else None
        if constraint is None or not constraint.allows(value) or "n_components_" in state:
            continue
        codec.write_model(tmp_path / "m", class_name, {**params, name: value}, state)
        with pytest.raises(ModelFileError, match="fit the model again"):
            lowland.load(tmp_path / "m")


@pytest.mark.slow
@every_class
def test_extreme_numbers_are_refused_at_the_door_or_by_name_later(cls):
    class_name, params, state = parts(cls)
    if cls is Preparation:
        return  # it takes frames; it divides and subtracts, and refuses nothing
    rows = np.exp(np.random.default_rng(8).standard_normal((3, 5)))
    for name, value in state.items():
        if np.asarray(value).dtype.kind != "f":
            continue
        for extreme in (0.0, 1e-300, -1e308, 1.7e308):
            wrong = np.full_like(value, extreme) if np.ndim(value) else extreme
            try:
                model = _restored(class_name, params, {**state, name: wrong})
            except ModelFileError:
                continue
            with warnings.catch_warnings(), contextlib.suppress(LowlandError):
                warnings.simplefilter("ignore", RuntimeWarning)
                assert model.transform(rows).shape == (3, model._n_features_out), name


@each(
    ("name", "place", "entry"),
    [
        ("edge_starts_", 30, 100_000),
        ("edge_starts_", 30, -1),
        ("edge_ends_", 3, -1),
        ("edge_ends_", 3, 60),
        ("landmarks_", 0, -1),
        ("landmarks_", 0, 60),
    ],
)
def test_an_index_lies_before_the_end_of_its_axis(tmp_path, name, place, entry):
    """Numbers, and not what the declaration proposes: the declaration itself is under test."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = lowland.Isomap().fit(X)
    getattr(model, name)[place] = entry
    model.save(tmp_path / "model.lowland")
    with pytest.raises(ModelFileError, match=rf"'{name}'\[{place}\] = {entry}, expected"):
        lowland.load(tmp_path / "model.lowland")
