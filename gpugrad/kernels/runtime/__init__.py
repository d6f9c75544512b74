"""Compiles and launches kernels, and builds CUDA graphs."""
