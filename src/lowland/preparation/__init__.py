"""Preparation of the columns of a table: the first step of a model."""
