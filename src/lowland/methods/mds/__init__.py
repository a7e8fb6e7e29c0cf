"""Multidimensional scaling: maps whose distances fit given distances or dissimilarities."""
