"""Which steps the capture of a stream can hold.

A graph can hold launches, and memory of the pool that it keeps. It cannot hold a step that waits
for a result (an index that is checked, a shape that depends on values), nor cuBLAS, cuSOLVER and
cuRAND, which CuPy refuses to capture. A refusal ends the capture, and the step is left out then.
Two things would be captured and be wrong in later launches: an array from the host, of which only
the address is captured, and an FFT, whose plan and work area are CuPy's, which may drop them. So an
op's record says that it `captures` only if its forward does neither, on CuPy 14. The sorts do: they
are Thrust's, under a policy that does not wait for the stream. So do CuPy's reductions and CUB's,
which take what memory they need from the pool. The tests ask a stand-in that refuses both.
"""

from __future__ import annotations

from typing import Any

from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.codegen.for_ops import forward_of, kind_of
from gpugrad.trace.program import Step, Value

__all__ = ["can_be_captured"]


def can_be_captured(step: Step) -> bool:
    """Whether an op's own function, on plain arrays, is launches on memory that can be fixed."""
    op: Any = step.op
    if callable(op.captures):
        return bool(op.captures(*step.args, **step.params))
    if op.captures is False:
        return False
    if op.cuda is not None or op.view or all(v.view for v in step.outs):
        return True
    if op.kind == "elementwise":
        return op.captures or op.is_library_function or _has_code(op, step.args)
    arrays = all(isinstance(a, Value) or a is None for a in step.args)  # no number to be sent
    return bool(op.captures) and arrays


def _has_code(op: Any, args: Any) -> bool:
    """Whether an elementwise formula reads as CUDA; another may bring arrays from the host."""
    try:
        forward_of(op, tuple(map(kind_of, args)))
    except NoCodeError:
        return False
    return True
