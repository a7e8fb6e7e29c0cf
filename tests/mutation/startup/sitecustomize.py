"""Measures the lines of every Python that starts with this folder on its path."""

import os

if "COVERAGE_PROCESS_START" in os.environ:
    import coverage

    coverage.process_startup()
