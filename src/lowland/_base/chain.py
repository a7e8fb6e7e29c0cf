"""Models made of fitted models: steps one after another, and one map of several tables.

A :class:`Chain` prepares the columns, reduces them and makes the map. In a :class:`JointModel` each
table has its own preparation, and all share one map.
"""

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


class DomainStep:
    """A fitted alignment as the placement of rows of one of its sets."""

    def __init__(self, alignment: Any, domain: int) -> None:
        self.alignment, self.domain = alignment, domain

    def __repr__(self) -> str:
        return f"{self.alignment!r} of set {self.domain}"

    @property
    def n_features_in_(self) -> int:
        """Columns of this set."""
        return int(np.diff(self.alignment.column_starts_)[self.domain])

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Their names, if the alignment has them."""
        names = self.alignment.feature_names_in_[
            slice(*self.alignment.column_starts_[self.domain : self.domain + 2])
        ]
        if not any(names):
            raise AttributeError("this set has no names of columns")
        return names

    def transform(self, X: Any) -> Any:
        """Place rows of this set."""
        return self.alignment.transform(X, domain=self.domain)

    def parameters(self) -> Any:
        """Those of the alignment."""
        return self.alignment.parameters()

    def set_params(self, **params: Any) -> DomainStep:
        """Set parameters of the alignment."""
        self.alignment.set_params(**params)
        return self


class JointModel:
    """Fitted preparations, one for each set, and the alignment that puts all sets into one map.

    ``lowland align`` makes such a model; ``lowland.load`` gives it back.

    Parameters
    ----------
    names : sequence of str
        The names of the sets, all different.
    preparations : sequence of fitted estimators
        One for each set.
    alignment : fitted alignment
        Its ``transform(X, domain)`` takes what the preparation of that set gives.
    """

    def __init__(self, names: Sequence[str], preparations: Sequence[Any], alignment: Any) -> None:
        if len({*names}) < len(names) or len(names) != len(preparations) or not names:
            raise ParameterError(
                f"JointModel: {len(names)} names and {len(preparations)} preparations were given; "
                "expected one preparation and one name for each set."
            )
        self.names, self.preparations = tuple(names), tuple(preparations)
        self.alignment = alignment

    def __repr__(self) -> str:
        return f"JointModel({', '.join(self.names)}; {self.alignment!r})"

    @property
    def embeddings_(self) -> list[np.ndarray]:
        """The map of the fitted rows of each set."""
        return self.alignment.embeddings_

    def domain(self, which: int | str) -> Chain:
        """The model of one set, by its name or number, which takes rows as that table has them."""
        place = _place(which, len(self.names), self.names)
        return Chain([self.preparations[place], DomainStep(self.alignment, place)])

    def transform(self, X: Any, domain: int | str = 0) -> Any:
        """Place rows of one set in the common map, each as if it came alone."""
        return self.domain(domain).transform(X)

    def set_params(self, **params: Any) -> JointModel:
        """Set parameters, such as ``n_jobs``, in all the steps that have them."""
        Chain([*self.preparations, self.alignment]).set_params(**params)
        return self

    def save(self, path: str | Path) -> None:
        """Write preparations and alignment to one model file."""
        from lowland._base.models.codec import save_joint

        save_joint(self, path)


def domain_model(model: Any, which: int | str | None, option: str = "domain") -> Any:
    """What places rows: of one set if the model has several, else the model itself.

    ``option`` is what messages call the choice of the set.
    """
    if isinstance(model, JointModel):
        names: tuple[str, ...] = model.names
    elif hasattr(model, "column_starts_"):
        names = tuple(map(str, range(model.n_sets_)))
    elif which is None:
        return model
    else:
        raise ParameterError(f"{option}: the model is of one table and has no sets; leave it out.")
    if which is None:
        raise ParameterError(
            f"{option}: the model places rows of several sets; name the one that the rows belong "
            f"to: {', '.join(names)}."
        )
    place = _place(which, len(names), names, option)
    return model.domain(place) if isinstance(model, JointModel) else DomainStep(model, place)


def _place(which: int | str, n: int, names: Sequence[str], option: str = "domain") -> int:
    """The number of a set; a name comes before a number."""
    if isinstance(which, str) and which in names:
        return list(names).index(which)
    number = int(which) if isinstance(which, str) and which.isdecimal() else which
    if isinstance(number, int | np.integer) and not isinstance(number, bool) and 0 <= number < n:
        return int(number)
    raise ParameterError(f"{option}: {unknown_name('set', str(which), list(names))}")
