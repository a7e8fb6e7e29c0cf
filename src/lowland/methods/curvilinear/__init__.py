"""Methods that give up long distances to keep short ones."""
