"""Stand-ins for NVIDIA's libraries, and a CuPy that counts, for machines without a GPU."""
