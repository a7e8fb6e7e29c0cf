"""Tables that need not fit in memory: rows in fixed chunks, and engines that go through them.

``table.py`` has the class :class:`Rows`. Everything that the bytes of a result depend on is here:
how rows are cut into chunks and tasks (``chunks.py``), in which order sums are merged and which
rows a sample has (``folding.py``). None of it depends on the number of workers or on memory.
"""
