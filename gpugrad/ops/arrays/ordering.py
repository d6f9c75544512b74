"""NumPy's other ways to order: parts of an order, several keys, complex numbers."""

from __future__ import annotations

import numpy as np

from gpugrad.core.samples import along_axis, calls, shaped, uniform
from gpugrad.errors import ArgumentError, AxisError, ShapeError
from gpugrad.registry.record import op


def _check_kth(name, n, kth):
    for k in kth if isinstance(kth, (list, tuple)) else [kth]:
        if not -n <= k < n:
            raise ArgumentError(f"{name}: kth={k} is out of bounds for an axis of length {n}.")


def _first_axis(xp, name, x, axis):
    """`x`, flat if `axis` is None, and the axis; AxisError if there is none of that number."""
    if axis is None:
        return xp.reshape(x, (x.size,)), 0
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{name}: axis {axis} is out of bounds for the shape {x.shape}.")
    return x, axis


_KTH = [
    ([np.ones(3)], {"kth": 3}, ArgumentError, "kth=3"),
    ([np.ones(3)], {"kth": 0, "axis": 1}, AxisError, "partition: axis 1"),
]


def _partition_samples(rng):
    for k, (args, keywords) in enumerate(along_axis({"axis": None})(rng)):
        yield args, {"kth": (0, 1, -1, [0, 1])[k], **keywords}


@op(
    kinds="fi", samples=_partition_samples, errors=_KTH,
    ref=lambda x, kth, axis=-1: np.sort(x, axis=axis),
)  # fmt: skip
def partition(xp, x, /, kth, axis=-1):
    """Put the k-th smallest element in its place: smaller ones before it, larger ones behind.

    The whole axis is sorted, which is one way to do it: so the CPU and the GPU agree.

    Args:
        x: array, of any shape but ().
        kth: an int, or a list of them.
        axis: along which; None takes the elements in row-major order.

    Returns:
        Tensor of the shape of `x`; of one axis if `axis` is None.

    Raises:
        ArgumentError: `kth` is beyond the end.
        AxisError: an axis that `x` does not have.

    >>> print(gg.partition([3.0, 1.0, 2.0], 1)[1])
    2.0
    """
    x, axis = _first_axis(xp, "partition", x, axis)
    _check_kth("partition", x.shape[axis], kth)
    return xp.sort(x, axis=axis)


@op(
    kinds="fi", samples=_partition_samples, errors=_KTH,
    ref=lambda x, kth, axis=-1: np.argsort(x, axis=axis, stable=True),
)  # fmt: skip
def argpartition(xp, x, /, kth, axis=-1):
    """Indices that put the k-th smallest element in its place, as `partition` does.

    Args:
        x: array, of any shape but ().
        kth: an int, or a list of them.
        axis: along which; None takes the elements in row-major order.

    Returns:
        int64 Tensor of the shape of `x`. It has no gradient.

    Raises:
        ArgumentError: `kth` is beyond the end.
        AxisError: an axis that `x` does not have.

    >>> print(gg.argpartition([3.0, 1.0, 2.0], 0)[0])
    1
    """
    x, axis = _first_axis(xp, "argpartition", x, axis)
    _check_kth("argpartition", x.shape[axis], kth)
    return xp.argsort(x, axis=axis)


@op(
    variadic=True, kinds="fi", ref=lambda keys, axis=-1: np.lexsort(keys, axis),
    samples=calls(
        lambda rng: ([[np.array([1.0, 0.0, 1.0]), np.array([2.0, 2.0, 1.0])]], {}),
        lambda rng: ([[uniform(rng, 2, 3), np.ones((2, 3))]], {"axis": 0}),
        lambda rng: ([[uniform(rng, 4)]], {}),
    ),
    errors=[
        ([[np.ones(2), np.ones(3)]], {}, ShapeError, r"lexsort.*\(2,\).*\(3,\)"),
        ([[np.ones(2)]], {"axis": 1}, AxisError, "axis 1"),
    ],
)  # fmt: skip
def lexsort(xp, keys, /, axis=-1):
    """Indices that sort by several keys: by the last, among equals by the one before, and so on.

    Args:
        keys: list of arrays of one shape.
        axis: along which.

    Returns:
        int64 Tensor of that shape. It has no gradient.

    Raises:
        ShapeError: the shapes differ.
        AxisError: an axis that the keys do not have.

    >>> print(gg.lexsort([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]))
    [2 1 0]
    """
    if len({tuple(key.shape) for key in keys}) > 1:
        shapes = ", ".join(str(key.shape) for key in keys)
        raise ShapeError(f"lexsort: the keys are of one shape, not of {shapes}.")
    order = xp.argsort(keys[0], axis=axis)
    for key in keys[1:]:
        ranks = xp.argsort(xp.take_along_axis(key, order, axis=axis), axis=axis)
        order = xp.take_along_axis(order, ranks, axis=axis)
    return order


@op(
    kinds="c",
    samples=shaped(([(4,)], {}), ([(2, 3)], {}), ([(0,)], {})),
    errors=[([np.array(1j)], {}, AxisError, "axis -1")],
)  # fmt: skip
def sort_complex(xp, x, /):
    """Sort along the last axis by the real part, among equals by the imaginary part.

    Args:
        x: array, of any shape but ().

    Returns:
        Tensor of the shape of `x`, complex.

    Raises:
        AxisError: `x` is 0-d.

    >>> print(gg.sort_complex([2 + 1j, 1 + 0j, 2 + 0j]))
    [1.+0.j 2.+0.j 2.+1.j]
    """
    if x.dtype.kind != "c":
        return xp.astype(xp.sort(x), np.result_type(x.dtype, np.complex64))
    order = xp.lexsort([xp.imag(x), xp.real(x)])
    return xp.take_along_axis(x, order, axis=-1)
