"""NumPy's functions that create grids, triangles of ones, logarithmic steps and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpugrad.core import backend
from gpugrad.core.arguments import CALLABLE
from gpugrad.core.backend import TENSOR
from gpugrad.core.holders import opened
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, ShapeError, saying_where
from gpugrad.ops.arrays.creation import asarray, linspace, zeros_like


def from_numpy(values: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A Tensor of values that NumPy has computed on the host."""
    values = np.asarray(values)
    values = values if dtype is None else values.astype(backend.as_dtype(dtype))
    return asarray(values, device=device)


@saying_where
def tri(N, M=None, k=0, dtype=None, *, device=None) -> Tensor:
    """Make a matrix with ones on and below a diagonal, and zeros above.

    Args:
        N, M: numbers of rows and of columns; M is N if None.
        k: the diagonal; 0 is the main one, positive ones lie above it.
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (N, M).

    >>> print(gg.tri(2, 3))
    [[1. 0. 0.]
     [1. 1. 0.]]
    """
    return from_numpy(np.tri(N, M, k), dtype or np.float32, device)


@saying_where
def ix_(*args) -> tuple[Tensor, ...]:
    """Index vectors, reshaped so that together they select a grid: ``x[ix_(rows, columns)]``.

    Args:
        *args: one-dimensional arrays of integers, or boolean masks.

    Returns:
        Tuple of Tensors: the k-th varies along axis k.

    Raises:
        ShapeError: an array is not one-dimensional.

    >>> x = gg.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> print(x[gg.ix_([0, 1], [2, 0])])
    [[3. 1.]
     [6. 4.]]
    """
    vectors = []
    for k, part in enumerate(args):
        x = tensor(part) if np.ndim(part) != 1 or len(part) else from_numpy(np.zeros(0, np.int64))
        if x.ndim != 1:
            raise ShapeError(f"ix_: arrays must be one-dimensional, but a shape is {x.shape}.")
        if x.dtype.kind == "b":
            x = TENSOR.flatnonzero(x)
        vectors.append(TENSOR.reshape(x, (1,) * k + (x.size,) + (1,) * (len(args) - k - 1)))
    return tuple(vectors)


@saying_where
def indices(dimensions, dtype=None, sparse=False, *, device=None):
    """The indices of every element of a shape.

    Args:
        dimensions: tuple of ints: the shape.
        dtype: int64 if None.
        sparse: whether axes along which an index does not vary have length 1.
        device: the default device if None.

    Returns:
        Tensor of shape (len(dimensions), *dimensions); if `sparse` a tuple of Tensors.

    >>> print(gg.indices((2, 2))[1])
    [[0 1]
     [0 1]]
    """
    grids, dtype = np.indices(tuple(dimensions), sparse=sparse), dtype or np.int64
    if sparse:
        return tuple(from_numpy(i, dtype, device) for i in grids)
    return from_numpy(grids, dtype, device)


@saying_where
def fromfunction(function, shape, *, dtype=None, device=None, **keywords):
    """Call a function once, with the indices of every element of a shape.

    Args:
        function: takes one Tensor of indices for each axis of the shape.
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
    CALLABLE("fromfunction", "function", function)
    grids = [from_numpy(i, dtype or np.float32, device) for i in np.indices(tuple(shape))]
    return function(*grids, **keywords)


@saying_where
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, *, device=None) -> Tensor:
    """Make numbers with evenly spaced logarithms, from base**start to base**stop.

    Args:
        start, stop: exponents of the first and last number; Tensors receive gradients.
        num: how many.
        endpoint: whether the last number is included.
        base: base of the powers; a Tensor receives a gradient.
        dtype: if None, the Tensors' dtype, or float32.
        device: if None, the Tensors' device, or the default device.

    Returns:
        Tensor of shape (num,), or (num, ...) for arrays of any shape.

    Raises:
        ArgumentError: `num` is negative.

    >>> print(gg.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    if num < 0:
        raise ArgumentError(f"logspace: num must not be negative, got {num}.")
    start, stop, base = map(opened, (start, stop, base))
    if any(isinstance(x, Tensor) for x in (start, stop, base)):
        zero = zeros_like(TENSOR.add(start, TENSOR.add(stop, base)))
        exponents = linspace(
            TENSOR.add(start, zero), TENSOR.add(stop, zero), num, endpoint=endpoint
        )
        return asarray(TENSOR.power(base, exponents), dtype=dtype, device=device)
    return from_numpy(np.logspace(start, stop, num, endpoint, base), dtype or np.float32, device)


@saying_where
def geomspace(start, stop, num=50, endpoint=True, dtype=None, *, device=None) -> Tensor:
    """Make a geometric sequence: each number is the one before times the same factor.

    Args:
        start, stop: the first and last number; not 0. Tensors receive gradients.
        num: how many.
        endpoint: whether `stop` is included.
        dtype: if None, the Tensors' dtype, or float32 (complex64 if an end is complex).
        device: if None, the Tensors' device, or the default device.

    Returns:
        Tensor of shape (num,), or (num, ...) for arrays of any shape.

    Raises:
        ArgumentError: `num` is negative, or an end is the number 0. If it is a Tensor, the result
            is NaN or 0.

    >>> print(gg.geomspace(1.0, 8.0, 4))
    [1. 2. 4. 8.]
    """
    start, stop = opened(start), opened(stop)
    ends = [x for x in (start, stop) if not isinstance(x, Tensor)]
    if num < 0 or any(np.any(np.equal(x, 0)) for x in ends):
        raise ArgumentError(f"geomspace: invalid sequence: start={start}, stop={stop}, num={num}.")
    if len(ends) < 2:
        ratio = TENSOR.divide(stop, start)
        steps = linspace(zeros_like(ratio), 1, num, endpoint=endpoint)
        return asarray(start * TENSOR.power(ratio, steps), dtype=dtype, device=device)
    values = np.geomspace(start, stop, num, endpoint)
    single = np.complex64 if values.dtype.kind == "c" else np.float32
    return from_numpy(values, dtype or single, device)


def _window(name, summary, example, value, beta=""):
    """NumPy's function `name` of a number of points M, and of `beta` if that is documented."""
    function = getattr(np, name)

    def window_of_beta(M, beta, *, dtype=None, device=None) -> Tensor:
        return from_numpy(function(M, beta), dtype or np.float32, device)

    def window_of_size(M, *, dtype=None, device=None) -> Tensor:
        return from_numpy(function(M), dtype or np.float32, device)

    window = window_of_beta if beta else window_of_size
    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""Make {summary}.

    Args:
        M: number of points.{beta}
        dtype: float32 if None.
        device: the default device if None.

    Returns:
        Tensor of shape (M,).

    >>> print({example})
    {value}
    """
    return saying_where(window)


bartlett = _window(
    "bartlett", "a triangular window, 0 at both ends", "gg.bartlett(5)", "[0.  0.5 1.  0.5 0. ]"
)
hanning = _window(
    "hanning",
    "Hann's window: one period of (1 - cos) / 2, 0 at both ends",
    "gg.hanning(5)",
    "[0.  0.5 1.  0.5 0. ]",
)
hamming = _window(
    "hamming",
    "Hamming's window: 0.54 - 0.46 cos, 0.08 at both ends",
    "gg.hamming(5)",
    "[0.08 0.54 1.   0.54 0.08]",
)
blackman = _window(
    "blackman",
    "Blackman's window: 0.42 - 0.5 cos x + 0.08 cos 2x",
    "gg.blackman(3, dtype=gg.float64)[1]",
    "1.0",
)
kaiser = _window(
    "kaiser",
    "Kaiser's window, from the Bessel function i0: the larger `beta`, the narrower",
    "gg.kaiser(3, 0.0)",
    "[1. 1. 1.]",
    beta="""
        beta: a number: 0 gives a rectangle, 5 is close to Hamming's window, 8.6 to Blackman's.""",
)
