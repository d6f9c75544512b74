"""Replays a program with NumPy."""
