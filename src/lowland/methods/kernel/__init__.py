"""Kernel methods: linear methods applied to the images of rows in a feature space."""
