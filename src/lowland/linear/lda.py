"""Fisher's linear discriminant (Fisher 1936; Rao 1948)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lowland._core.card import Card
from lowland._core.classifier import Classifier
from lowland._core.constraints import Integer, Null, OneOf, Real, Several
from lowland._core.context import FitContext
from lowland._core.errors import DataError, ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.targets import check_labels, join_classes
from lowland._core.threads import limit_blas
from lowland._core.validation import check_finite
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import (
    ClassMoments,
    class_columns,
    class_moments,
    merge_classes,
    widened,
)
from lowland._engines.linalg.eigen import fix_signs
from lowland.linear import _discriminant
from lowland.linear._base import LinearReducer

__all__ = ["LDA"]


class LDA(Classifier, LinearReducer):
    """Axes that set classes apart: maximize w^T S_B w / w^T S_W w, scatter between over within.

    A map for labeled rows, and a classifier. Use it to see how groups differ and in which columns,
    to classify with few rows, to compress before another classifier. Not when classes differ in
    spread rather than in mean, nor when one class has several clumps. Units of columns do not
    matter. Cost: O(n p^2 + p^3), or O(n^2 p + n^3) when there are more columns than rows.

    Parameters
    ----------
    n_components : int or None, default=None
        Axes to keep, at most one less than there are classes, which is also what None keeps. The
        classifier always uses all of them.
    shrinkage : None, "auto" or float in [0, 1], default=None
        Pull the covariance within classes towards a multiple of the identity, by this share.
        "auto": Ledoit and Wolf's estimate of the best share, for each class, in units of its
        columns' deviations. For few rows or many columns.
    priors : list of floats or None, default=None
        Probabilities of the classes, in the order of ``classes_``. None: their shares of the rows.
    rule : {"bayes", "mahalanobis"}, default="bayes"
        "bayes": the most probable class. "mahalanobis": the class whose mean is nearest in the
        metric of the pooled covariance, whatever the priors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes w in rows, scaled to unit variance within classes (w^T S_W w = n - C).
    eigenvalues_ : ndarray of shape (n_components,)
        Scatter between classes over scatter within, along each axis.
    discriminant_power_ : ndarray of shape (n_components,)
        Scatter between classes over total scatter, in (0, 1).
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Each eigenvalue's share of the sum of all: of the variance between classes, in units of
        that within.
    threshold_ : float or None
        For two classes, where the line is cut: rows beyond it, ``transform(X) > threshold_``, are
        predicted to be of ``classes_[1]``. The best cut for normal classes of equal covariance.
        None for more classes, or two with the same mean.
    classes_, class_counts_, priors_ : ndarrays of shape (n_classes,)
        Labels in order, rows of each, probability of each.
    means_ : ndarray of shape (n_classes, n_features)
        Class means (barycenters).
    coef_, intercept_ : ndarrays of shape (n_classes, n_features) and (n_classes,), or 1 for two
        The decision function is ``X @ coef_.T + intercept_``.
    mean_, n_components_, n_samples_seen_, scatter_
        See the family's attributes; ``mean_`` weighs the class means by the priors.

    Notes
    -----
    S_W is factored once; what follows is the size of the classes. With more columns than rows the
    work is done in the span of the rows. Where S_W is singular, a pseudo-inverse would throw away
    the directions in which no class varies, although classes that differ there are told apart
    perfectly; here such directions count like the least varying one that does vary. Axes beyond
    the rank of the data are 0.

    Signs: the largest entry of each axis is positive; for two classes the axis points to the
    second. ``inverse_transform`` gives the point of smallest deviation from the mean (least
    squares). Axes are scaled by S_W / (n - C), as in R's MASS; the classifier is that of maximum
    likelihood, S_W / n, as in scikit-learn. ``shrinkage`` never touches S_B. Nothing is random.

    References
    ----------
    Fisher (1936), Annals of Eugenics 7; Rao (1948), J. Royal Statistical Society B 10; Friedman
    (1989), J. American Statistical Association 84; Ledoit & Wolf (2004), J. Multivar. Analysis 88.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> lda = LDA().fit(iris().X, iris().y)
    >>> lda.eigenvalues_.round(4)
    array([32.1919,  0.2854])
    >>> round(lda.score(iris().X, iris().y), 2)
    0.98
    """

    n_components: int | None = param(
        Integer(1) | Null(),
        default=None,
        doc="axes to keep, fewer than classes; None keeps all there can be",
        kw_only=False,
    )
    shrinkage: float | str | None = param(
        Null() | OneOf("auto") | Real(0, 1, closed="both"),
        default=None,
        doc="pull the covariance within classes to the identity by this share; auto estimates it",
    )
    priors: Any = param(
        Null() | Several(Real(0, 1)), default=None, doc="class probabilities; None takes the shares"
    )
    rule: str = param(
        OneOf("bayes", "mahalanobis"),
        default="bayes",
        doc="predict the most probable class, or the one with the nearest mean",
    )

    eigenvalues_: np.ndarray = fitted("n_components", doc="scatter between / within classes")
    discriminant_power_: np.ndarray = fitted("n_components", doc="scatter between / total")
    explained_variance_ratio_: np.ndarray = fitted(
        "n_components", doc="share of the variance between classes, in units of that within"
    )
    threshold_: float | None = fitted(doc="the cut between two classes, or None", optional=True)
    classes_: np.ndarray = fitted("n_classes", type=object, doc="labels, in order")
    class_counts_: np.ndarray = fitted("n_classes", type=int, doc="rows of each class")
    priors_: np.ndarray = fitted("n_classes", doc="probability of each class")
    means_: np.ndarray = fitted("n_classes", "n_features", doc="class means")
    coef_: np.ndarray = fitted("n_scores", "n_features", doc="weights of the decision function")
    intercept_: np.ndarray = fitted("n_scores", doc="its constants")

    card = Card(
        keeps="what sets the classes apart: variance between them in units of that within",
        use="to see how labeled groups differ and in which columns, and to classify with few rows",
        avoid="when classes differ in spread, not in mean; as proof that groups exist: it was told",
        cost="O(n p min(n, p)) time, O(n p) memory",
    )
    reference = "Fisher (1936); Rao (1948)"
    fit_checks_finite = False
    aliases = ("fisher", "linear_discriminant_analysis")
    components_limit = "classes"
    reading = LinearReducer.reading._replace(
        distances="The method was given the classes and separates them as far as it can. Distances "
        "in the map are not the distances of the data.",
        gaps="A gap between classes is no evidence that the classes exist, because the method was "
        "given the labels. Look at held-out rows.",
        sizes="Each class has a variance of about 1 along each axis if the classes have equal "
        "covariances.",
        scale="The unit of each axis is the standard deviation within classes.",
    )

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        classes, codes = check_labels(y, X.shape[0], owner="LDA")
        C, (n, p) = len(classes), X.shape
        self._check_sizes(classes, n, p)
        threads, monitor, pull = run.threads, run.monitor, self.shrinkage
        with limit_blas(1):  # kernels do the large products; the rest must not depend on threads
            if n < p or pull == "auto":
                sums = class_columns(X, codes, C)
                self._check_squares(sums.squares, X)
                weights = self._weights(sums.counts)
                found = _discriminant.from_rows(X, codes, sums, pull, weights, threads, monitor)
            else:
                sums = class_moments(X, codes, C, threads, monitor)
                self._check_squares(np.diagonal(sums.scatter), X)
                found = _discriminant.from_sums(sums, pull, self._weights(sums.counts))
            self._keep(classes, sums, found)
        self.scatter_ = None

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Take in one more batch of labeled rows; the result is that of one ``fit`` on all of them.

        Keeps the p x p scatter within classes in ``scatter_``. ``classes`` names all classes that
        may come, as for scikit-learn's classifiers; without it, classes are added as they appear.
        The model can be used as soon as every class named has rows, and there are enough of both.
        """
        self.check_params()
        if self.shrinkage == "auto":
            raise ParameterError(
                "LDA: shrinkage='auto' needs all rows at once, which partial_fit does not have; "
                "use fit, or give the share as a number."
            )
        batch = self._check_batch(X)
        check_finite(batch, getattr(self, "feature_names_in_", None))
        labels = check_labels(y, batch.shape[0], owner="LDA")
        before = self._sums_so_far()
        union = join_classes(
            labels, None if before is None else self.classes_, classes, owner="LDA"
        )
        codes = np.searchsorted(union, labels.classes)[labels.codes]
        with self._running() as run, limit_blas(1):
            sums = class_moments(batch, codes, len(union), run.threads, run.monitor)
            self._check_squares(np.diagonal(sums.scatter), batch)
            if before is not None:
                places = np.searchsorted(union, self.classes_)
                parts = widened(before, places, len(union)), sums
                sums = merge_classes(*parts)
                self._check_merged(sums.scatter, np.vstack([part.means for part in parts]))
            self._start_over(sums, union)
            if self._is_enough(sums):
                self._check_sizes(union, sums.n_rows, batch.shape[1])
                weights = self._weights(sums.counts)
                found = _discriminant.from_sums(sums, self.shrinkage, weights)
                self._keep(union, sums, found)
        return self

    def _sums_so_far(self) -> Any:
        sums = self._has_sums()
        return ClassMoments(self.class_counts_, self.means_, self.scatter_) if sums else None

    def _start_over(self, sums: ClassMoments, classes: np.ndarray) -> None:
        """Keep the sums and forget the model, which more classes may make impossible for now."""
        columns = {name: vars(self)[name] for name in vars(self) if name.endswith("_in_")}
        self._forget()
        vars(self).update(columns)
        self.classes_, self.n_samples_seen_ = classes, sums.n_rows
        self.class_counts_, self.means_, self.scatter_ = sums

    def _is_enough(self, sums: ClassMoments) -> bool:
        wanted = max(self.n_components or 1, 1 if self.priors is None else len(self.priors) - 1)
        return bool(sums.counts.all()) and wanted < len(sums.counts) < sums.n_rows

    def _check_sizes(self, classes: np.ndarray, n: int, p: int) -> None:
        C = len(classes)
        if C < 2:
            raise DataError(
                "LDA needs at least two classes, but y has only one class, "
                f"{classes.tolist()[0]!r}; give rows of another class, too."
            )
        if n <= C:
            raise DataError(
                f"LDA needs more rows than classes, not {n} rows of {C} classes: nothing can be "
                "said about the variance within classes of one row each."
            )
        size, kind = min(n, p), "covariances" if p <= n else "inner products"
        require_memory(
            8 * (5 * size * size + (n * p if n < p else 0)),
            task=f"LDA with {size} x {size} {kind}",
            alternative="reduce the columns first, for example with PCA(n_components=1000)",
        )
        most = min(C - 1, p)
        if self.n_components is not None and self.n_components > most:
            raise ParameterError(
                f"LDA: n_components={self.n_components} is more than {most}, one less than the "
                f"{C} classes or the number of columns ({p}); ask for at most {most}."
            )

    def _priors(self, counts: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return counts / counts.sum()
        priors = np.asarray(self.priors, dtype=float)
        if len(priors) != len(counts) or abs(priors.sum() - 1.0) > 1e-5:
            raise ParameterError(
                f"LDA: priors={self.priors!r} are {len(priors)} numbers with the sum "
                f"{priors.sum():g}; give {len(counts)}, one per class, with the sum 1."
            )
        return priors / priors.sum()

    def _weights(self, counts: np.ndarray) -> np.ndarray:
        """Weights of the class means in S_B when S_W is divided by n - C."""
        return counts.sum() * self._priors(counts) / (counts.sum() - len(counts))

    def _keep(self, classes: np.ndarray, sums: Any, found: _discriminant.Discriminants) -> None:
        """Set the fitted attributes."""
        counts, means = sums.counts, sums.means
        n, C, priors = int(counts.sum()), len(counts), self._priors(counts)
        most = min(means.shape[1], C - 1)
        k = self.n_components or most
        ratios, axes = np.zeros(most), np.zeros((most, means.shape[1]))
        ratios[: len(found.ratios)], axes[: len(found.axes)] = found.ratios, found.axes
        self.classes_, self.class_counts_, self.n_samples_seen_ = classes, counts, n
        self.priors_, self.means_, self.scale_, self.n_components_ = priors, means, None, k
        self.mean_ = means[0] + priors @ (means - means[0])
        self.components_ = np.ascontiguousarray(fix_signs(axes[:k].T).T)
        self.eigenvalues_ = ratios[:k]
        self.discriminant_power_ = ratios[:k] / (1.0 + ratios[:k])
        self.explained_variance_ratio_ = ratios[:k] / (ratios.sum() or 1.0)
        logs = np.log(priors) if self.rule == "bayes" else np.zeros(C)
        coefficients = found.coefficients * (n / (n - C))  # likelihood's covariance is S_W / n
        self.coef_, constants = _discriminant.decision(coefficients, means - self.mean_, logs)
        self.intercept_ = constants - self.coef_ @ self.mean_
        self.threshold_ = self._cut_line(float(constants[0])) if C == 2 else None

    def _cut_line(self, constant: float) -> float | None:
        """Two classes: turn the axis to the second; cut it where the log-odds are 0."""
        z0, z1 = (self.means_ - self.mean_) @ self.components_[0]
        if z1 < z0:
            self.components_ = -self.components_
        if z1 == z0:
            return None
        slope = self.coef_[0] @ (self.means_[1] - self.means_[0]) / abs(z1 - z0)
        return float(-constant / slope)

    def _decide(self, X: Any, run: FitContext) -> np.ndarray:
        at_mean = self.intercept_ + np.einsum("cp,p->c", self.coef_, self.mean_)
        scores = products.times(X, self.mean_, self.coef_.T, run.threads)
        scores += at_mean.astype(scores.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _decoder(self) -> np.ndarray:
        with limit_blas(1):
            return np.ascontiguousarray(np.linalg.pinv(self.components_).T)
