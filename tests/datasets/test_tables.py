"""Tables that come with scikit-learn, whichever way they are read."""

import numpy as np
from sklearn.datasets import load_digits

from lowland.datasets import bundled, digits


def test_digits_read_without_scikit_learn_are_its_digits(monkeypatch):
    theirs, ours = load_digits(), digits()
    assert np.array_equal(ours.X, theirs.data)
    assert np.array_equal(ours.y, theirs.target)
    assert ours.feature_names == tuple(theirs.feature_names)
    monkeypatch.setattr(bundled, "_shipped_table", lambda name: None)
    loaded = digits()
    assert np.array_equal(loaded.X, ours.X)
    assert loaded.feature_names == ours.feature_names
    assert loaded.label_names == ours.label_names
