"""Solvers, decompositions and functions of matrices."""
