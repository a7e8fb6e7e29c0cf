"""Bases of estimators that methods of several families share."""
