"""Rows of a run that are read in chunks, because the table is larger than memory.

``rows.py`` has the source of rows for a run: a sample decides about the columns (``roles.py``), all
rows or a sample are fitted, all rows are placed in part files, and some rows are measured against
all (``measuring.py``).
"""
