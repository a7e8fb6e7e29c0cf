"""The mixin of methods that also classify: they write ``_decide`` and set ``classes_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.targets import check_numbers
from lowland._core.validation import as_array

if TYPE_CHECKING:
    from lowland._core.base import Reducer
    from lowland._core.context import FitContext

    Base = Reducer
else:
    Base = object


class Classifier(Base):
    """Predictions from one score per class and row; named before a :class:`Reducer` as a base."""

    needs_target = True
    classes_: np.ndarray

    def _decide(self, X: Any, run: FitContext) -> np.ndarray:
        """Log-probability of each class up to a constant per row, (n, C).

        For two classes, the log-odds of the second class, (n,).
        """
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores whose differences are log-odds, (n, C).

        For two classes, the log-odds of the second class, (n,).
        """
        checked = self._check_new_rows(X)
        with self._running(bound_blas=self.transform_uses_blas) as run:
            return self._decide(checked, run)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of :meth:`predict_proba`; accurate for probabilities close to 0, too."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        scores = scores - scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class ``predict`` finds (accuracy)."""
        predicted, truth = self.predict(X), as_array(y, "y").reshape(-1)
        if len(predicted) != len(truth):
            raise DataError(f"X has {len(predicted)} rows, but y has {len(truth)} labels.")
        right = predicted.astype(object) == truth.astype(object)
        return float(np.average(right.astype(bool), weights=_weights(sample_weight, len(truth))))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        return tags


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights of the rows, if there are any: numbers >= 0, not all 0."""
    if sample_weight is None:
        return None
    weights = check_numbers(sample_weight, n, owner="sample_weight")
    if weights.min(initial=0.0) < 0 or not weights.any():
        raise DataError("sample_weight must hold numbers >= 0, not all 0.")
    return weights / weights.max()
