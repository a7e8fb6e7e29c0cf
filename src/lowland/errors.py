"""Errors and warnings of lowland, for ``except`` clauses."""

from lowland._core.errors import (
    ConvergenceWarning,
    DataError,
    DataTypeError,
    LowlandError,
    MemoryLimitError,
    ModelFileError,
    ParameterError,
    StoppedError,
)

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "LowlandError",
    "MemoryLimitError",
    "ModelFileError",
    "ParameterError",
    "StoppedError",
]
