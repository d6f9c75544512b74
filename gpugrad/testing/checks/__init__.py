"""The checks of an op, one function each, on the samples in its record."""
