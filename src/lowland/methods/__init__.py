"""The methods: one file each, in families. ``lowland.PCA`` is the class of ``linear/pca.py``."""
