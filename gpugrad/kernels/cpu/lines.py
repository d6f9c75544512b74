"""Lines of C++ on vectors, from the lines of CUDA that `gpugrad.kernels.codegen.code` writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpugrad.core.backend import HALF
from gpugrad.kernels.codegen.code import Code, NoCodeError
from gpugrad.kernels.cpu.vectors import functions
from gpugrad.kernels.runtime.launch import TYPES, type_name

_CALL = re.compile(r"\b([a-z_]\w*)(?:<[\w ]+>)?\(")
_CAST = re.compile(rf"\(({'|'.join(t for t in TYPES.values() if t[0].islower())})\)")
_CHOICE = re.compile(r"(.+) \? (.+) : (.+)")


def check(codes: Sequence[Code], dtypes: Iterable[object]) -> None:
    """Raise NoCodeError for what vectors cannot do.

    Args:
        codes: the lines.
        dtypes: of the arrays that the kernel reads and writes.
    """
    kinds = [*map(TYPES.get, dtypes), *(TYPES[c.dtype] for c in codes)]
    if any(name is None or name[0] in "C_" for name in kinds):
        raise NoCodeError("C kernels have no complex and no 16-bit floats")
    for code in codes:
        if any(TYPES[dtype] in code.text for dtype in HALF):  # it rounds to 16 bits
            raise NoCodeError("C kernels have no 16-bit floats")
        for name in _CALL.findall(code.text):
            if name not in functions():
                raise NoCodeError(f"C kernels have no {name}")
        whole = code.of and code.of[0].dtype.kind in "iu"
        if whole and re.search(r" [%/] |\) - \(", code.text):
            raise NoCodeError(f"C kernels have no {code.text}")
        if code.dtype.kind == "u" and " > 0" in code.text:
            raise NoCodeError("C kernels have no sign of unsigned numbers")


def vector(t: str) -> str:
    """The type of vectors of a C++ type."""
    return f"V<{t}, N>"


def lanes(itemsizes: Iterable[int]) -> str:
    """The line that declares N, the elements of a vector."""
    return f"constexpr int N = LANES<{8 if max(itemsizes) == 8 else 4}>;"


def declared(codes: Iterable[Code]) -> list[str]:
    """A line for each value."""
    return [f"const {vector(type_name(c.dtype))} {c.name} = {_translated(c)};" for c in codes]


def stored(code: Code, dtype: object) -> str:
    """A value in the dtype of its array."""
    if code.dtype == dtype:
        return code.name
    return f"(({vector(type_name(dtype))}){code.name})"


def _translated(code: Code) -> str:
    """An expression of one element as one of vectors."""
    text = _CAST.sub(lambda match: f"({vector(match[1])})", code.text)
    if choice := _CHOICE.fullmatch(text):
        t = vector(type_name(code.dtype))
        condition, *values = choice.groups()
        text = f"where({condition}, {', '.join(f'{t}({v})' for v in values)})"
    return re.sub(r"\b(floor_divide|remainder|left_shift|right_shift)<[\w ]+>\(", r"\1(", text)
