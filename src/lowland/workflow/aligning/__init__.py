"""Several tables in one map."""
