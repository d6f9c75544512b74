"""C for operators on single floats: numbers, which compile ten times faster than vectors of lanes.

They have the same bits.
"""

from __future__ import annotations

from gpugrad.kernels.codegen.code import Code
from gpugrad.kernels.codegen.cpp import HEAD, type_of
from gpugrad.kernels.codegen.cuda import CUDA
from gpugrad.kernels.codegen.kernel import Kernel


def is_one(kernel: Kernel) -> bool:
    """Whether a kernel consists of operators on single floats."""
    reduces = kernel.sums or kernel.body.reductions
    return (
        kernel.rows * kernel.columns == 1 and not reduces and all(map(_is_plain, kernel.body.codes))
    )


def _is_plain(code: Code) -> bool:
    """Whether a value is a float or a bool, and not the result of a function."""
    is_call = isinstance(code.how, str) and code.how.endswith("()")
    return code.dtype.kind in "fb" and code.op not in ("half", "rounded") and not is_call


def text(kernel: Kernel) -> str:
    """The function, as the attribute `text` of `CKernel`."""
    lines = []
    for i in kernel.inputs:
        t = type_of(i.dtype)
        lines.append(f"const {t} x{i.k} = *(const {t}*)p[{i.k}];")
    lines += map(CUDA.line, kernel.body.needed([r.code for r in kernel.results]))
    for k, r in enumerate(kernel.results, len(kernel.inputs)):
        t = type_of(r.value.dtype)
        lines.append(f"*({t}*)p[{k}] = ({t}){r.code.name};")
    return "\n".join([HEAD, *lines, "}"])
