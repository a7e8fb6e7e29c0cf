"""Neighbor embeddings: maps in which the neighbors of the data stay neighbors."""
