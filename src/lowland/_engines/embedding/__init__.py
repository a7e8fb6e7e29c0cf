"""Affinities, forces and descent of neighbor embeddings."""
