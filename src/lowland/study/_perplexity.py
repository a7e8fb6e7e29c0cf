"""Which perplexities of t-SNE show the same of a table, as plain values."""

from __future__ import annotations

from typing import Any

from lowland._core.errors import DataError, ParameterError
from lowland._core.wording import count


def perplexities_of(
    X: Any, filled: bool, seed: int, n_jobs: int | None, verbose: bool
) -> dict[str, Any]:
    """The plateau of the perplexity on prepared rows; only a sentence if there are too few.

    ``filled`` tells that the means of columns stand for missing values, which is said.
    """
    # here: it needs t-SNE and the measures, which a description alone does not
    from lowland.trust._plateau_checks import FEWEST_ROWS
    from lowland.trust.plateau import perplexity_plateau

    if X.shape[0] < FEWEST_ROWS:
        return without_perplexities(
            f"Perplexities cannot be compared on {count(X.shape[0], 'row')}: two halves of fewer "
            f"than {FEWEST_ROWS} rows have too little in common."
        )
    try:
        found = perplexity_plateau(X, seed=seed, n_jobs=n_jobs, verbose=verbose)
    except (DataError, ParameterError) as error:  # such as rows that are all equal
        return without_perplexities(f"Perplexities cannot be compared: {error}")
    tried = zip(found.values, found.excess, found.overlap, found.on_plateau, strict=True)
    means = " Missing values were filled with the means of their columns." if filled else ""
    return {
        "values": [
            {"perplexity": value, "excess": excess, "overlap": overlap, "on_plateau": on}
            for value, excess, overlap, on in tried
        ],
        "rows_mapped": len(found.maps[0].rows),
        "default": found.default,
        "recommended": found.recommended,
        "sentence": found.sentence + means,
    }


def without_perplexities(why: str) -> dict[str, Any]:
    """The same for a table that perplexities cannot be compared on."""
    return {"values": [], "rows_mapped": 0, "default": None, "recommended": None, "sentence": why}
