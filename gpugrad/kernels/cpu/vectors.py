"""The vector functions that the C library has, by the names in ``functions.h``.

glibc has vectors of exp, log, sin, cos and pow on x86 since 2.22, of all that C has since 2.35, and
on ARM since 2.38, in a library of its own, libmvec.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform

_PLAIN = """
    sqrt floor ceil trunc rint fabs copysign sign_bit is_finite is_infinite sign floor_divide
    remainder fmod left_shift right_shift heaviside huber pseudo_huber infinity not_a_number
"""
_OWN = " exp log tanh erf expit xlogy entr rel_entr kl_div"
_FIRST = " sin cos pow uniform_power cosm1"
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
