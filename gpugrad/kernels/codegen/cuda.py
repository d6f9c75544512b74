"""CUDA for the nodes of a formula: a line for each `Code`.

Functions of NumPy and scipy.special are found by their name and the kind of their first argument's
dtype. `functions.cuh` defines those that CUDA lacks, `complex.cuh` those of complex numbers.
`cpp.py` writes the same nodes as C++ on vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpugrad.kernels.runtime.launch import TYPES

_SAME = "sqrt exp expm1 log log2 log10 log1p sin cos tan sinh cosh tanh"

_BY_KIND: dict[str, dict[str, Any]] = {
    "fiuc": {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}"},
    "fic": {"negative": "-{0}"},
    "fiucb": {
        "equal": "{0} == {1}", "not_equal": "{0} != {1}", "positive": "{0}",
        "logical_and": "({B}){0} && ({B}){1}", "logical_or": "({B}){0} || ({B}){1}",
        "logical_xor": "({B}){0} != ({B}){1}", "logical_not": "!({B}){0}",
    },
    "fiub": {
        "less": "{0} < {1}", "less_equal": "{0} <= {1}", "greater": "{0} > {1}",
        "greater_equal": "{0} >= {1}", "conjugate": "{0}",
    },
    "b": {
        "where": ("{0}", "{1}", "{2}"), "add": "{0} || {1}", "multiply": "{0} && {1}",
        "maximum": "{0} || {1}", "minimum": "{0} && {1}", "fmax": "{0} || {1}",
        "fmin": "{0} && {1}", "absolute": "{0}", "bitwise_and": "{0} && {1}",
        "bitwise_or": "{0} || {1}", "bitwise_xor": "{0} != {1}", "invert": "!{0}",
    },
    "iub": {
        "isfinite": "true", "isinf": "false", "isnan": "false",
        "floor": "{0}", "ceil": "{0}", "trunc": "{0}",
    },
    "iu": {
        "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}",
        "invert": "~{0}", "left_shift": "left_shift<{T}>()", "right_shift": "right_shift<{T}>()",
        "maximum": ("{0} > {1}", "{0}", "{1}"), "minimum": ("{0} < {1}", "{0}", "{1}"),
        "fmax": ("{0} > {1}", "{0}", "{1}"), "fmin": ("{0} < {1}", "{0}", "{1}"),
        "fmod": ("{1} == 0", "0", "{0} % {1}"), "gcd": "gcd<{T}>()", "lcm": "lcm<{T}>()",
        "power": "whole_power<{T}>()",
    },
    "iuf": {"floor_divide": "floor_divide<{T}>()", "remainder": "remainder<{T}>()"},
    "i": {
        "absolute": ("{0} < 0", "-{0}", "{0}"), "sign": "({0} > 0) - ({0} < 0)",
        "bitwise_count": "__popcll({0} < 0 ? 0ULL - (unsigned long long){0} : {0})",
        "signbit": "{0} < 0",
    },
    "u": {
        "negative": "-{0}", "absolute": "{0}", "sign": "{0} > 0", "bitwise_count": "__popcll()",
    },
    "fc": {
        **{name: f"{name}()" for name in _SAME.split()},
        "divide": "{0} / {1}", "reciprocal": "({T})1 / {0}", "arcsin": "asin()",
        "arccos": "acos()", "arctan": "atan()", "arcsinh": "asinh()", "arccosh": "acosh()",
        "arctanh": "atanh()", "isfinite": "is_finite()", "isinf": "is_infinite()",
        "isnan": "{0} != {0}", "power": "pow()", "sign": "sign()",
    },
    "f": {
        **{name: f"{name}()" for name in (
            "uniform_power", "fabs", "cbrt", "exp2", "hypot", "copysign", "logaddexp", "logaddexp2",
            "floor", "ceil", "trunc", "rint", "fmod", "heaviside", "nextafter",
        )},
        "absolute": "fabs()", "arctan2": "atan2()", "signbit": "sign_bit()", "ldexp": "scaled()",
        "maximum": ("{0} > {1} || {0} != {0}", "{0}", "{1}"),
        "minimum": ("{0} < {1} || {0} != {0}", "{0}", "{1}"),
        "fmax": ("{0} >= {1} || {1} != {1}", "{0}", "{1}"),
        "fmin": ("{0} <= {1} || {1} != {1}", "{0}", "{1}"),
        "deg2rad": "{0} * ({T})0.017453292519943295", "rad2deg": "{0} * ({T})57.29577951308232",
        "degrees": "{0} * ({T})57.29577951308232", "radians": "{0} * ({T})0.017453292519943295",
        "complex": "Complex<{T}>()",
    },
    "c": {"absolute": "abs()", "conjugate": "conj()", "real": "{0}.re", "imag": "{0}.im"},
}  # fmt: skip

SPECIAL = {
    **{name: f"{name}()" for name in (
        "expit", "log_expit", "logit", "erf", "erfc", "erfcx", "erfinv", "erfcinv", "log_ndtr",
        "exp10", "cosm1", "loggamma", "rgamma", "gammasgn", "j0", "j1", "entr", "xlogy", "xlog1py",
        "rel_entr", "kl_div", "huber", "pseudo_huber", "boxcox", "boxcox1p", "inv_boxcox",
        "inv_boxcox1p",
    )},
    "ndtr": "normcdf()", "ndtri": "normcdfinv()", "gamma": "tgamma()", "gammaln": "lgamma()",
    "i0": "cyl_bessel_i0()", "i1": "cyl_bessel_i1()", "y0": "bessel_y0()", "y1": "bessel_y1()",
}  # fmt: skip
"""The functions of scipy.special, on floats."""

IN_C_ALONE = {name: f"{name}()" for name in ("i0e", "i1e", "digamma")}
"""Functions that eager ops have in C (`kernels/cpu/special.h`); on a GPU CuPy's own kernels run."""

FUNCTIONS = {
    (name, kind): how
    for kinds, texts in (*_BY_KIND.items(), ("f", SPECIAL | IN_C_ALONE))
    for kind in kinds
    for name, how in texts.items()
}
"""How a function is written, by its name and the kind of its first argument's dtype.

``"f()"`` is a call with all arguments. A tuple (condition, value, other) chooses. Other texts have
``{0}`` and ``{1}`` for the arguments, ``{T}`` for the type of the first and ``{B}`` for booleans.
"""


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number of a dtype as a literal of exactly that type."""
    t = TYPES[dtype]
    if dtype.kind == "c":
        part = np.dtype(value.real.dtype)
        return f"{t}({literal(value.real, part)}, {literal(value.imag, part)})"
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        if int(value) == -(2**63):
            return "(-9223372036854775807LL - 1)"
        return (
            f"{int(value)}{'U' if dtype.kind == 'u' else ''}{'LL' if dtype.itemsize == 8 else ''}"
        )
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}infinity<{t}>()"
    if math.isnan(value):
        return f"not_a_number<{t}>()"
    # the shortest decimal that rounds to this float32
    return f"{float(value)!r}" if dtype.itemsize == 8 else f"{float(str(value))!r}f"


def indented(text: str) -> str:
    """A text whose lines are indented by the braces around them."""
    depth, lines = 0, []
    for line in text.splitlines():
        depth -= line.startswith("}")
        lines.append("  " * (0 if line.startswith("#") else depth) + line)
        depth += line.endswith("{")
    return "\n".join([*lines, ""])


class Renderer:
    """Writes the lines of nodes; this one writes CUDA."""

    def type(self, dtype: Any) -> str:
        """The type of a value."""
        return TYPES[dtype]

    def call(self, function: str, code: Any, names: list[str]) -> str:
        """A call of a function; its name may have a template argument, ``<{T}>``."""
        return f"{function.format(T=TYPES[code.args[0].dtype])}({', '.join(names)})"

    def choice(self, condition: str, value: str, other: str, code: Any) -> str:
        """One of two values."""
        return f"{condition} ? {value} : {other}"

    def rounded(self, code: Any, name: str) -> str:
        """A value rounded to a 16-bit dtype."""
        return f"(float)({TYPES[code.value]}){name}"

    def expression(self, code: Any) -> str:
        """The expression of a `Code`, which names its arguments."""
        op, names = code.op, [a.name for a in code.args]
        if op in ("input", "reduced"):
            return str(code.value)
        if op == "half":
            return f"({self.type(code.dtype)}){code.value}"
        if op == "literal":
            return literal(code.value, code.dtype)
        if op == "cast":
            return f"({self.type(code.dtype)}){names[0]}"
        if op == "strong":
            return f"({names[0]})"
        if op == "rounded":
            return self.rounded(code, names[0])
        how = code.how
        types = {"T": self.type(code.args[0].dtype), "B": self.type(np.dtype(np.bool_))}
        if isinstance(how, tuple):
            condition, value, other = (text.format(*names, **types) for text in how)
            return self.choice(condition, value, other, code)
        if how.endswith("()"):
            return self.call(how[:-2], code, names)
        return str(how.format(*names, **types))

    def line(self, code: Any) -> str:
        """The declaration of a `Code`."""
        return f"const {self.type(code.dtype)} {code.name} = {self.expression(code)};"


CUDA = Renderer()
