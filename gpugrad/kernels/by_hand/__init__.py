"""Kernels written by hand: each `.cu` file stands beside the launcher that calls it."""
