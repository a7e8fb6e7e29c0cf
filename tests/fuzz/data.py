"""Random tables: ordinary ones, ordinary values in odd containers, and hostile ones."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.sparse_data import SPARSE, malformed


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """One of several things of any type."""
    choices = list(choices)
    return choices[int(rng.integers(len(choices)))]


def chance(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


@dataclasses.dataclass(frozen=True)
class Data:
    """A table, and how it was made.

    ``plain`` holds the values as an array. ``ordinary`` means that these are finite numbers of
    moderate size in a container that everybody takes, so that results have to be finite, too.
    """

    X: Any
    plain: np.ndarray
    values: str
    container: str
    ordinary: bool


def random_shape(rng: np.random.Generator) -> tuple[int, int]:
    if chance(rng, 0.04):
        return pick(rng, [(0, 3), (3, 0), (1, 1), (1, 5), (2, 1), (600, 1), (2, 300), (0, 0)])
    few, some, many = rng.integers(1, 12), rng.integers(12, 60), rng.integers(60, 201)
    n = int(pick(rng, [few, some, some, many]))
    return n, int(pick(rng, [1, 2, 3, rng.integers(1, 10), rng.integers(10, 31)]))


# --- values ---------------------------------------------------------------------------------------


def _normal(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p)) * rng.gamma(1.0, 2.0, p) + rng.normal(0, 5, p)


def _rounded(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.round(_normal(rng, n, p), int(rng.integers(0, 2)))


def _counts(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.poisson(rng.gamma(0.5, 2.0, p), (n, p)).astype(float)


def _binary(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return (rng.random((n, p)) < rng.random(p)).astype(float)


def _constant_columns(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    X = _normal(rng, n, p)
    X[:, rng.random(p) < 0.6] = pick(rng, [0.0, 1.0, -3.7, 1e8])
    return X


def _constant(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.full((n, p), pick(rng, [0.0, 1.0, 0.1, -1e5]))


def _copies(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    X = _normal(rng, n, p)
    return X[rng.integers(0, max(1, n // int(rng.integers(2, 8))), n)] if n else X


def _collinear(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    rank = int(rng.integers(1, 3))
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))


def _far_groups(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p)) + 1e4 * rng.integers(0, 3, (n, 1))


def _heavy_tails(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_t(pick(rng, [0.3, 1.0, 2.0]), (n, p))


def _scaled(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return _normal(rng, n, p) * 10.0 ** float(rng.integers(-80, 81))


def _extreme(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    ends = [5e-324, -5e-324, 1.7e308, -1.7e308, 3.4e38, 1e-45, 0.0, -0.0, 1e154, 1e-160]
    return np.array([pick(rng, ends) for _ in range(n * p)], float).reshape(n, p)


def _columns_of_scales(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-78, 78, p)


def _one_giant(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return _one_value(rng, n, p, [1e300, -1e200, 1e30, 1e-300])


def _not_finite(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    X = _one_value(rng, n, p, [np.nan, np.inf, -np.inf])
    if chance(rng, 0.3):
        X[:, :1] = np.nan
    return X


def _one_value(rng: np.random.Generator, n: int, p: int, choices: list[float]) -> np.ndarray:
    X = _normal(rng, n, p)
    if X.size:
        X.flat[rng.integers(X.size)] = pick(rng, choices)
    return X


ORDINARY: list[Callable[..., np.ndarray]] = [_normal, _rounded, _counts, _binary, _copies]
ORDINARY += [_constant_columns, _constant, _collinear, _far_groups]
HOSTILE: list[Callable[..., np.ndarray]] = [_heavy_tails, _scaled, _extreme, _columns_of_scales]
HOSTILE += [_one_giant, _not_finite]


# --- containers -----------------------------------------------------------------------------------


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _mapped(X: np.ndarray) -> np.ndarray:
    if not X.size:
        return X
    with tempfile.TemporaryDirectory() as folder:  # the map outlives the name of the file
        np.save(Path(folder) / "X.npy", X)
        return np.load(Path(folder) / "X.npy", mmap_mode="r")


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    return wide[::2, ::3]


def _pandas(X: np.ndarray, named: bool = True) -> Any:
    import pandas

    names = [f"c{j}" for j in range(X.shape[1])]
    return pandas.DataFrame(X, columns=names if named else None)


def _polars(X: np.ndarray) -> Any:
    import polars

    return polars.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])], orient="row")


def _masked(X: np.ndarray) -> Any:
    return np.ma.masked_greater(X, 1.0)


def _objects_with(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def make(X: np.ndarray) -> np.ndarray:
        X = X.astype(object)
        if X.size:
            X.flat[X.size // 2] = value
        return X

    return make


def _ragged(X: np.ndarray) -> list[list[float]]:
    return [row[: 1 + i % max(1, len(row))] for i, row in enumerate(X.tolist())]


def _structured(X: np.ndarray) -> np.ndarray:
    return np.zeros(len(X), [("a", float), ("b", "U3")])


class _Refusing:
    """Looks like an array until it is asked for its values."""

    shape = (5, 2)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise ValueError("no values today")


FAIR: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "read-only": _read_only,
    "strided": _strided,
    "reversed": lambda X: X[::-1, ::-1],
    "big endian": lambda X: X.astype(">f8"),
    "big endian float32": lambda X: X.astype(">f4"),
    "memory map": _mapped,
    "list": lambda X: X.tolist(),
    "pandas": _pandas,
    "pandas without names": lambda X: _pandas(X, named=False),
    "polars": _polars,
}
ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "giant longdouble": lambda X: X.astype(np.longdouble) * np.longdouble("1e4000"),
    "int8": lambda X: np.nan_to_num(X).astype(np.int8),
    "uint64": lambda X: np.full(X.shape, 2**64 - 1, np.uint64),
    "int64": lambda X: np.nan_to_num(X).clip(-9e18, 9e18).astype(np.int64),
    "bool": lambda X: X > 0,
    "object": lambda X: X.astype(object),
    "object with None": _objects_with(None),
    "object with text": _objects_with("x"),
    "object with a giant": _objects_with(10**400),
    "object with a list": _objects_with([1, 2]),
    "object with complex": _objects_with(1j),
    "text": lambda X: X.astype(str),
    "bytes": lambda X: X.astype("S8"),
    "complex": lambda X: X.astype(complex),
    "dates": lambda X: np.zeros(X.shape, "M8[s]"),
    "durations": lambda X: np.zeros(X.shape, "m8[s]"),
    "structured": _structured,
    "matrix": lambda X: np.matrix(X),
    "masked": _masked,
    "ragged": _ragged,
    "0-d": lambda X: np.float64(1.0),
    "1-d": lambda X: X.ravel(),
    "3-d": lambda X: X[:, :, None],
    "None": lambda X: None,
    "string": lambda X: "abc",
    "number": lambda X: 3,
    "dictionary": lambda X: {"a": [1.0]},
    "generator": lambda X: iter(X.tolist()),
    "refusing": lambda X: _Refusing(),
    "pandas column": lambda X: _pandas(X).iloc[:, 0] if X.shape[1] else None,
    "pandas, same names": lambda X: _pandas(X).rename(columns=lambda name: "c"),
    "pandas with text": lambda X: _pandas(X).assign(text="x"),
    "pandas nullable": lambda X: _pandas(X).convert_dtypes(),
    "pandas categories": lambda X: _pandas(X).astype("category"),
    "polars with text": lambda X: _polars(X).with_columns(text=__import__("polars").lit("x")),
    "polars lazy": lambda X: _polars(X).lazy(),
}


def random_table(
    rng: np.random.Generator,
    shape: tuple[int, int] | None = None,
    *,
    fair: float = 0.55,
) -> Data:
    """A table; a share of ``fair`` has finite values of moderate size in usual containers."""
    n, p = random_shape(rng) if shape is None else shape
    usual = chance(rng, fair)
    hostile_values = not usual and chance(rng, 0.5)
    values = pick(rng, HOSTILE if hostile_values else ORDINARY)
    plain = values(rng, n, p)
    if not usual and not (hostile_values and chance(rng, 0.6)) and chance(rng, 0.35):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name, X = malformed(rng, plain)
        return Data(X, plain, values.__name__, name, ordinary=False)
    odd = not usual and not (hostile_values and chance(rng, 0.6))
    group = ODD if odd else SPARSE if chance(rng, 0.2) else FAIR
    container = pick(rng, group)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy, about formats that are slow to make
        X = group[container](plain)
    ordinary = not hostile_values and not odd
    return Data(X, plain, values.__name__, container, ordinary)


def random_distances(rng: np.random.Generator, n: int) -> Data:
    """A square matrix of distances; half of them have a fault."""
    X = pick(rng, ORDINARY)(rng, n, int(rng.integers(1, 6)))
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    fault = pick(rng, ["none"] * 6 + ["nan", "negative", "asymmetric", "diagonal", "giant", "inf"])
    if fault != "none" and n > 1:
        i, j = rng.integers(n), rng.integers(n)
        D[i, j] = {"nan": np.nan, "negative": -1.0, "giant": 1e300, "inf": np.inf}.get(fault, 7.0)
        if fault not in ("asymmetric", "diagonal"):
            D[j, i] = D[i, j]
        if fault == "diagonal":
            D[i, i] = 2.0
    container = pick(rng, ["array", "array", "float32", "fortran", "list", "pandas", "csr"])
    with np.errstate(all="ignore"):
        made = (SPARSE if container == "csr" else FAIR)[container](D)
    return Data(made, D, f"distances, {fault}", container, fault == "none" and container != "csr")


def labels(rng: np.random.Generator, n: int) -> Any:
    """A target for n rows: classes or numbers, mostly fair."""
    fair = [
        lambda: rng.integers(0, 3, n),
        lambda: rng.integers(0, 2, n).astype(bool),
        lambda: np.array(["a", "b", "c"])[rng.integers(0, 3, n)],
        lambda: np.array(["a", "b", "c"], object)[rng.integers(0, 3, n)],
        lambda: rng.standard_normal(n),
        lambda: rng.integers(0, 3, n).tolist(),
    ]
    hostile = [
        lambda: np.zeros(n, int),
        lambda: np.arange(n),
        lambda: rng.integers(0, 3, n + 1),
        lambda: rng.integers(0, 3, (n, 1)),
        lambda: rng.integers(0, 3, (n, 2)),
        lambda: np.where(rng.random(n) < 0.5, np.nan, 1.0),
        lambda: np.array([None, "a", 1] * n, object)[:n],
        lambda: rng.standard_normal(n) * 1e300,
        lambda: np.full(n, np.inf),
        lambda: np.zeros(n, complex),
        lambda: np.zeros(n, "M8[s]"),
        lambda: "abc",
        lambda: 3,
        lambda: None,
        lambda: [[1], [2, 3]],
        lambda: np.ma.masked_equal(rng.integers(0, 3, n), 1),
        lambda: SPARSE["csr"](np.ones((max(n, 1), 1))),
        lambda: [10**400] * n,
    ]
    return pick(rng, fair if chance(rng, 0.8) else hostile)()
