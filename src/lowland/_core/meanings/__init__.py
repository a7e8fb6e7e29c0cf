"""What the contents of fitted attributes must satisfy: each alone, and beside others."""
