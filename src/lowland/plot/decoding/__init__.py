"""Pictures of what a method with an inverse makes of places in its map."""
