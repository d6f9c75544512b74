"""Replays of a program with CUDA kernels and graphs."""
