"""Multidimensional scaling: from distances to positions."""
