"""Replays a program with CUDA kernels and graphs."""
