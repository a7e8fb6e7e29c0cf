"""Errors and warnings of lowland, for ``except`` clauses."""

from lowland._base.errors import (
    ClusterError,
    ConvergenceWarning,
    DataError,
    DataTypeError,
    LowlandError,
    MemoryLimitError,
    ModelFileError,
    NeedsMemoryError,
    ParameterError,
    StoppedError,
)

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "LowlandError",
    "MemoryLimitError",
    "ModelFileError",
    "NeedsMemoryError",
    "ParameterError",
    "StoppedError",
]
