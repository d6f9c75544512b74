"""Exception classes: each derives also from the built-in class that a NumPy user would catch."""

from __future__ import annotations

import functools

import numpy as np


class GpugradError(Exception):
    """The base class of gpugrad's errors.

    >>> issubclass(gg.errors.ShapeError, gg.errors.GpugradError)
    True
    """


class GpugradWarning(UserWarning, RuntimeWarning):
    """The class of gpugrad's warnings.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", gg.errors.GpugradWarning)
    """


class ArgumentError(GpugradError, ValueError):
    """A value that the function does not accept.

    >>> try:
    ...     gg.optim.Adam(0.1, beta_1=2.0)
    ... except gg.errors.ArgumentError as error:
    ...     print(str(error).partition(". ")[0])
    Adam: beta_1 must be at least 0 and below 1, got 2.0.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """A value of a Python type that the argument does not accept, as a string for an axis.

    >>> try:
    ...     gg.sum(gg.ones(2), axis="x")
    ... except gg.errors.ArgumentTypeError as error:
    ...     print(str(error).partition(". ")[0])
    sum: 'str' object cannot be interpreted as an integer
    """


class ShapeError(ArgumentError):
    """Shapes that do not match each other, or that the op does not accept.

    >>> try:
    ...     gg.ones(2) + gg.ones(3)
    ... except gg.errors.ShapeError as error:
    ...     print(str(error).partition(". ")[0])
    add: the shapes (2,) and (3,) do not broadcast
    """


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis that the array does not have.

    >>> try:
    ...     gg.sum(gg.ones(2), axis=1)
    ... except gg.errors.AxisError as error:
    ...     print(str(error).partition(". ")[0])
    sum: axis 1 is out of bounds for array of dimension 1
    """


class MatrixShapeError(ShapeError, np.linalg.LinAlgError):
    """An array that is not a matrix, or a matrix that is not square.

    >>> try:
    ...     gg.linalg.det(gg.ones((2, 3)))
    ... except gg.errors.MatrixShapeError as error:
    ...     print(str(error).partition(". ")[0])
    det: Last 2 dimensions of the array must be square
    """


class StructureError(ArgumentError, TypeError):
    """Nested lists, tuples or dicts whose structures do not match.

    >>> try:
    ...     gg.vmap(lambda x: x, in_axes=(0, 0))(gg.ones(2))
    ... except gg.errors.StructureError as error:
    ...     print(str(error).partition(". ")[0])
    vmap of <lambda>: in_axes has 2 entries for 1 arguments.
    """


class IndexOutOfBoundsError(GpugradError, IndexError):
    """An index beyond the end of its axis.

    >>> try:
    ...     gg.ones(2)[5]
    ... except gg.errors.IndexOutOfBoundsError as error:
    ...     print(str(error).partition(". ")[0])
    getitem: index 5 is out of bounds for axis 0 with size 2
    """


class SingularMatrixError(ArgumentError, np.linalg.LinAlgError):
    """A matrix that has no inverse, or is not positive definite, where one is needed.

    >>> try:
    ...     gg.linalg.inv(gg.zeros((2, 2)))
    ... except gg.errors.SingularMatrixError as error:
    ...     print(str(error).partition(". ")[0])
    inv: Singular matrix
    """


class DTypeError(GpugradError, TypeError):
    """A dtype, or a Python type, that the op does not accept.

    >>> try:
    ...     gg.exp("a")
    ... except gg.errors.DTypeError as error:
    ...     print(str(error).partition(". ")[0])
    exp: 'a' is not a number, an array, or nested lists of them.
    """


class NumberOverflowError(GpugradError, OverflowError):
    """A Python number that the dtype does not hold.

    >>> try:
    ...     gg.asarray(300, dtype="uint8")
    ... except gg.errors.NumberOverflowError as error:
    ...     print(str(error).partition(". ")[0])
    constant: 300 does not fit uint8 unchanged.
    """


class DeviceError(GpugradError, RuntimeError):
    """A device that does not answer, or arrays on two devices in one op.

    >>> issubclass(gg.errors.DeviceError, RuntimeError)
    True
    """


class DistributedError(GpugradError, RuntimeError):
    """Processes that cannot train together: not started, of different models, or one has failed.

    >>> issubclass(gg.errors.DistributedError, RuntimeError)
    True
    """


class TapeError(GpugradError, RuntimeError, ValueError):
    """A tape in a state that does not allow the call.

    >>> x = gg.Variable(1.0)
    >>> with gg.GradientTape() as tape:
    ...     y = x * x
    >>> print(tape.gradient(y, x))
    2.0
    >>> try:
    ...     tape.gradient(y, x)  # again, of a tape that is not persistent
    ... except gg.errors.TapeError as error:
    ...     print(str(error).partition(". ")[0])
    gradient: this tape has recorded nothing, or has returned its gradient
    """


class TraceError(GpugradError, RuntimeError):
    """A traced function needed a value while it was traced, or kept a traced array.

    >>> try:
    ...     gg.function(lambda x: x if x > 0 else -x)(gg.constant(1.0))
    ... except gg.errors.TraceError as error:
    ...     print("a value was asked for" in str(error))
    True
    """


class NoGradientError(GpugradError, LookupError):
    """A backward pass reached an op that has no derivative rule.

    >>> issubclass(gg.errors.NoGradientError, LookupError)
    True
    """


class NumericsError(GpugradError, FloatingPointError):
    """A NaN, an infinity or an overflow where `gg.debug` or `numpy.errstate` asks for an error.

    >>> try:
    ...     with gg.debug.nans():
    ...         gg.log(-1.0)
    ... except gg.errors.NumericsError as error:
    ...     print(str(error).partition(",")[0])
    log: a NaN or an infinity arises here
    """


class KernelError(GpugradError, RuntimeError):
    """A CUDA kernel that does not compile or cannot be launched.

    >>> issubclass(gg.errors.KernelError, RuntimeError)
    True
    """


class OutOfMemoryError(GpugradError, MemoryError):
    """The device has too little memory for a result.

    >>> try:
    ...     gg.empty((2**50,))
    ... except gg.errors.OutOfMemoryError as error:
    ...     print(str(error).partition(" for")[0])
    empty: Unable to allocate 4.00 PiB
    """


class DataError(GpugradError, RuntimeError):
    """An example that a dataset or a map could not make.

    >>> issubclass(gg.errors.DataError, RuntimeError)
    True
    """


class CheckpointError(GpugradError, ValueError):
    """A checkpoint that is missing, corrupt, or of another model.

    >>> try:
    ...     gg.checkpoint.load("missing.safetensors")
    ... except gg.errors.CheckpointError as error:
    ...     print(str(error).partition(". ")[0])
    load: There is no checkpoint missing.safetensors.
    """


@functools.cache
def warning_like(theirs: type[Warning]) -> type[Warning]:
    """A class of `GpugradWarning` that filters for another library's class find, too."""
    return type(theirs.__name__, (GpugradWarning, theirs), {"__doc__": theirs.__doc__})
