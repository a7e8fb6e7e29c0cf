"""Steps one after another as one model: prepare the columns, reduce them, make the map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base.errors import ParameterError, unknown_name
from lowland._base.rows.table import Rows


class Chain:
    """Fitted steps that act as one: what the first takes goes in, what the last makes comes out.

    The command line makes such a model when there is more to do than the method itself, such as
    scaling, or PCA before t-SNE; ``lowland.load`` gives it back. To fit several steps in a
    program, use scikit-learn's ``Pipeline``.

    Parameters
    ----------
    steps : sequence of fitted estimators
        Each with ``transform``.

    Examples
    --------
    >>> from lowland import PCA, TSNE
    >>> from lowland.datasets import digits
    >>> X = digits().X[:300]
    >>> pca = PCA(20).fit(X)
    >>> tsne = TSNE(max_iter=50, random_state=0).fit(pca.transform(X))
    >>> Chain([pca, tsne]).transform(X[:2]).shape
    (2, 2)
    """

    def __init__(self, steps: Sequence[Any]) -> None:
        if not steps:
            raise ParameterError("Chain: steps=() is empty; give at least one fitted estimator.")
        for step in steps:
            if isinstance(step, type) or not callable(getattr(step, "transform", None)):
                raise ParameterError(
                    f"Chain: {step!r:.80} has no transform; give fitted estimators."
                )
        self.steps = tuple(steps)

    def __repr__(self) -> str:
        return f"Chain([{', '.join(map(repr, self.steps))}])"

    def _repr_html_(self) -> str:
        """The diagram that scikit-learn draws of a pipeline, for notebooks."""
        from sklearn.pipeline import make_pipeline
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(make_pipeline(*self.steps))

    @property
    def last(self) -> Any:
        """The method that makes the map; a step that only turns the map may follow it."""
        made = [step for step in self.steps if not getattr(step, "follows_map", False)]
        return made[-1] if made else self.steps[-1]

    @property
    def n_features_in_(self) -> int:
        """Columns of the rows that go in."""
        return self.steps[0].n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Their names, if they had any."""
        return self.steps[0].feature_names_in_

    @property
    def embedding_(self) -> np.ndarray:
        """The map of the fitted rows, of methods that keep it."""
        Y = self.last.embedding_
        for step in self.steps:
            Y = step.transform(Y) if getattr(step, "follows_map", False) else Y
        return Y

    def transform(self, X: Any) -> Any:
        """Place rows in the map, each as if it came alone.

        Of a table that is read in chunks the result is such a table, computed when it is used.
        """
        for step in self.steps:
            # Steps pass arrays on, so a step after the first may not know the names of columns.
            if isinstance(X, Rows) and step is not self.steps[0] and not _knows_names(step):
                X = X.without_names()
            X = step.transform(X)
        return X

    def set_params(self, **params: Any) -> Chain:
        """Set parameters, such as ``n_jobs`` and ``verbose``, in all the steps that have them."""
        every = {name for step in self.steps for name in step.parameters()}
        for name in params:
            if name not in every:
                raise ParameterError(unknown_name("parameter of the steps", name, sorted(every)))
        for step in self.steps:
            known = step.parameters()
            step.set_params(**{name: value for name, value in params.items() if name in known})
        return self

    def save(self, path: str | Path) -> None:
        """Write all steps to one model file, as :meth:`lowland.PCA.save` does for one."""
        from lowland._base.models.codec import save_chain

        save_chain(self, path)


def _knows_names(step: Any) -> bool:
    """Whether a step checks names of columns, or leaves them as they are."""
    return "feature_names_in_" in vars(step) or getattr(step, "follows_map", False)
