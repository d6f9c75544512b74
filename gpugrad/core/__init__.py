"""Tensors, arrays, devices, dtypes, settings and Variables. No mathematics."""
