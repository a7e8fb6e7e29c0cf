"""A fuzzer: random calls, files and command lines, and the rules that hold for all of them.

``make fuzz MINUTES=10`` runs it. A case is an area and a number, such as ``api:12345``; the same
case always does the same, so that ``python tests/fuzz --case api:12345`` repeats it alone.
"""
