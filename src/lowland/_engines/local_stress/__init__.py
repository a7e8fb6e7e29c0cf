"""Stress whose weights depend on distances in the map: laws, annealing, sampled pairs, new rows."""
