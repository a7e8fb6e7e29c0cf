"""What a method declares of itself is true: its documentation, its traits, its aliases."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland._base import registry
from lowland._base.base import Invertible, Reducer
from lowland._base.params import complete, entries, short
from lowland.errors import LowlandError
from lowland.neighbors import knn_graph


def test_the_first_sentence_of_a_parameter_fits_on_a_line(method):
    for name in method.parameters():
        entry = method.documentation(name)
        assert 5 < len(short(entry)) <= 120, name
        assert entry.text.endswith((".", ".)")), name


def test_documented_defaults_are_the_declared_ones(method):
    for name, field in method.parameters().items():
        written = re.search(r"default=(.+)$", method.documentation(name).kind)
        assert written is not None, name
        assert eval(written[1]) == field.default, name


def test_help_lists_every_parameter_and_attribute_once(method):
    for section, names in (
        ("Parameters", method.parameters()),
        ("Attributes", method.fitted_attributes),
    ):
        shown = entries(method.__doc__, section)
        assert set(names) <= set(shown)
        for name in names:
            assert len(re.findall(rf"^{name} : ", method.__doc__, re.MULTILINE)) <= 1, name


def test_the_map_is_explained_in_sentences(method):
    for sentence in method.reading:
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert len(sentence) < 330


def test_a_method_has_at_most_two_bases_of_its_family_and_three_in_all(method):
    between = [
        base
        for base in method.__mro__[1:]
        if issubclass(base, Reducer) and base not in (Reducer, Invertible)
    ]
    assert len(between) <= 3
    assert sum(not base.__module__.startswith("lowland.methods._bases.") for base in between) <= 2


def test_aliases_mean_one_method(method):
    for alias in method.aliases:
        assert registry.get(alias) is method
        assert registry.get(alias.replace("_", "-").upper()) is method


def test_aliases_are_no_names_of_other_methods():
    plain = [name.replace("_", "") for name in registry.names()]
    plain += [alias.replace("_", "") for cls in registry.all_methods() for alias in cls.aliases]
    assert len(plain) == len(set(plain))


def test_distances_are_taken_where_that_is_declared(make, X):
    D = cdist(X[:60], X[:60])
    if not make().accepts_distances:
        with pytest.raises((LowlandError, TypeError)):
            make(metric="precomputed").fit(D)
        return
    model = make(metric="precomputed").fit(D)
    assert model.embedding_.shape == (60, 2)
    assert np.isfinite(model.transform(cdist(X[60:], X[:60]))).all()


def test_unknown_distances_are_taken_where_that_is_declared(make, X):
    D = cdist(X[:60], X[:60])
    D[3, 9] = D[9, 3] = np.nan
    if make().accepts_missing:
        assert np.isfinite(make(metric="precomputed").fit(D).embedding_).all()
        return
    with pytest.raises((LowlandError, TypeError)):
        make(metric="precomputed").fit(D)


def test_a_neighbor_graph_is_taken_where_that_is_declared(make, X):
    method = type(make())
    quick = {"perplexity": 5.0} if "perplexity" in method.parameters() else {}
    params = {"n_neighbors": 15} if method.__name__ == "DiffusionMaps" else quick
    graph = knn_graph(X, 15)
    if method.accepts_graph:
        assert np.isfinite(make(**params).fit(graph).embedding_).all()
        return
    with pytest.raises((LowlandError, TypeError)):
        make(**params).fit(graph)


def test_the_largest_number_of_components_can_be_had_and_no_more(make, X):
    method = type(make())
    if method.components_limit == "rows":
        return
    X = X[:5, :4] if method.components_limit == "rank" else X
    few = {"n_neighbors": 3} if "n_neighbors" in method.parameters() else {}
    most = method.most_components(*X.shape, n_classes=3)
    assert make(n_components=most, **few).fit_transform(X).shape == (len(X), most)
    with pytest.raises(LowlandError, match="n_components"):
        make(n_components=most + 1, **few).fit(X)


def test_a_docstring_is_completed_in_the_order_of_its_names():
    doc = """One line.

    Parameters
    ----------
    a : int, default=1
        Own text. More of it.

    Notes
    -----
    A note.
    """
    shared = entries(
        "x\n\nParameters\n----------\nb, c : float, default=2.0\n    Shared.", "Parameters"
    )
    found = complete(doc, {"Parameters": (["a", "b", "c"], shared)})
    assert list(entries(found, "Parameters")) == ["a", "b", "c"]
    assert found.index("c : float") < found.index("Notes\n-----\nA note.")
    assert short(entries(found, "Parameters")["a"]) == "Own text"
