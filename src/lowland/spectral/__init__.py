"""Methods that solve for eigenvectors of a matrix of neighbors."""
