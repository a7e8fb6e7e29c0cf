"""Stress objectives, majorization, classical scaling."""
