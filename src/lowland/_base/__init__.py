"""The contract that every method keeps; see base.py."""
