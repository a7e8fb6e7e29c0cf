"""Regular grids that are laid through the data: their geometry, their start, nearest units."""
