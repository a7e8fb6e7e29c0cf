"""What docs/reading.md says about the scale of each method's map is true."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from lowland._base import registry
from lowland.datasets import iris, swiss_roll
from support.methods import dimensions, sampled

PAGE = Path(__file__).resolve().parents[2] / "docs/reading.md"
FACTOR = 8.0  # a power of two changes no digit of the data


def claims():
    """(method, text of the column "scale of the map") of each row of the first table."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        for name in re.findall(r"\(methods/(\w+)\.md\)", line):
            if line.startswith("| ["):
                yield name, line.strip("| ").split("|")[-1].strip()


def test_there_are_claims_and_none_about_an_unknown_method():
    names = [name for name, _ in claims()]
    assert len(names) == len(set(names)) >= 19
    assert set(names) <= set(registry.names())


@pytest.mark.parametrize("cls", sampled(registry.get(name) for name, _ in claims()))
def test_the_scale_is_as_claimed(cls):
    name = registry.snake_case(cls.__name__)
    claim = dict(claims())[name]
    if name == "lda":
        data = iris()
        assert claim == "standard deviation within classes is 1"
        Y = cls(2).fit_transform(data.X, data.y)
        within = sum(((Y[data.y == c] - Y[data.y == c].mean(axis=0)) ** 2).sum(0) for c in range(3))
        np.testing.assert_allclose(within / (len(Y) - 3), 1)
        return
    X = swiss_roll(300, random_state=0).X
    q = dimensions(cls)
    Y = cls(n_components=q, random_state=0).fit_transform(X)
    larger = cls(n_components=q, random_state=0).fit_transform(X * FACTOR)
    ratio = larger.std(axis=0) / Y.std(axis=0)
    if claim.startswith("units of"):
        np.testing.assert_allclose(ratio, FACTOR, rtol=1e-3)
    elif claim.startswith("variance 1 per axis"):
        np.testing.assert_allclose(Y.std(axis=0), 1, rtol=1e-6)
    elif claim.startswith("no unit"):
        np.testing.assert_allclose(ratio, 1, rtol=1e-3)
    elif claim.startswith("mean squared distance is 1"):
        assert np.mean(pdist(Y, "sqeuclidean")) == pytest.approx(1)
    else:
        assert claim == "set by the kernel"
