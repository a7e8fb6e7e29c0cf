"""SOM (batch rule) and GTM of tables that are read in chunks."""

from __future__ import annotations

import numpy as np
import pytest

import lowland
from lowland import GTM, SOM
from lowland._base.rows.engines import Stream, using
from lowland.errors import DataError, ParameterError
from support.cases import each
from support.chunks import assert_same_bytes_everywhere, chunks, irregular, relative_gap, with_gaps
from support.states import assert_same_state, fitted_state

QUICK = {"max_iter": 12}
METHODS = [(SOM, {"sides": [7, 5]}), (GTM, {"n_nodes": 7, "n_basis": 3})]
KINDS = ["float64", "offset", "wide", "sparse", "huge"]

each_method = each("method, params", METHODS, ids=lambda value: getattr(value, "__name__", ""))


def both(method, X, **params):
    params = {**QUICK, **params}
    return method(**params).fit(X), method(**params).fit(chunks(X))


def assert_alike(here, there, X, near=1e-6):
    """Every number of the model but the map, and the places of fitted and of new rows."""
    for name, value in fitted_state(here).items():
        if name == "embedding_":
            assert there.embedding_ is None
        elif name != "feature_names_in_":
            assert relative_gap(getattr(there, name), value) < near, name
    for rows in (X, X[50:60] * 1.01):
        assert relative_gap(there.transform(rows), here.transform(rows)) < near


@each("gaps", [False, True])
@each("kind", KINDS)
@each_method
def test_the_model_is_that_of_memory(method, params, kind, gaps):
    X = irregular(kind)
    if gaps and kind == "sparse":
        pytest.skip("sparse rows have no missing values")
    X = with_gaps(X) if gaps else X
    assert_alike(*both(method, X, **params), X)


@each(
    "params",
    [
        {},
        {"n_components": 1},
        {"toroidal": True, "sides": [6, 4]},
        {"init": "random", "random_state": 4},
        {"grid": "rectangle", "places": "units"},
        {"neighborhood": "bubble"},
        {"neighborhood": "epanechnikov", "radius": [3.0, 1.0]},
        {"sides": [2, 1]},
        {"max_iter": 0},
    ],
)
def test_every_setting_of_the_batch_rule_is_that_of_memory(params):
    X = irregular("float64")
    assert_alike(*both(SOM, X, **params), X)


def test_given_units_need_no_plane():
    X = irregular("float64")
    here, there = both(SOM, X, sides=[4, 3], init=X[:12])
    assert_alike(here, there, X)


def test_float32_rows_get_the_units_of_memory():
    X = irregular("float32")
    here, there = both(SOM, X, sides=[7, 5])
    # a sum of n rows in float32, as in memory, is right to n 2^-24
    assert relative_gap(there.codebook_, here.codebook_) < len(X) * 2.0**-24
    assert np.array_equal(there.hits_, here.hits_)


def test_float32_rows_get_a_sheet_that_is_as_likely():
    X = irregular("float32")
    here, there = both(GTM, X, n_nodes=7, n_basis=3)
    # EM may take another way at near ties; the likelihood is a sum of n rows in float32
    near = len(X) * 2.0**-24
    assert there.mean_log_likelihood_ == pytest.approx(here.mean_log_likelihood_, rel=near)


def test_k_means_ends_with_the_same_winners_as_in_memory():
    """The fit ends as soon as no row changes its unit, which chunks know by digests only."""
    X = irregular("float64")
    here, there = both(SOM, X, radius=0.0, max_iter=200, sides=[3, 2])
    assert there.n_iter_ == here.n_iter_ < 200
    nearest = there.predict(X)
    for unit, center in enumerate(there.codebook_):
        np.testing.assert_allclose(center, X[nearest == unit].mean(axis=0), atol=1e-9)


class Counting(Stream):
    """Counts passes over the rows."""

    def __init__(self):
        self.passes = 0

    def run(self, job, monitor):
        self.passes += 1
        return super().run(job, monitor)


@each("gaps", [False, True])
def test_an_epoch_is_one_pass(gaps):
    X = irregular("float64")
    X = with_gaps(X) if gaps else X
    with using(Counting()) as engine:
        model = SOM(sides=[7, 5], max_iter=6).fit(chunks(X))
    assert model.n_iter_ == 6
    assert engine.passes == 1 + gaps + (1 + 6) + 1  # start, filled gaps, epochs, errors


def test_a_step_of_em_is_one_pass():
    with using(Counting()) as engine:
        model = GTM(n_nodes=5, n_basis=2, max_iter=6, tol=0.0).fit(chunks(irregular("float64")))
    assert model.n_iter_ == 6
    assert engine.passes == 1 + (1 + 6)


@each("gaps", [False, True])
@each_method
def test_threads_and_engines_change_no_byte(method, params, gaps):
    X = irregular("float64")
    X = with_gaps(X) if gaps else X
    assert_same_bytes_everywhere(method, {**QUICK, **params}, X)


@each_method
def test_a_model_of_chunks_is_saved_and_loaded(method, params, tmp_path):
    X = irregular("huge")
    model = method(**QUICK, **params).fit(chunks(X))
    model.save(tmp_path / "model")
    again = lowland.load(tmp_path / "model")
    assert_same_state(fitted_state(model), fitted_state(again))
    assert np.array_equal(again.transform(X), model.transform(X))
    Y = model.transform(X[:9])
    assert np.array_equal(again.inverse_transform(Y), model.inverse_transform(Y))


@each_method
def test_a_callback_gets_no_rows_and_can_stop(method, params):
    seen = []

    def callback(step, Y, loss):
        seen.append((step, Y.shape, loss))
        return step == 3

    model = method(callback=callback, max_iter=12, **params).fit(chunks(irregular("float64")))
    assert [step for step, *_ in seen] == [1, 2, 3]
    assert {shape for _, shape, _ in seen} == {(0, 2)}
    assert model.n_iter_ == 3
    assert seen[-1][2] == model.loss_history_[-1]


@each_method
def test_a_cancelled_fit_keeps_what_it_has(method, params):
    def callback(step, Y, loss):
        if step == 2:
            model.cancel()

    model = method(callback=callback, max_iter=12, **params)
    X = irregular("float64")
    model.fit(chunks(X))
    assert model.n_iter_ == 2
    assert np.isfinite(model.transform(X)).all()


def test_the_online_rule_names_the_batch_rule_and_the_sample():
    with pytest.raises(ParameterError, match=r"rule='online'.*rule='batch'.*rows\.sample"):
        SOM(rule="online").fit(chunks(irregular("float64")))


@each_method
def test_a_column_without_a_value_is_refused_as_in_memory(method, params):
    X = with_gaps(irregular("float64"))
    X[:, 2] = np.nan
    messages = []
    for table in (X, chunks(X)):
        with pytest.raises(DataError, match="column 2") as error:
            method(**params).fit(table)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@each_method
def test_a_column_may_be_unknown_in_whole_chunks(method, params):
    X = irregular("float64")
    X[64:256, 1] = np.nan  # three chunks
    X[:64, 2] = np.nan  # the first
    assert_alike(*both(method, X, **params), X)


def test_too_many_components_are_refused_as_in_memory():
    X = irregular("float64")
    for model in (SOM(3), GTM(4), GTM(3)):
        messages = []
        table = X[:, :2]
        for rows in (table, chunks(table)):
            with pytest.raises(ParameterError, match="n_components") as error:
                model.fit(rows)
            messages.append(str(error.value))
        assert messages[0] == messages[1]


@each_method
def test_a_row_without_a_value_is_named(method, params):
    X = irregular("float64")
    X[70] = np.nan
    with pytest.raises(DataError, match=r"X, rows 64 to 127: .*NaN only in row 6"):
        method(**params).fit(chunks(X))
