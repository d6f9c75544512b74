"""Kernels in C++ for NumPy arrays: a compiler, a pool of threads, launchers that may decline."""
