"""Formats of files, each with its reader, and the one that maps are written into."""
