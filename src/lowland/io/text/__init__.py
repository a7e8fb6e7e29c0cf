"""Delimited text: separator, header, encoding, and numbers as people write them."""
