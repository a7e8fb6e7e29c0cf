"""Columns before they are a table: their roles, vectors, codes for missing values."""
