"""Attributes of a common name mean the same in every method: sums, shares and divisors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowland._base.base import Reducer
from support.cases import Cases
from support.quick_fits import CLASSES, ROWS, QuickFit, known_fit, quick_fit

pytestmark = pytest.mark.filterwarnings("ignore")  # of descents that end after few steps

N, P = ROWS.shape
TOTAL = float(np.sum((ROWS - ROWS.mean(axis=0)) ** 2))
CLOSE = 1e-9  # sums of 36 rows in float64, and eigenvalues
SQUARES = "sum of squares of each coordinate"


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=CLOSE, atol=CLOSE)


def divisor(method: type[Reducer], name: str) -> int:
    text = method.documentation(name).text
    stated = re.search(r"divisor n( - 1)?", text)
    assert stated, f"the documentation of {name} has to say 'divisor n' or 'divisor n - 1'"
    return N - 1 if stated[1] else N


def along_axes(fit: QuickFit) -> np.ndarray:
    """Rows on the axes of unit length; the map, if it has none."""
    axes = getattr(fit.model, "components_", None)
    return fit.Y if axes is None else (ROWS - ROWS.mean(axis=0)) @ axes.T


def mean(fit: QuickFit) -> None:
    if "weighted" not in type(fit.model).documentation("mean_").text:
        same(fit.model.mean_, ROWS.mean(axis=0))


def embedding(fit: QuickFit) -> None:
    np.testing.assert_array_equal(fit.model.embedding_, fit.Y)


def explained_variance(fit: QuickFit) -> None:
    places = along_axes(fit)
    squares = np.sum((places - places.mean(axis=0)) ** 2, axis=0)
    same(fit.model.explained_variance_, squares / divisor(type(fit.model), "explained_variance_"))


def explained_variance_ratio(fit: QuickFit) -> None:
    """Shares: proportional to what they are shares of, and 1 in sum if there is no other axis."""
    ratios = fit.model.explained_variance_ratio_
    assert np.sum(ratios) <= 1 + CLOSE
    method = type(fit.model)
    names = [n for n in ("explained_variance_", "eigenvalues_") if n in method.fitted_attributes]
    if names:
        parts = getattr(fit.model, names[0])
        same(ratios * parts[0], parts * ratios[0])
        most = method.most_components(N, P, len(set(CLASSES)))
        same(quick_fit(method, n_components=most).model.explained_variance_ratio_.sum(), 1.0)


def singular_values(fit: QuickFit) -> None:
    same(fit.model.singular_values_**2, np.sum(along_axes(fit) ** 2, axis=0))


def noise_variance(fit: QuickFit) -> None:
    """The mean variance of the directions left out, with the divisor of the others."""
    parts = fit.model.explained_variance_
    total = TOTAL / divisor(type(fit.model), "explained_variance_")
    same(fit.model.noise_variance_, (total - parts.sum()) / (P - len(parts)))


def eigenvalues(fit: QuickFit) -> None:
    if SQUARES in type(fit.model).documentation("eigenvalues_").text.lower():
        places = fit.Y - fit.Y.mean(axis=0)
        same(fit.model.eigenvalues_[: fit.Y.shape[1]], np.sum(places**2, axis=0))


CHECKS: dict[str, Callable[[QuickFit], None]] = {
    "mean_": mean,
    "embedding_": embedding,
    "explained_variance_": explained_variance,
    "explained_variance_ratio_": explained_variance_ratio,
    "singular_values_": singular_values,
    "noise_variance_": noise_variance,
    "eigenvalues_": eigenvalues,
}
SUMS = {
    "class_counts_": N,
    "hits_": N,
    "n_samples_seen_": N,
    "priors_": 1.0,
    "stationary_": 1.0,
}

# The value of the map, and its sign in the history of what is minimized.
LOSSES = {
    "energy_": 1,
    "kl_divergence_": 1,
    "loss_": 1,
    "mean_log_likelihood_": -1,
    "mean_squared_distance_": 1,
    "objective_": 1,
    "quantization_error_": 1,
    "stress_": 1,
}
RADII = "the history is that of the forces, and rows that are near no other are placed afterwards"
OTHER_LOSS = {
    "CurvilinearComponentAnalysis": RADII,
    "CurvilinearDistanceAnalysis": RADII,
    "DDHDS": "absolute errors are rounded off near 0 in the history",
    "GPLVM": "the history has the prior of the places, too",
    "GTM": "the history has the penalty of the weights, too",
    "ManifoldSculpting": "the history has the axes that are left",
    "TradeoffMDS": RADII,
}


def test_attributes_mean_what_their_names_say(method):
    named = [name for name in method.fitted_attributes if name in CHECKS or name in SUMS]
    if not named:
        return
    fit = known_fit(method)
    results = Cases()
    for name in named:
        if getattr(fit.model, name) is None:
            continue

        def check(name=name):
            if name in CHECKS:
                CHECKS[name](fit)
            else:
                same(np.sum(getattr(fit.model, name)), SUMS[name])

        results.run(name, check)
    if results.count:
        results.finish()


def test_the_last_loss_is_that_of_the_map(method):
    names = [name for name in method.fitted_attributes if name in LOSSES]
    if "loss_history_" not in method.fitted_attributes or not names:
        assert method.__name__ not in OTHER_LOSS
        return
    model = known_fit(method).model
    (name,) = names
    found, last = LOSSES[name] * np.sum(getattr(model, name)), model.loss_history_[-1]
    agree = abs(found - last) <= CLOSE * max(abs(found), abs(last))
    assert agree == (method.__name__ not in OTHER_LOSS), (
        f"{name} is {found}, and loss_history_ ends with {last}; OTHER_LOSS lists those that "
        "differ for a reason"
    )
