"""Pictures of grids and curves: on their own plane, and through the data."""
