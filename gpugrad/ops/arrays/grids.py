"""NumPy's functions that make grids, triangles of ones, logarithmic steps and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core import backend
from gpugrad.core.backend import TENSOR
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops.arrays.creation import asarray


def made_on(values: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of what NumPy has made on the host."""
    made = np.asarray(values)
    return asarray(made if dtype is None else made.astype(backend.as_dtype(dtype)), device=device)


@saying_where
def tri(N, M=None, k=0, dtype=None, *, device=None):
    """Make a matrix with ones on and below a diagonal, and zeros above.

    Args:
        N, M: numbers of rows and of columns; M is N if None.
        k: the diagonal; 0 is the main one, those above it are positive.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (N, M).

    >>> print(gg.tri(2, 3))
    [[1. 0. 0.]
     [1. 1. 0.]]
    """
    return made_on(np.tri(N, M, k), np.float32 if dtype is None else dtype, device)


@saying_where
def ix_(*args):
    """Vectors of indices in shapes in which they pick a grid: ``x[ix_(rows, columns)]``.

    Args:
        *args: arrays of one axis, of integers; or boolean ones, whose true places are meant.

    Returns:
        Tuple of Tensors: the k-th varies along axis k.

    Raises:
        ShapeError: an array has not one axis.

    >>> x = gg.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> print(x[gg.ix_([0, 1], [2, 0])])
    [[3. 1.]
     [6. 4.]]
    """
    made = []
    for k, part in enumerate(args):
        x = tensor(part) if np.ndim(part) != 1 or len(part) else made_on(np.zeros(0, np.int64))
        if x.ndim != 1:
            raise ShapeError(f"ix_: arrays of one axis are needed, a shape is {x.shape}.")
        if x.dtype.kind == "b":
            x = TENSOR.flatnonzero(x)
        made.append(TENSOR.reshape(x, (1,) * k + (x.size,) + (1,) * (len(args) - k - 1)))
    return tuple(made)


@saying_where
def indices(dimensions, dtype=None, sparse=False, *, device=None):
    """The indices of every place of a shape.

    Args:
        dimensions: tuple of ints: the shape.
        dtype: int64 if None.
        sparse: whether to leave the axes along which an index does not vary at length 1.
        device: the default device if None.

    Returns:
        Tensor of shape (len(dimensions), *dimensions); if `sparse` a tuple of Tensors.

    >>> print(gg.indices((2, 2))[1])
    [[0 1]
     [0 1]]
    """
    made = np.indices(tuple(dimensions), sparse=sparse)
    dtype = np.int64 if dtype is None else dtype
    return (
        tuple(made_on(i, dtype, device) for i in made) if sparse else made_on(made, dtype, device)
    )


def fromfunction(function, shape, *, dtype=None, device=None, **keywords):
    """Call a function with the indices of every place of a shape, all at once.

    Args:
        function: takes as many Tensors of indices as the shape has axes.
        shape: tuple of ints.
        dtype: of the indices; float32 if None.
        device: the default device if None.
        **keywords: further arguments of the function.

    Returns:
        What the function returns.

    >>> print(gg.fromfunction(lambda i, j: 10 * i + j, (2, 2)))
    [[ 0.  1.]
     [10. 11.]]
    """
    made = np.indices(tuple(shape))
    dtype = np.float32 if dtype is None else dtype
    return function(*(made_on(i, dtype, device) for i in made), **keywords)


# ---- logarithmic steps -------------------------------------------------------------------


@saying_where
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, *, device=None):
    """Make numbers whose logarithms are evenly spaced: from base**start to base**stop.

    Args:
        start, stop: exponents of the ends; that of `stop` is left out if not `endpoint`.
        num: how many.
        endpoint: whether `stop` is the last.
        base: of the powers.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (num,).

    Raises:
        ArgumentError: a negative `num`.

    >>> print(gg.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    if num < 0:
        raise ArgumentError(f"logspace: num must not be negative, got {num}.")
    made = np.logspace(start, stop, num, endpoint, base)
    return made_on(made, np.float32 if dtype is None else dtype, device)


@saying_where
def geomspace(start, stop, num=50, endpoint=True, dtype=None, *, device=None):
    """Make numbers of which each is the one before times the same factor.

    Args:
        start, stop: the ends; `stop` is left out if not `endpoint`. Neither is 0.
        num: how many.
        endpoint: whether `stop` is the last.
        dtype: float32 if None, complex64 for complex ends.
        device: the default device if None.

    Returns:
        Tensor of shape (num,).

    Raises:
        ArgumentError: a negative `num`, or an end that is 0.

    >>> print(gg.geomspace(1.0, 8.0, 4))
    [1. 2. 4. 8.]
    """
    if num < 0 or start == 0 or stop == 0:
        raise ArgumentError(f"geomspace: no such sequence: start={start}, stop={stop}, num={num}.")
    made = np.geomspace(start, stop, num, endpoint)
    single = np.complex64 if made.dtype.kind == "c" else np.float32
    return made_on(made, single if dtype is None else dtype, device)


# ---- windows -----------------------------------------------------------------------------


def _window(function, M, dtype, device, *args):
    return made_on(function(M, *args), np.float32 if dtype is None else dtype, device)


@saying_where
def bartlett(M, *, dtype=None, device=None):
    """Make a triangular window, which is 0 at both ends.

    Args:
        M: how many points.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print(gg.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window(np.bartlett, M, dtype, device)


@saying_where
def hanning(M, *, dtype=None, device=None):
    """Make Hann's window: one period of (1 - cos) / 2, which is 0 at both ends.

    Args:
        M: how many points.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print(gg.hanning(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window(np.hanning, M, dtype, device)


@saying_where
def hamming(M, *, dtype=None, device=None):
    """Make Hamming's window: 0.54 - 0.46 cos, which is 0.08 at both ends.

    Args:
        M: how many points.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print(gg.hamming(5))
    [0.08 0.54 1.   0.54 0.08]
    """
    return _window(np.hamming, M, dtype, device)


@saying_where
def blackman(M, *, dtype=None, device=None):
    """Make Blackman's window: 0.42 - 0.5 cos x + 0.08 cos 2x.

    Args:
        M: how many points.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print(gg.blackman(3, dtype=gg.float64)[1])
    1.0
    """
    return _window(np.blackman, M, dtype, device)


@saying_where
def kaiser(M, beta, *, dtype=None, device=None):
    """Make Kaiser's window, of the Bessel function i0: the larger `beta`, the narrower.

    Args:
        M: how many points.
        beta: a number; 0 is a rectangle, 5 near Hamming's, 8.6 near Blackman's.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print(gg.kaiser(3, 0.0))
    [1. 1. 1.]
    """
    return _window(np.kaiser, M, dtype, device, beta)
