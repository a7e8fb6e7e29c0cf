"""Searches for nearest neighbors, and the NeighborGraph they return."""
