"""Methods that lay a grid or a curve through the data."""
