"""Exception classes, and messages that name the op, its arguments and the way out.

Every class also derives from the built-in class that a NumPy user would catch, so that
``except ValueError`` around a bad reshape still works.
"""

from __future__ import annotations

from gpugrad.errors.classes import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    CheckpointError,
    DataError,
    DeviceError,
    DistributedError,
    DTypeError,
    GpugradError,
    GpugradWarning,
    IndexOutOfBoundsError,
    KernelError,
    MatrixShapeError,
    NoGradientError,
    NumberOverflowError,
    NumericsError,
    OutOfMemoryError,
    ShapeError,
    SingularMatrixError,
    StructureError,
    TapeError,
    TraceError,
)
from gpugrad.errors.meaning import describe, reraise
from gpugrad.errors.where import EXAMPLES, LIBRARIES, saying_where

__all__ = [
    "EXAMPLES",
    "LIBRARIES",
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "CheckpointError",
    "DTypeError",
    "DataError",
    "DeviceError",
    "DistributedError",
    "GpugradError",
    "GpugradWarning",
    "IndexOutOfBoundsError",
    "KernelError",
    "MatrixShapeError",
    "NoGradientError",
    "NumberOverflowError",
    "NumericsError",
    "OutOfMemoryError",
    "ShapeError",
    "SingularMatrixError",
    "StructureError",
    "TapeError",
    "TraceError",
    "describe",
    "reraise",
    "saying_where",
]

for _name in __all__:
    _value = globals()[_name]
    if hasattr(_value, "__module__"):  # tracebacks and docs show where a user finds the class
        _value.__module__ = __name__


def __dir__() -> list[str]:
    return __all__
