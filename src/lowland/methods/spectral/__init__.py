"""Methods whose map is a few eigenvectors of a matrix made from neighbors."""
