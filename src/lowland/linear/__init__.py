"""Linear methods: the map is one matrix."""
