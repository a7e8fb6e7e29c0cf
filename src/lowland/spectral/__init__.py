"""Spectral methods: the map is made of eigenvectors of a matrix that neighbors define."""
