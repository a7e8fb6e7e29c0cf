"""Local problems of LLE, LTSA and relatives."""
