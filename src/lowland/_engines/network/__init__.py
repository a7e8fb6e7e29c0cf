"""Networks of dense layers: their passes, and two ways to train them."""
