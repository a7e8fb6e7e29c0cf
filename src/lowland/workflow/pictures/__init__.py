"""The pictures that a run writes: of the map, of the method, of a network."""
