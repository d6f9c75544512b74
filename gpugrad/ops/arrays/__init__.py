"""Ops that create, shape, index, join and sort arrays."""
