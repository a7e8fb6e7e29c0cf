"""Measures of the groups that a map shows: islands, the gaps between them, their stability."""
