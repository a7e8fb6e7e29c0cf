"""Kernel methods: linear methods on the images of rows in a feature space."""
