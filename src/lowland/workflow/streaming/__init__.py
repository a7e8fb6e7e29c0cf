"""Maps of tables that are read in chunks, because they are larger than memory.

``running.py`` has the flow: a sample decides about the columns, all rows or a sample are fitted,
all rows are placed in part files, and some rows are measured against all.
"""
