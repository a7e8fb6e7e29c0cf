"""Metrics, rows of distances, precomputed distances, ranks."""
