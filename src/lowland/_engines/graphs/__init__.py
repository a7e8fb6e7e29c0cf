"""Symmetric graphs, components, geodesics, Laplacians and their spectra."""
