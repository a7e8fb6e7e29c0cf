"""Measures of each point: what its neighborhood has lost and gained."""
