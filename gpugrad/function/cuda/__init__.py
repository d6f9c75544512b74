"""A program on a GPU: the CUDA source of its kernels, and what launches it."""
