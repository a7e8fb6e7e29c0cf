"""Keep original columns instead of making new ones."""
