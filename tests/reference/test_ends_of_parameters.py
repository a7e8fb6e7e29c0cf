"""Parameters at the ends of their ranges: a finite result, or an error that names one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lowland
from lowland._base import registry
from lowland._base.constraints import Constraint, Either, Integer, Real
from lowland.errors import LowlandError, ParameterError
from lowland.selection._base import Selector
from support.cases import each
from support.methods import small

Y = np.arange(60) % 3


def irregular() -> np.ndarray:
    rng = np.random.default_rng(5)
    mixed = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5))
    rows = mixed * [1, 3, 0.5, 1, 2] + np.exp(mixed[:, :1] / 2)
    return (rows - rows.min(axis=0)) / np.ptp(rows)


X = irregular()
ENDS = [-1e308, 0.0, 5e-324, 1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e300, 1.7e308]
COUNTS = [0, 1, 20, 21, 10**6, 2**31, 2**63 - 1, 10**30, 10**5000]
FEW = X[:20, :4] + np.random.default_rng(0).normal(size=(20, 4)) / 10
# More of the first two take longer, as asked for; the last is the same for all.
LEFT_OUT = ("n_init", "max_iter", "n_jobs")
LONGER = [(lowland.UMAP, "n_epochs")]  # the number of steps under the name that users know
WRAPPERS = (lowland.RecursiveElimination, lowland.SequentialSelection)  # slow: they fit models


def options_of(constraint: Constraint) -> tuple[Constraint, ...]:
    return constraint.options if isinstance(constraint, Either) else (constraint,)


def parameters_of(kind: type) -> list[tuple[type, str]]:
    return [
        (owner, name)
        for owner in [*registry.all_methods(), *registry.all_selectors()]
        for name, field in owner.parameters().items()
        if any(isinstance(option, kind) for option in options_of(field.metadata["constraint"]))
        and name not in LEFT_OUT
        and (owner, name) not in LONGER
    ]


def name_of(part: Any) -> str:
    return getattr(part, "__name__", part)


def attempt(owner: type, name: str, value: Any) -> None:
    """A finite result, or an error of ours; memory and time stay small."""
    quick: dict[str, Any] = {"max_iter": 5} if "max_iter" in owner.parameters() else {}
    if "cv" in owner.parameters():
        quick["cv"] = 2
    count = "n_features" if issubclass(owner, Selector) else "n_components"
    given = {count: 2, "random_state": 0, **quick, **small(owner, 6, 5.0), name: value}
    target = Y[:20] > 0 if owner is lowland.CorrelationScore else Y[:20]
    rows = np.abs(FEW)
    try:
        model = owner(**given).fit(rows, target)
        found = model.transform(rows * 1.01)
    except ParameterError as error:
        assert any(f"{p}=" in str(error) for p in owner.parameters())  # noqa: PT017
        return
    except LowlandError:
        return
    assert np.isfinite(found).all()


ignore_flatness = pytest.mark.filterwarnings(
    "ignore:only .* components have a positive eigenvalue:UserWarning",
    "ignore::lowland.errors.ConvergenceWarning",
)


@pytest.mark.slow
@ignore_flatness
@each("value", ENDS)
@pytest.mark.parametrize(("owner", "name"), parameters_of(Real), ids=name_of)
def test_real_parameters_at_the_ends_of_their_range(owner: type, name: str, value: float) -> None:
    attempt(owner, name, value)


@pytest.mark.slow
@ignore_flatness
@each("value", COUNTS, ids=[str(value) if value < 10**31 else "10^5000" for value in COUNTS])
@pytest.mark.parametrize(("owner", "name"), parameters_of(Integer), ids=name_of)
def test_integer_parameters_far_beyond_the_data(owner: type, name: str, value: int) -> None:
    attempt(owner, name, value)


NUMBERS = [Fraction(1, 3), Fraction(7, 3), 10**25, np.int8(3), np.float16(0.5), np.longdouble(2.5)]


@pytest.mark.slow
@pytest.mark.parametrize("cls", [*registry.all_methods(), *registry.all_selectors()], ids=name_of)
def test_numbers_of_any_type_are_numbers(cls, tmp_path):
    """A parameter may be a fraction, a scalar of numpy or a very large integer."""
    quick = {"max_iter": 3} if "max_iter" in cls.parameters() else {}
    for name, field in cls.parameters().items():
        long = name in ("max_iter", "n_init")
        for value in NUMBERS[: 2 if long else None]:
            if field.metadata["constraint"].allows(value):
                try:
                    model = cls(**{**quick, **small(cls), name: value}).fit(X, Y)
                    assert np.isfinite(model.transform(X[:3] + 0.01)).all()
                    model.save(tmp_path / "model.lowland")
                except LowlandError:
                    continue
                lowland.load(tmp_path / "model.lowland")
