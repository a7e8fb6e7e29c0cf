"""Columns made ready for a method: the first step of a model made from a table."""
