"""Linear methods: each map is a product of the centered rows with one matrix."""
