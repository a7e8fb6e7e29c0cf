"""The one place where targets are checked: one class or one number per row, nothing missing.

Like :mod:`lowland._base.validation`, the messages keep scikit-learn's key phrases and add which
row, which value, what to do.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, shown
from lowland._base.validation import as_array, is_sparse

KINDS = {"O": "text", "U": "text", "M": "dates", "m": "durations"}  # all others are numbers


class Labels(NamedTuple):
    """The classes, sorted, and the number of each row's class among them."""

    classes: np.ndarray
    codes: np.ndarray


def require_target(y: Any, *, owner: str) -> None:
    """Refuse a missing y."""
    if y is None:
        raise DataError(
            f"{owner} requires y to be passed, but the target y is None; it learns from labels: "
            "give one per row, fit(X, y)."
        )


def check_labels(y: Any, n_rows: int, *, owner: str) -> Labels:
    """Labels of any comparable kind (numbers, text, booleans) as classes and codes."""
    require_target(y, owner=owner)
    labels = _one_per_row(y, n_rows, owner)
    _check_present(labels)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except Exception as error:  # labels are objects, which compare as they like
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise DataError(
            f"y mixes labels that cannot be put in order ({', '.join(kinds)}); make them all text "
            "or all numbers."
        ) from error
    return Labels(classes, codes.reshape(-1))


def check_numbers(y: Any, n_rows: int, *, owner: str) -> np.ndarray:
    """A target of measurements as finite float64 numbers, one per row."""
    require_target(y, owner=owner)
    values = _one_per_row(y, n_rows, owner)
    if values.dtype.kind not in "biuf":
        first = next(iter(values.tolist()), None)
        raise DataError(
            f"{owner}: y must hold numbers here, but it holds {shown(first)}; give measurements, "
            "or declare that these are classes."
        )
    with np.errstate(over="ignore"):  # a longdouble beyond float64 is refused as infinity
        numbers = values.astype(np.float64)
    _check_finite(numbers)
    return numbers


def _one_per_row(y: Any, n_rows: int, owner: str) -> np.ndarray:
    if is_sparse(y):
        raise DataError(f"y is sparse, but {owner} needs one label per row; use y.toarray().")
    labels = as_array(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; use y.ravel().",
            DataConversionWarning,
            stacklevel=6,
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        raise DataError(
            f"y should be a 1d array, got an array of shape {labels.shape} instead; "
            "give one label per row."
        )
    if len(labels) != n_rows:
        raise DataError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, y has {len(labels)} labels."
        )
    return _plain(labels)


def _plain(labels: np.ndarray) -> np.ndarray:
    """Objects that are all numbers as numbers, all text as Python strings: what files can hold."""
    if labels.dtype.kind == "T":
        return labels.astype(object)
    if labels.dtype != object:
        return labels
    items = labels.tolist()
    if all(isinstance(item, bool | int | float) for item in items):
        return np.array(items)
    if all(isinstance(item, str) for item in items):
        return np.array([str(item) for item in items], dtype=object)
    return labels


def _check_present(labels: np.ndarray) -> None:
    if labels.dtype.kind == "c":
        raise DataError("Unknown label type: complex; give classes as integers or text.")
    if labels.dtype.kind == "V":
        raise DataError(f"y holds records ({labels.dtype}); give one label per row.")
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        row = int(np.isnat(labels).argmax())
        raise DataError(f"Input y contains NaN: NaT in row {row}. Drop these rows.")
    if labels.dtype == object:
        for row, label in enumerate(labels):
            if isinstance(label, list | tuple | dict | set | np.ndarray):
                raise DataError(
                    f"y holds a {type(label).__name__} in row {row}; give one label per row."
                )
            if _is_missing(label):
                raise DataError(f"Input y contains NaN: {label!r} in row {row}. Drop these rows.")
    if labels.dtype.kind != "f":
        return
    _check_finite(labels)
    fractional = labels != np.floor(labels)
    if fractional.any():
        row = int(fractional.argmax())
        raise DataError(
            f"Unknown label type: continuous. y holds {float(labels[row])!r} in row {row}, which "
            "looks like a measurement, not a class; give classes as integers or text."
        )


def _check_finite(values: np.ndarray) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        what = "NaN" if np.isnan(values[row]) else "infinity"
        raise DataError(f"Input y contains {what} in row {row}. Drop or repair these rows.")


def _is_missing(label: Any) -> bool:
    """None, NaN, NaT or pandas' NA, which does not even know whether it differs from itself."""
    try:
        return label is None or bool(label != label)
    except Exception:
        return True


def join_classes(labels: Labels, known: np.ndarray | None, named: Any, *, owner: str) -> np.ndarray:
    """Classes of this batch, of earlier ones, and those named; a label not named is refused."""
    parts = [labels.classes]
    if known is not None:
        parts.append(known)
    if named is not None:
        listed = as_array(named, "classes").reshape(-1)
        parts.append(check_labels(listed, len(listed), owner=owner).classes)
        known_names = {*parts[-1].tolist()}
        strange = next((x for x in labels.classes.tolist() if x not in known_names), None)
        if strange is not None:
            raise DataError(
                f"y has the label {shown(strange)}, which is not among "
                f"classes={shown(parts[-1].tolist())}; name it there or correct it."
            )
    kinds = {KINDS.get(part.dtype.kind, "numbers") for part in parts}
    if len(kinds) > 1:
        found = " in some batches and ".join(sorted(kinds, reverse=True))
        raise DataError(f"the labels are {found} in others; use one kind.")
    return np.unique(np.concatenate(parts))


# The mixin of methods that also classify: they write ``_decide`` and set ``classes_``.


if TYPE_CHECKING:
    from lowland._base.base import Reducer
    from lowland._base.context import FitContext

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
