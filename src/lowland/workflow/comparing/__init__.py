"""Several maps of the same rows, side by side."""
