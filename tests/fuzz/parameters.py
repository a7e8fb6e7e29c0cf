"""Random values of parameters, from their declared constraints: inside, at the edge, outside."""

from __future__ import annotations

import fractions
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.data import chance, pick
from fuzz.rules import UserFault
from lowland._base import constraints

# Parameters that only cost time: what they do is seen with small numbers.
EFFORT = {"max_iter": 60, "early_exaggeration_iter": 40, "n_init": 3, "cv": 6, "degree": 40}
GIANTS = (10**5, 2**31 - 1, 2**31, 2**63, 2**64, 10**30)
FOREIGN: tuple[Any, ...] = (
    "3", "", "nan", None, True, 1.5, -1, 0, float("nan"), float("inf"), 10**400, 1j, [], [1], {},
    (2, 3), b"2", np.float32(0.5), np.int8(2), np.array(2), np.array([1.0, 2.0]), object(),
    fractions.Fraction(1, 3), "eu clidean", "\x00", np.str_("euclidean"),
)  # fmt: skip


def random_parameters(
    rng: np.random.Generator, cls: Any, n: int, p: int, share: float = 0.25
) -> dict[str, Any]:
    """Some of the parameters of a class."""
    chosen: dict[str, Any] = {}
    for name, field in cls.parameters().items():
        if name in EFFORT and cls.__module__.split(".")[1] != "selection":
            chosen[name] = int(rng.integers(0 if name != "n_init" else 1, EFFORT[name] + 1))
        if name in ("random_state", "verbose") or not chance(rng, share):
            continue
        value = draw(rng, field.metadata["constraint"], name, n, p)
        if name not in EFFORT or not _is_large(value, EFFORT[name]):
            chosen[name] = value
    if _is(chosen.get("metric"), "minkowski") and chance(rng, 0.8):
        chosen["metric_params"] = {"p": pick(rng, [1, 1.5, 2, 3, 0.5, np.inf, 50])}
    if "random_state" in cls.parameters():
        chosen["random_state"] = random_seed(rng) if chance(rng, 0.1) else 0
    return chosen


def random_seed(rng: np.random.Generator) -> Any:
    return pick(rng, [0, 1, 2**32, 2**64, 10**40, -1, 1.0, "0", None, np.random.default_rng(3)])


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name


def _is_large(value: Any, limit: int) -> bool:
    try:
        return bool(value > limit)
    except (TypeError, ValueError):
        return False


def draw(
    rng: np.random.Generator, constraint: constraints.Constraint, name: str, n: int, p: int
) -> Any:
    """A value for a parameter: mostly allowed, sometimes at an end, seldom foreign."""
    if chance(rng, 0.04):
        return pick(rng, FOREIGN)
    if isinstance(constraint, constraints.Either):
        return draw(rng, pick(rng, constraint.options), name, n, p)
    return DRAW[type(constraint)](rng, constraint, name, n, p)


def _integer(rng: np.random.Generator, of: constraints.Integer, name: str, n: int, p: int) -> Any:
    low = 0 if of.low is None else of.low
    if name == "n_jobs":
        return pick(rng, [1, 2, 3, -1, -2, 0, 64, *(GIANTS if chance(rng, 0.2) else ())])
    if chance(rng, 0.6):
        return int(rng.integers(low, (low + 8 if of.high is None else of.high) + 1))
    near = [low, low - 1, n - 2, n - 1, n, n + 1, p, p + 1, np.int64(low + 1)]
    near += [of.high, of.high + 1] if of.high is not None else []
    return pick(rng, [*near, *GIANTS] if chance(rng, 0.3) else near)


def _real(rng: np.random.Generator, of: constraints.Real, name: str, n: int, p: int) -> Any:
    low, high = max(of.low, -1e308), min(of.high, 1e308)
    if chance(rng, 0.6):
        if np.isfinite(of.high) and np.isfinite(of.low):
            return float(rng.uniform(low, min(high, low + 100)))
        return float(max(low, 0) + 10.0 ** rng.uniform(-3, 2))
    ends = [low, high, np.nextafter(low, high), np.nextafter(high, low), 5e-324, 1e-300, 1e-12]
    ends += [1e12, 1e300, low - 1, high + 1, 0, 1, np.float32(0.3), float(n)]
    return pick(rng, ends)


def _one_of(rng: np.random.Generator, of: constraints.OneOf, name: str, n: int, p: int) -> Any:
    return pick(rng, of.choices)


def _several(rng: np.random.Generator, of: constraints.Several, name: str, n: int, p: int) -> Any:
    if name == "priors" and chance(rng, 0.6):
        shares = rng.random(3) + 0.1
        return list(shares / shares.sum())
    made = [draw(rng, of.each, name, n, p) for _ in range(int(rng.integers(0, 4)))]
    if chance(rng, 0.8):
        return made
    try:
        return np.array(made)
    except (ValueError, OverflowError):
        return made


def _array(rng: np.random.Generator, of: constraints.Array, name: str, n: int, p: int) -> Any:
    shape = pick(rng, [(n, 2), (n, 2), (n, n), (n, 3), (n + 1, 2), (n,), (0, 0), (p, 2)])
    made = rng.standard_normal(shape)
    if chance(rng, 0.3) and made.size:
        made.flat[0] = pick(rng, [np.nan, np.inf, 1e300, -1e300, 0.0])
    with np.errstate(all="ignore"):
        return pick(rng, [made, made, np.abs(made), made.astype(np.float32), made.astype(int)])


def _mapping(rng: np.random.Generator, of: constraints.Mapping, name: str, n: int, p: int) -> Any:
    return pick(
        rng,
        [{}, {"p": 3}, {"p": 0.3}, {"p": np.nan}, {"p": "x"}, {"q": 1}, {1: 2}, {"p": 10**400},
         {"p": None}, {"p": -1}, {"w": [1, 2]}],
    )  # fmt: skip


def _text(rng: np.random.Generator, of: constraints.Text, name: str, n: int, p: int) -> Any:
    return pick(rng, ["accuracy", "r2", "neg_mean_squared_error", "roc_auc", "nonsense"])


def _having(rng: np.random.Generator, of: constraints.Having, name: str, n: int, p: int) -> Any:
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold, LeaveOneOut
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if name == "cv":
        shuffled = KFold(3, shuffle=True, random_state=0)
        return pick(rng, [KFold(2), shuffled, LeaveOneOut(), KFold(500)])
    tree = DecisionTreeClassifier(random_state=0)
    return pick(rng, [DummyClassifier(), Ridge(), KNeighborsClassifier(3), tree])


# --- functions of the user ------------------------------------------------------------------------


def _raising(*arguments: Any) -> float:
    raise UserFault("the function of the user fails")


def _euclidean(a: np.ndarray, b: np.ndarray, **more: Any) -> float:
    return float(np.sqrt(((a - b) ** 2).sum()))


def _writing(a: np.ndarray, b: np.ndarray) -> float:
    try:
        a[:] = 0.0
    except ValueError:  # read-only, as it should be
        return 1.0
    return 2.0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "euclidean": _euclidean,
    "constant": lambda *a: 1.0,
    "zero": lambda *a: 0.0,
    "negative": lambda a, b: float((a - b).sum()),
    "always negative": lambda *a: -1.0,
    "nan": lambda *a: float("nan"),
    "sometimes nan": lambda a, b: float("nan") if a[0] > b[0] else 1.0,
    "inf": lambda *a: float("inf"),
    "giant": lambda *a: 1e308,
    "asymmetric": lambda a, b: abs(float(a[0] - 2 * b[0])),
    "text": lambda *a: "far",
    "none": lambda *a: None,
    "array": lambda *a: np.ones(3),
    "complex": lambda *a: 1j,
    "integer": lambda *a: 10**400,
    "raising": _raising,
    "writing": _writing,
    "wrong signature": lambda: 1.0,
}


def _function(rng: np.random.Generator, of: constraints.Function, name: str, n: int, p: int) -> Any:
    if name == "callback":
        return pick(rng, [lambda *given: None, lambda *given: 3, _raising])
    return FUNCTIONS["euclidean" if chance(rng, 0.3) else pick(rng, FUNCTIONS)]


DRAW: dict[type, Callable[..., Any]] = {
    constraints.Integer: _integer,
    constraints.Real: _real,
    constraints.OneOf: _one_of,
    constraints.Boolean: lambda rng, *rest: chance(rng, 0.5),
    constraints.Null: lambda *rest: None,
    constraints.Function: _function,
    constraints.Having: _having,
    constraints.Text: _text,
    constraints.Several: _several,
    constraints.Array: _array,
    constraints.Mapping: _mapping,
    constraints.Seed: lambda rng, *rest: random_seed(rng),
}
