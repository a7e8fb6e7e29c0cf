"""Model files: a zip of JSON and plain arrays, read without executing or trusting anything."""
