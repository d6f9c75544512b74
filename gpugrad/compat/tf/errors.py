"""tf.errors: gpugrad's errors by TensorFlow's names, with TensorFlow's attributes.

Once this module is imported, all of gpugrad's errors have ``message``, ``op``, ``node_def`` and
``error_code``. A program that raises one itself gives a node, an op and a message, or only a text.

>>> import gpugrad.compat.tf as tf
>>> try:
...     tf.reshape([1, 2, 3], [2, 2])
... except tf.errors.InvalidArgumentError as error:
...     print(error.message.partition(":")[0], error.op, error.error_code)
reshape None 3
>>> str(tf.errors.NotFoundError(None, None, "no such file"))
'no such file'
"""

from __future__ import annotations

from typing import Any

from gpugrad import errors
from gpugrad.compat.names import forwarding

_NAMES = """Cancelled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists
PermissionDenied ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal
Unavailable DataLoss Unauthenticated"""
"""TensorFlow's errors in the order of their codes, the first of which is 1."""

_OURS = {
    "InvalidArgument": errors.GpugradError,
    "NotFound": errors.CheckpointError,
    "ResourceExhausted": errors.OutOfMemoryError,
}
_BASES: dict[str, Any] = {
    "FailedPrecondition": (errors.ArgumentError,),
    "OutOfRange": (errors.GpugradError, StopIteration),
    "Unimplemented": (errors.GpugradError, NotImplementedError),
}


def _class(name: str, code: int) -> type[errors.GpugradError]:
    """The class of a name, gpugrad's if one means the same."""
    kind: Any = _OURS.get(name)
    if kind is None:
        text = f"TensorFlow's error {name}."
        bases = _BASES.get(name, (errors.GpugradError,))
        kind = type(f"{name}Error", bases, {"__doc__": text, "__module__": __name__})
    kind.error_code = code
    return kind


def _given(error: errors.GpugradError, i: int) -> Any:
    """A node, an op or a message that an error was made of; None if it was made of a text."""
    return error.args[i] if len(error.args) > 2 else None


def _message(error: errors.GpugradError) -> Any:
    given = _given(error, 2)
    return super(errors.GpugradError, error).__str__() if given is None else given


_all: Any = errors.GpugradError
_all.node_def = property(lambda error: _given(error, 0))
_all.op = property(lambda error: _given(error, 1))
_all.message, _all.__str__ = property(_message), _message
OpError = errors.GpugradError


class ConversionError(errors.DTypeError, errors.ArgumentError):
    """A value that has no Tensor: TensorFlow raises TypeError for some, ValueError for others."""


_CLASSES = {f"{name}Error": _class(name, i) for i, name in enumerate(_NAMES.split(), 1)}
OperatorNotAllowedInGraphError = ConversionError
FailedPreconditionError: Any = _CLASSES["FailedPreconditionError"]
OutOfRangeError: Any = _CLASSES["OutOfRangeError"]
DataLossError: Any = _CLASSES["DataLossError"]
__getattr__, __dir__ = forwarding(__name__, _CLASSES, own=globals())
