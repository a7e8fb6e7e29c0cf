"""Files that are read in chunks: one module for each kind of reader.

``looking.py`` finds out what a file is. ``columnar.py``, ``text.py`` and ``arrays.py`` read ranges
of its rows. ``chunks.py`` has what they share: a file, the layout of the table, and the chunk.
"""
