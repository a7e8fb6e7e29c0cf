"""How PCA computes its axes: how many of them, by which solver, and whether that fits in memory."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.rows.fitting import needs_memory
from lowland._core.validation import is_sparse
from lowland._engines.linalg.principal_axes import PrincipalAxes, by_gram, by_krylov

COVARIANCE_COLUMNS = 3000  # up to so many columns the p x p covariance is cheaper than iterations
GRAM_ROWS = 5000  # up to so many rows the n x n inner products are


def axes_to_compute(n_components: Any, n: int, p: int) -> int:
    """The number asked for; all min(n, p) axes where a rule needs the whole spectrum."""
    most = min(n, p)
    if not isinstance(n_components, Integral):
        return most
    if n_components > most:
        raise ParameterError(
            f"PCA: n_components={n_components} is more than min(n, p) = {most} of data "
            f"with {n} rows and {p} columns; ask for at most {most}."
        )
    return int(n_components)


def choose_solver(solver: str, X: Any, n_components: Any) -> str:
    """The solver for X: "covariance", "gram" or "randomized". Its memory is checked."""
    chosen = _cheapest(solver, X, rule=not isinstance(n_components, Integral | None))
    if chosen == "randomized" and not isinstance(n_components, Integral | None):
        raise ParameterError(
            f"PCA: n_components={n_components!r} needs the whole spectrum, which "
            "solver='randomized' does not compute; use solver='covariance' or 'gram'."
        )
    n, p = X.shape
    if chosen == "covariance":
        _require_square(p, f"a covariance matrix of {p} columns")
    if chosen == "gram":
        _require_square(n, f"the inner products of {n} rows")
    return chosen


def solver_of_leaves(solver: str, p: int, n_components: Any) -> str:
    """The solver for a table in leaves of p columns: "covariance" or "randomized".

    It does not depend on the memory that is free, so that the result does not either.
    """
    number = isinstance(n_components, Integral)
    if solver == "gram":
        raise needs_memory("PCA", "solver='gram'", "use solver='covariance' or 'randomized', or ")
    if solver == "randomized" and not number:
        raise ParameterError(
            f"PCA: n_components={n_components!r} needs the whole spectrum, which "
            "solver='randomized' does not compute; use solver='covariance', or ask for a number."
        )
    if solver != "auto":
        return solver
    return "randomized" if number and p > COVARIANCE_COLUMNS else "covariance"


def _require_square(order: int, what: str) -> None:
    require_memory(
        8 * 4 * order * order,  # the matrix, its eigenvectors and the solver's copies
        task=f"PCA with {what}",
        alternative="use solver='randomized' with a number of components",
    )


def _cheapest(solver: str, X: Any, rule: bool) -> str:
    n, p = X.shape
    whole_spectrum = "covariance" if p <= n or is_sparse(X) else "gram"
    if solver == "auto":
        if p <= COVARIANCE_COLUMNS and (p <= n or is_sparse(X)):
            return "covariance"
        if n <= GRAM_ROWS and not is_sparse(X):
            return "gram"
        return whole_spectrum if rule else "randomized"
    if solver == "gram" and is_sparse(X):  # the inner products of sparse rows are dense
        return whole_spectrum if rule else "randomized"
    return solver


def axes_of_rows(X: Any, n_axes: int, solver: str, scaled: bool, run: FitContext) -> PrincipalAxes:
    """Axes by one of the solvers that need the rows, "gram" or "randomized"."""
    if solver == "gram":
        return by_gram(X, n_axes, scaled, run.threads)
    return by_krylov(X, n_axes, scaled, run.threads, run.rng, run.monitor)
