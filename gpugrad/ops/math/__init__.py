"""Elementwise ops, reductions, products and statistics."""
