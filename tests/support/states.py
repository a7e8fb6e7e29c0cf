"""What ``fit`` left behind, compared value by value."""

from __future__ import annotations

from typing import Any

import numpy as np


def fitted_state(estimator: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


def assert_same_state(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
