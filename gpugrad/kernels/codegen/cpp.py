"""C++ on vectors for the nodes of a formula: a line for each `Code`.

For ``x * xp.tanh(y)`` with float32 `x` and `y` the lines are::

    const V<float, N> v0 = x0;
    const V<float, N> v1 = x1;
    const V<float, N> v2 = tanh(v1);
    const V<float, N> v3 = v0 * v2;

``vector.h`` and ``functions.h`` of `kernels/cpu` define the types and the functions.

glibc has vectors of exp, log, sin, cos and pow on x86 since 2.22, of all that C has since 2.35, and
on ARM since 2.38, in a library of its own, libmvec.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
from collections.abc import Iterable
from typing import Any

from gpugrad.kernels.codegen.code import Code, NoCodeError
from gpugrad.kernels.codegen.cuda import Renderer
from gpugrad.kernels.runtime.launch import TYPES

_SCALAR_ONLY = {(name, kind) for name in ("fmod", "sign", "bitwise_count") for kind in "iu"}
"""Functions whose expressions vectors cannot compute: no quotients, no sums of comparisons."""

_SINGLE = {"erfinv", "lgamma", "j0"}
"""Functions that vectors have of float32 alone."""

_CHEAP = {"floor", "ceil", "trunc", "rint", "fabs", "sign", "sign_bit", "floor_divide"}


_PLAIN = """
    sqrt floor ceil trunc rint fabs copysign sign_bit is_finite is_infinite sign floor_divide
    remainder fmod left_shift right_shift heaviside huber pseudo_huber infinity not_a_number
"""
_OWN = """
    exp log tanh erf expit xlogy entr rel_entr kl_div i0e i1e cyl_bessel_i0 cyl_bessel_i1 digamma
    erfinv
"""
_FIRST = " sin cos pow uniform_power cosm1 lgamma j0"
_ALL = """
    exp2 exp10 expm1 log2 log10 log1p tan asin acos atan sinh cosh asinh acosh atanh cbrt erfc
    atan2 hypot log_expit logit logaddexp logaddexp2 xlog1py normcdf
"""


@functools.cache
def libmvec() -> int:
    """2 if libmvec has all of its functions, 1 if only the first ones, 0 without it.

    Its names are made known to libraries that are loaded later.
    """
    with contextlib.suppress(OSError):
        library = ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
        letter = "b" if platform.machine() == "x86_64" else "n"
        for level, name in ((2, "erff"), (1, "expf")):
            if hasattr(library, f"_ZGV{letter}N4v_{name}"):
                return level
    return 0


@functools.cache
def functions() -> frozenset[str]:
    """The names of the functions that kernels may call."""
    return frozenset("".join((_PLAIN, _OWN, _FIRST, _ALL)[: 2 + libmvec()]).split())


def prelude() -> str:
    """The text before that of kernels."""
    return f'#define LIBMVEC {libmvec()}\n#include "vector.h"\n'


HEAD = 'extern "C" void NAME(char** p, long from, long to, char* part) {'
"""The first line of a kernel."""


class _Vectors(Renderer):
    """Writes the lines of nodes as C++ on vectors of N elements."""

    def type(self, dtype: Any) -> str:
        """The type of a vector."""
        return f"V<{type_of(dtype)}, N>"

    def call(self, function: str, code: Any, names: list[str]) -> str:
        """A call of a function of vectors, whose types the compiler finds."""
        function = function.partition("<")[0]
        if function not in functions():
            raise NoCodeError(f"C kernels have no {function}")
        if function in _SINGLE and code.dtype.itemsize == 8:
            raise NoCodeError(f"C kernels have no {function} of {code.dtype}")
        return f"{function}({', '.join(names)})"

    def choice(self, condition: str, value: str, other: str, code: Any) -> str:
        """Elements of two values."""
        t = self.type(code.dtype)
        return f"where({condition}, {t}({value}), {t}({other}))"

    def expression(self, code: Any) -> str:
        """The expression of a `Code`, which names its arguments."""
        if code.args and (code.op, code.args[0].dtype.kind) in _SCALAR_ONLY:
            raise NoCodeError(f"C kernels have no {code.op} of {code.args[0].dtype}")
        if code.op in ("half", "rounded"):
            raise NoCodeError("C kernels have no 16-bit floats")
        return super().expression(code)


CPP = _Vectors()


def type_of(dtype: Any) -> str:
    """The C++ type of an element.

    Raises:
        NoCodeError: vectors cannot hold it.
    """
    name = TYPES.get(dtype)
    if name is None or name[0] in "C_":
        raise NoCodeError("C kernels have no complex and no 16-bit floats")
    return name


def lanes(itemsizes: Iterable[int]) -> str:
    """The line that declares N, the elements of a vector."""
    return f"constexpr int N = LANES<{8 if max(itemsizes) == 8 else 4}>;"


def is_costly(code: Code) -> bool:
    """Whether a value is worth a load and a store instead of computing it again."""
    if not isinstance(code.how, str) or not code.how.endswith("()"):
        return False
    return code.how[:-2].partition("<")[0] not in _CHEAP


def stored(code: Code, dtype: Any) -> str:
    """A value in the dtype of its array."""
    return code.name if code.dtype == dtype else f"(({CPP.type(dtype)}){code.name})"
