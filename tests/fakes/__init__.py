"""Stand-ins for CuPy and NVIDIA's libraries, for machines without a GPU."""
