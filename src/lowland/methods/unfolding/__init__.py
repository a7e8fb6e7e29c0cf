"""Methods that flatten a curved surface and keep the lengths on it."""
