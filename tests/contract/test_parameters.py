"""What a method declares: parameters, documentation, card, estimate."""

from __future__ import annotations

import inspect
import re

import pytest

from lowland.errors import ParameterError
from support.methods import every_method


@every_method
def test_init_only_stores_its_parameters(method):
    marker = object()
    estimator = method(**dict.fromkeys(method.parameters(), marker))
    assert vars(estimator) == dict.fromkeys(method.parameters(), marker)


@every_method
def test_signature_shows_every_parameter_with_its_default(method):
    shown = inspect.signature(method).parameters
    assert list(shown) == list(method.parameters())
    for name, field in method.parameters().items():
        assert shown[name].default is field.default


@every_method
def test_only_n_components_may_be_given_by_position(method):
    kinds = {p.name: p.kind for p in inspect.signature(method).parameters.values()}
    assert kinds.pop("n_components") is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}


# What every estimator of the package has, beside what describes the method.
COMMON = {"random_state", "n_jobs", "verbose", "callback"}
MOST = 10  # a design rule: more parameters mean that a group of them should be one object


@every_method
def test_there_are_not_too_many_parameters(method):
    """A method declares at most ten parameters of its own, and so does each of its bases."""
    for cls in method.__mro__:
        own = set(getattr(cls, "__annotations__", ())) & set(method.parameters()) - COMMON
        assert len(own) <= MOST, f"{cls.__name__}: {sorted(own)}"


@every_method
def test_defaults_satisfy_their_own_constraints(method):
    method().check_params()


def test_a_bad_parameter_is_refused_at_fit_by_name_and_value(method, X):
    for name, field in method.parameters().items():
        nonsense = complex(1, 7)
        estimator = method().set_params(**{name: nonsense})
        message = re.escape(f"{method.__name__}: {name}=(1+7j) is not allowed; expected")
        with pytest.raises(ParameterError, match=message) as caught:
            estimator.fit(X)
        assert field.metadata["constraint"].describe() in str(caught.value)


@every_method
def test_an_unknown_parameter_is_refused_with_the_nearest_name(method):
    with pytest.raises(ParameterError, match=r"did you mean 'n_components'\?"):
        method().set_params(n_component=2)


@every_method
def test_an_unknown_parameter_changes_none_of_the_others(method):
    estimator = method()
    before = estimator.get_params()
    with pytest.raises(ParameterError, match="unknown parameter"):
        estimator.set_params(n_components=7, verbose=True, no_such_thing=1)
    assert estimator.get_params() == before


@every_method
def test_get_params_gives_back_what_set_params_took(method):
    estimator = method(n_components=3, random_state=0)
    other = method().set_params(**estimator.get_params())
    assert other.get_params() == estimator.get_params()


@every_method
def test_repr_shows_only_what_differs_from_the_default(method):
    assert repr(method()) == f"{method.__name__}()"
    assert repr(method(random_state=7)) == f"{method.__name__}(random_state=7)"


@every_method
def test_every_parameter_and_attribute_is_documented(method):
    for name in (*method.parameters(), *method.fitted_attributes):
        assert method.documentation(name).text, name


@every_method
def test_the_docstring_has_its_sections_and_names_the_paper(method):
    text = inspect.getdoc(method)
    for section in ("Parameters\n---", "Attributes\n---", "References\n---", "Examples\n---"):
        assert section in text, section
    assert re.search(r"\b(18|19|20)\d\d\b", method.reference)
    assert len(method.summary()) <= 100


@every_method
def test_the_card_says_what_to_know_before_choosing(method):
    for text in method.card:
        assert 10 < len(text) < 220
        assert not text.endswith(".")  # it goes into tables


@every_method
def test_estimates_grow_with_the_data(method):
    small, large = method.estimate(1000, 20), method.estimate(4000, 40)
    assert 0 < small.seconds < large.seconds
    assert 0 < small.n_bytes < large.n_bytes
