"""NumPy's functions that return a Python value: whether arrays are equal, their shape, dtype."""

import numpy as np

from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.tensor import operand, tensor
from gpugrad.errors import ShapeError, saying_where


@saying_where
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False) -> bool:
    """Whether all elements are close: ``abs(a - b) <= atol + rtol * abs(b)``.

    Args:
        a, b: arrays, broadcast against each other; or a number.
        rtol, atol: tolerances, relative to `b` and absolute.
        equal_nan: whether NaN is close to NaN.

    Returns:
        bool. On a GPU it waits for the values.

    Raises:
        ShapeError: the shapes do not broadcast against each other.

    >>> gg.allclose([1.0, 2.0], [1.0, 2.000001])
    True
    """
    return bool(TENSOR.all(TENSOR.isclose(a, b, rtol, atol, equal_nan)))


@saying_where
def array_equal(a1, a2, equal_nan=False) -> bool:
    """Whether two arrays have the same shape and the same elements.

    Args:
        a1, a2: arrays, or numbers.
        equal_nan: whether NaN equals NaN.

    Returns:
        bool. On a GPU it waits for the values.

    >>> gg.array_equal([1.0, 2.0], [1.0, 2.0])
    True
    """
    a1, a2 = operand(a1, a2), operand(a2, a1)
    return a1.shape == a2.shape and bool(TENSOR.all(_same(a1, a2, equal_nan)))


def _same(a1, a2, equal_nan):
    equal = TENSOR.equal(a1, a2)
    if not equal_nan:
        return equal
    nan = TENSOR.logical_and(TENSOR.not_equal(a1, a1), TENSOR.not_equal(a2, a2))
    return TENSOR.logical_or(equal, nan)


@saying_where
def array_equiv(a1, a2) -> bool:
    """Whether two arrays, broadcast against each other, have the same elements.

    Args:
        a1, a2: arrays, or numbers.

    Returns:
        bool: False also if the shapes do not broadcast. On a GPU it waits for the values.

    >>> gg.array_equiv([1.0, 1.0], 1.0)
    True
    """
    try:
        return bool(TENSOR.all(TENSOR.equal(operand(a1, a2), operand(a2, a1))))
    except ShapeError:
        return False


@saying_where
def ndim(a) -> int:
    """Number of axes of an array or a number, an int.

    >>> gg.ndim([[1.0, 2.0]])
    2
    """
    return tensor(a).ndim


@saying_where
def shape(a) -> tuple[int, ...]:
    """Lengths of the axes of an array or a number, a tuple of ints.

    >>> gg.shape([[1.0, 2.0]])
    (1, 2)
    """
    return tuple(tensor(a).shape)


@saying_where
def size(a, axis=None) -> int:
    """Number of elements of an array or a number: in all, or along one axis. An int.

    >>> gg.size([[1.0, 2.0]])
    2
    """
    x = tensor(a)
    return x.size if axis is None else x.shape[axis]


def isscalar(element) -> bool:
    """Whether any object is a Python or NumPy number, not a 0-d array.

    >>> gg.isscalar(2.0), gg.isscalar(gg.constant(2.0))
    (True, False)
    """
    return type(element) in SCALARS or isinstance(element, np.generic)


@saying_where
def iscomplexobj(x) -> bool:
    """Whether the dtype of an array or a number is complex, whatever its values are.

    >>> gg.iscomplexobj([1 + 0j])
    True
    """
    return tensor(x).dtype.kind == "c"


@saying_where
def isrealobj(x) -> bool:
    """Whether the dtype of an array or a number is not complex.

    >>> gg.isrealobj([1.0])
    True
    """
    return not iscomplexobj(x)
