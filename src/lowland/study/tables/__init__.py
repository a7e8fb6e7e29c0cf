"""From a table to the numbers that a method gets: options, roles, preparation, cautions."""
