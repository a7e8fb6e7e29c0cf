"""How work gets to the workers of a cluster: connection, shipping, what runs there, failures."""
