"""Kernel functions, and kernel matrices as operators."""
