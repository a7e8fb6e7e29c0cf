"""Types of the compiled kernels; `lowland._native` says what each computes."""

import numpy as np

def instruction_sets() -> list[str]: ...
def count_nested(width: int, depth: int, threads: int) -> int: ...
def all_finite(x: np.ndarray, threads: int, isa: str = "auto") -> bool: ...
def scatter(
    x: np.ndarray,
    shift: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def inner(
    a: np.ndarray,
    shift_a: np.ndarray,
    b: np.ndarray,
    shift_b: np.ndarray,
    symmetric: bool,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def project(
    x: np.ndarray,
    shift: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
def sparse_times(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    v: np.ndarray,
    offset: np.ndarray,
    out: np.ndarray,
    threads: int,
    isa: str = "auto",
) -> None: ...
