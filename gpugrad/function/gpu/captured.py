"""The steps that the capture of a stream can hold.

A graph can hold launches, and memory of the pool that it keeps. It cannot hold a step that waits
for a result (an index that is checked, a shape that depends on values), nor cuBLAS, cuSOLVER and
cuRAND, which CuPy refuses to capture. A refusal ends the capture, and the step is left out then.
Two things would be captured but wrong in later launches: an array from the host, because only its
address is captured, and an FFT, because CuPy owns its plan and work area and may free them. So an
op's record sets `captures` only if its forward does neither, on CuPy 14. Sorts can be captured:
they are Thrust's, under a policy that does not wait for the stream. So can CuPy's and CUB's
reductions, which take their memory from the pool.
"""

from __future__ import annotations

from typing import Any

from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.kernels.codegen.for_ops import forward_of, kind_of
from gpugrad.trace.program import Step, Value


def can_be_captured(step: Step) -> bool:
    """Whether an op's function on plain arrays only launches work on memory that can be fixed."""
    op: Any = step.op
    if callable(op.captures):
        return bool(op.captures(*step.args, **step.params))
    if op.captures is False:
        return False
    if op.cuda is not None or op.view or all(v.view for v in step.outs):
        return True
    if op.kind == "elementwise":
        return op.captures or op.is_library_function or _has_code(op, step.args)
    arrays = all(isinstance(a, Value) or a is None for a in step.args)  # no numbers to send
    return bool(op.captures) and arrays


def _has_code(op: Any, args: Any) -> bool:
    """Whether an elementwise formula can be written as CUDA; others may use host arrays."""
    try:
        forward_of(op, tuple(map(kind_of, args)))
    except NoCodeError:
        return False
    return True
