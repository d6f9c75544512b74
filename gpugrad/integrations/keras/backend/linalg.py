"""Runs after Keras' backend/numpy/linalg.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

from keras.src import tree
from keras.src.backend.gpugrad.core import convert_to_tensor

import gpugrad as gg


def lu_factor(a):
    return gg.linalg.lu_factor(convert_to_tensor(a))


def solve_triangular(a, b, lower=False):
    a, b = convert_to_tensor(a), convert_to_tensor(b)
    if b.ndim == a.ndim - 1:
        return gg.solve_triangular(a, b[..., None], lower=lower)[..., 0]
    return gg.solve_triangular(a, b, lower=lower)


def jvp(fun, primals, tangents, has_aux=False):
    aux = []

    def result(*xs):
        if not has_aux:
            return fun(*xs)
        y, rest = fun(*xs)
        aux.append(tree.map_structure(gg.stop_gradient, rest))
        return y

    primals, tangents = (tree.map_structure(convert_to_tensor, x) for x in (primals, tangents))
    return (*gg.jvp(result, list(primals), list(tangents)), *aux[-1:])
