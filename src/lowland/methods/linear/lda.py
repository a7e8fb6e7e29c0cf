"""Fisher's linear discriminant (Fisher 1936; Rao 1948)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lowland._base.constraints import Integer, Null, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.models.checks import Ascending, above, count
from lowland._base.params import fitted, param
from lowland._base.rows.table import Rows
from lowland._base.targets import Classifier, check_labels
from lowland._base.threads import limit_blas
from lowland._base.traits import Card
from lowland._base.validation import check_size
from lowland._engines.linalg import products
from lowland._engines.linalg.class_moments import (
    ClassColumns,
    ClassMoments,
    class_columns,
    sums_by_class,
)
from lowland._engines.linalg.eigen import fix_signs
from lowland.methods.linear import _discriminant as solvers
from lowland.methods.linear._moments import MomentsReducer


class LDA(Classifier, MomentsReducer):
    """Axes that separate classes: maximize w^T S_B w / w^T S_W w, scatter between over within.

    A map for labeled rows, and a classifier. Use it to see how groups differ and in which columns,
    to classify with few rows, or to compress data before another classifier. Do not use it when
    classes differ in spread rather than in mean, or when a class consists of several clusters.
    The units of the columns do not matter. Cost: O(n p^2 + p^3), or O(n^2 p + n^3) when there are
    more columns than rows.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of axes, at most one less than there are classes. None keeps as many as possible.
        The classifier always uses all axes.
    shrinkage : None, "auto" or float in [0, 1], default=None
        Share by which the covariance within classes is pulled towards a multiple of the identity.
        "auto" estimates the best share for each class (Ledoit and Wolf), in units of the standard
        deviations of its columns. Shrinkage is for few rows or many columns.
    priors : list of floats or None, default=None
        Probabilities of the classes, in the order of ``classes_``. None takes their shares of the
        rows.
    rule : {"bayes", "mahalanobis"}, default="bayes"
        Predict the most probable class ("bayes"), or the class with the nearest mean
        ("mahalanobis"). The distance to a mean is measured in the metric of the pooled covariance,
        without the priors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes w in rows, scaled to unit variance within classes (w^T S_W w = n - C).
    mean_ : ndarray of shape (n_features,)
        Mean of the class means, weighted by the priors.
    eigenvalues_ : ndarray of shape (n_components,)
        Scatter between classes over scatter within classes along each axis, largest first.
    discriminant_power_ : ndarray of shape (n_components,)
        Scatter between classes over total scatter along each axis, in (0, 1), largest first.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each eigenvalue in the sum of all, largest first: the share of the variance
        between classes, measured in units of the variance within classes.
    threshold_ : float or None
        For two classes, the coordinate where the prediction changes. Rows with ``transform(X) >
        threshold_`` are predicted to be of ``classes_[1]``. The threshold is optimal for normal
        classes of equal covariance. None for more classes, or for two classes with the same mean.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, sorted.
    class_counts_ : ndarray of shape (n_classes,)
        Number of rows of each class.
    priors_ : ndarray of shape (n_classes,)
        Probability of each class.
    means_ : ndarray of shape (n_classes, n_features)
        Class means (barycenters).
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the decision function ``X @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Constants of the decision function.
    scatter_ : ndarray of shape (n_features, n_features) or None
        Scatter matrix within classes of the rows given to ``partial_fit``. None after ``fit``.

    Notes
    -----
    S_W is factored once; the steps after that cost little, because their size is the number of
    classes. With more columns than rows, the work is done in the span of the rows. If S_W is
    singular, a pseudo-inverse would drop the directions in which no class varies, although such
    directions separate classes perfectly if the class means differ in them. Here these directions
    get the smallest positive variance of S_W. Axes beyond the rank of the data are 0.

    The largest entry of each axis is positive; for two classes the axis points to the second
    class. ``inverse_transform`` gives the point with the smallest deviation from the mean (least
    squares). Axes are scaled by S_W / (n - C), as in R's MASS. The classifier uses the maximum
    likelihood estimate S_W / n, as scikit-learn does. ``shrinkage`` does not change S_B. No random
    numbers are used.

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

    n_components: int | None = param(Integer(1) | Null(), default=None, kw_only=False)
    shrinkage: float | str | None = param(
        Null() | OneOf("auto") | Real(0, 1, closed="both"), default=None
    )
    priors: Any = param(Null() | Several(Real(0, 1)), default=None)
    rule: str = param(OneOf("bayes", "mahalanobis"), default="bayes")

    eigenvalues_: np.ndarray = fitted("n_components")
    discriminant_power_: np.ndarray = fitted("n_components")
    explained_variance_ratio_: np.ndarray = fitted("n_components")
    threshold_: float | None = fitted(optional=True)
    classes_: np.ndarray = fitted("n_classes", type=object, meaning=Ascending(strict=True))
    class_counts_: np.ndarray = fitted("n_classes", type=int, meaning=count(1))
    priors_: np.ndarray = fitted("n_classes", meaning=above(0))
    means_: np.ndarray = fitted("n_classes", "n_features")
    coef_: np.ndarray = fitted("n_scores", "n_features")
    intercept_: np.ndarray = fitted("n_scores")

    card = Card(
        keeps="what separates the classes: variance between them in units of the variance within",
        use="to see how labeled groups differ and in which columns, and to classify with few rows",
        avoid="when classes differ in spread and not in mean; as evidence that groups exist: the "
        "method was given the labels",
        cost="O(n p min(n, p)) time, O(n p) memory",
    )
    reference = "Fisher (1936); Rao (1948)"
    fit_checks_finite = False
    aliases = ("fisher", "linear_discriminant_analysis")
    components_limit = "classes"
    reading = MomentsReducer.reading._replace(
        distances="The method was given the classes and separates them as far as it can. Distances "
        "in the map are not the distances of the data.",
        gaps="A gap between classes is not evidence that the classes exist, because the method "
        "was given the labels. Look at held-out rows.",
        sizes="Each class has a variance of about 1 along each axis if the classes have equal "
        "covariances.",
        scale="The unit of each axis is the standard deviation within classes.",
    )

    # --- the axes -----------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        labels = check_labels(y, X.shape[0], owner="LDA")
        solvers.check_sizes(labels.classes, *X.shape, self.n_components)
        if X.shape[0] >= X.shape[1] and self.shrinkage != "auto":
            self._finish(solvers.LabeledSums.of(X, labels, None, run), run)
            return
        with limit_blas(1):  # so that no byte depends on the threads; kernels do large products
            sums = class_columns(X, labels.codes, len(labels.classes))
            weights = self._weights(sums.counts)
            rows = solvers.LabeledRows(X, labels.codes, sums)
            found = solvers.from_rows(rows, self.shrinkage, weights, run)
            self._keep(labels.classes, sums, found)

    def _finish(self, labeled: solvers.LabeledSums, run: FitContext) -> None:
        classes, sums = labeled
        solvers.check_sizes(classes, sums.n_rows, sums.means.shape[1], self.n_components)
        check_size(float(np.sqrt((sums.means**2).max() + sums.scatter.max() / sums.n_rows)))
        with limit_blas(1):
            found = solvers.from_sums(sums, self.shrinkage, self._weights(sums.counts))
            self._keep(classes, sums, found)

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        if self.shrinkage != "auto":
            super()._fit_rows(rows, run)
            return
        labeled = sums_by_class(rows, "LDA", run.monitor)
        classes, sums = labeled.classes, labeled.by_class
        solvers.check_sizes(classes, *rows.shape, self.n_components)
        check_size(float(np.maximum(-labeled.low, labeled.high).max()))
        with limit_blas(1):
            weights = self._weights(sums.counts)
            S = solvers.shrunk_scatter(rows, classes, sums, weights, run)
            self._keep(classes, sums, solvers.by_covariance(S, sums.means, weights))

    def _weights(self, counts: np.ndarray) -> np.ndarray:
        """Weights of the class means in S_B when S_W is divided by n - C."""
        n = counts.sum()
        return n * solvers.class_priors(self.priors, counts) / (n - len(counts))

    def _keep(
        self, classes: np.ndarray, sums: ClassMoments | ClassColumns, found: solvers.Discriminants
    ) -> None:
        """Set the fitted attributes."""
        counts, means, priors = (
            sums.counts,
            sums.means,
            solvers.class_priors(self.priors, sums.counts),
        )
        n, C = int(counts.sum()), len(counts)
        axes, ratios = found.padded(min(C - 1, means.shape[1]))
        k = self.n_components or len(ratios)
        self.classes_, self.class_counts_ = classes, counts
        self.priors_, self.means_ = priors, means
        self.n_samples_seen_, self.scatter_ = n, None
        self._keep_map(fix_signs(axes[:k].T).T, means[0] + priors @ (means - means[0]))
        self.eigenvalues_ = ratios[:k]
        self.discriminant_power_ = ratios[:k] / (1.0 + ratios[:k])
        self.explained_variance_ratio_ = ratios[:k] / (ratios.sum() or 1.0)
        # the classifier uses the maximum likelihood covariance S_W / n
        self._keep_classifier(found.coefficients * (n / (n - C)))

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the scores are looked up among the classes."""
        n_classes, n_scores = len(self.classes_), len(self.coef_)
        if n_classes < 2 or n_scores != (1 if n_classes == 2 else n_classes):
            return f"'coef_' with {n_scores} scores for {n_classes} classes"
        return super().inconsistency()

    def _decoder(self) -> np.ndarray:
        with limit_blas(1):
            return np.ascontiguousarray(np.linalg.pinv(self.components_).T)

    # --- the classifier -----------------------------------------------------------------------

    def _keep_classifier(self, B: np.ndarray) -> None:
        """score_c(x) = b_c^T (x - m) - b_c^T (m_c - m) / 2 + log prior_c, b_c = S^-1 (m_c - m).

        For two classes there is one row: the log-odds of the second class.
        """
        log_priors = np.log(self.priors_) if self.rule == "bayes" else np.zeros(len(self.priors_))
        constants = log_priors - 0.5 * np.einsum("cp,cp->c", B, self.means_ - self.mean_)
        two = len(B) == 2
        self.coef_, constants = (np.diff(B, axis=0), np.diff(constants)) if two else (B, constants)
        self.intercept_ = constants - self.coef_ @ self.mean_
        self.threshold_ = None
        if two:  # turn the axis to the second class; the coordinate where the log-odds are 0
            z0, z1 = (self.means_ - self.mean_) @ self.components_[0]
            if z1 < z0:
                self.components_ = -self.components_
            if z1 != z0:
                slope = self.coef_[0] @ (self.means_[1] - self.means_[0]) / abs(z1 - z0)
                self.threshold_ = float(-constants[0] / slope)

    def _decide(self, X: Any, run: FitContext) -> np.ndarray:
        at_mean = self.intercept_ + np.einsum("cp,p->c", self.coef_, self.mean_)
        scores = products.times(X, self.mean_, self.coef_.T, run.threads)
        scores += at_mean.astype(scores.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    # --- batches ------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Add one more batch of labeled rows; the result is that of one ``fit`` on all batches.

        Keeps the p x p scatter matrix within classes in ``scatter_``. ``classes`` lists all classes
        that may come, as for scikit-learn's classifiers. Without it, classes are added as they
        appear. The model can be used as soon as every class has rows, and there are more rows than
        classes.
        """
        self.check_params()
        if self.shrinkage == "auto":
            raise ParameterError(
                "LDA: shrinkage='auto' needs all rows at once, which partial_fit does not have; "
                "use fit, or give the share as a number."
            )
        return self._add_batch(X, y, classes)

    def _target(self, y: Any, named: Any) -> Any:
        return y, named

    def _sums(self, X: Any, target: Any, run: FitContext) -> solvers.LabeledSums:
        y, named = target
        return solvers.LabeledSums.of(X, check_labels(y, X.shape[0], owner="LDA"), named, run)

    def _merged(
        self, before: solvers.LabeledSums, batch: solvers.LabeledSums
    ) -> solvers.LabeledSums:
        return before.merged(batch)

    def _is_enough(self, labeled: solvers.LabeledSums) -> bool:
        counts = labeled.sums.counts
        wanted = max(self.n_components or 1, 1 if self.priors is None else len(self.priors) - 1)
        return bool(counts.all()) and wanted < len(counts) < counts.sum()

    def _stored_sums(self) -> solvers.LabeledSums:
        sums = ClassMoments(self.class_counts_, self.means_, self.scatter_)
        return solvers.LabeledSums(self.classes_, sums)

    def _store_sums(self, labeled: solvers.LabeledSums) -> None:
        self.classes_, self.n_samples_seen_ = labeled.classes, labeled.sums.n_rows
        self.class_counts_, self.means_, self.scatter_ = labeled.sums
