"""Helpers that test modules import: ``pythonpath`` in pyproject.toml makes them importable."""
