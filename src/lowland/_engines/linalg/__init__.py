"""Products, moments, factors and eigenproblems."""
