"""Methods that put two or more tables into one map."""
