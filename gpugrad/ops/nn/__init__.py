"""Layers, losses, normalization, pooling and attention as functions."""
