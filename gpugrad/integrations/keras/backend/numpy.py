"""Runs after Keras' backend/numpy/numpy.py, in its namespace."""

# ruff: noqa: D103
from __future__ import annotations

import functools

from keras.src.backend.common.backend_utils import vectorize_impl
from keras.src.backend.gpugrad.core import convert_to_tensor

import gpugrad as gg


def _of_lists(f):
    """A function of Keras that asks its argument for its dtype: of lists, too."""
    return functools.wraps(f)(lambda x, *rest, **more: f(convert_to_tensor(x), *rest, **more))


corrcoef, median, unique = map(_of_lists, (corrcoef, median, unique))  # noqa: F821  # Keras' own
cumprod, cumsum, nancumprod, nancumsum = map(
    _of_lists,
    (cumprod, cumsum, nancumprod, nancumsum),  # noqa: F821
)
sum, nansum, nanmean, nanmedian = map(_of_lists, (sum, nansum, nanmean, nanmedian))  # noqa: F821
nanargmax, nanargmin = map(_of_lists, (nanargmax, nanargmin))  # noqa: F821
rot90, unravel_index = map(_of_lists, (rot90, unravel_index))  # noqa: F821


def vectorize(pyfunc, *, excluded=None, signature=None):
    return vectorize_impl(pyfunc, gg.vmap, excluded=excluded, signature=signature)
