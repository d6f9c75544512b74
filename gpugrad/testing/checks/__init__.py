"""The checks of an op, one function each, from the samples in its record."""
