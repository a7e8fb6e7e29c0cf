"""The preparation of columns, the first step of a model that is made from a table."""
