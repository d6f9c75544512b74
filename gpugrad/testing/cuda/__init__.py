"""Runs and compiles CUDA kernels without a GPU."""
