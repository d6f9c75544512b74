"""Generates CUDA kernels from the formulas of ops."""
