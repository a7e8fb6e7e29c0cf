"""Methods whose map is computed by a network of dense layers."""
