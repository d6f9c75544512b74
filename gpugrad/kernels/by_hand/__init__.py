"""Hand-written kernels: each `.cu` file with the Python module that launches it."""
