"""Arrays in, arrays out: the decisions that two methods would otherwise make twice."""
