"""Maps that another tool has made: read, scored, judged."""
