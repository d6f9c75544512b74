"""CUDA expressions for the functions of NumPy and scipy.special, by the kind of dtype.

``{0}`` and ``{1}`` are arguments of one dtype, ``{T}`` is its C++ name. `functions.cuh` defines
functions that CUDA lacks, `complex.cuh` those of complex numbers.
"""

from __future__ import annotations

_BY_KIND = {
    "fiuc": {
        "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}",
        "square": "{0} * {0}",
    },
    "fic": {"negative": "-{0}"},
    "fiucb": {
        "equal": "{0} == {1}", "not_equal": "{0} != {1}", "positive": "{0}",
        "logical_and": "(bool){0} && (bool){1}", "logical_or": "(bool){0} || (bool){1}",
        "logical_xor": "(bool){0} != (bool){1}", "logical_not": "!(bool){0}",
    },
    "fiub": {
        "less": "{0} < {1}", "less_equal": "{0} <= {1}", "greater": "{0} > {1}",
        "greater_equal": "{0} >= {1}", "conjugate": "{0}",
    },
    "b": {
        "where": "{0} ? {1} : {2}", "add": "{0} || {1}", "multiply": "{0} && {1}",
        "maximum": "{0} || {1}", "minimum": "{0} && {1}", "fmax": "{0} || {1}",
        "fmin": "{0} && {1}", "absolute": "{0}", "bitwise_and": "{0} && {1}",
        "bitwise_or": "{0} || {1}", "bitwise_xor": "{0} != {1}", "invert": "!{0}",
        "isfinite": "true", "isinf": "false", "isnan": "false",
        "floor": "{0}", "ceil": "{0}", "trunc": "{0}",
    },
    "iu": {
        "bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}",
        "invert": "~{0}", "left_shift": "left_shift<{T}>({0}, {1})",
        "right_shift": "right_shift<{T}>({0}, {1})",
        "maximum": "{0} > {1} ? {0} : {1}", "minimum": "{0} < {1} ? {0} : {1}",
        "fmax": "{0} > {1} ? {0} : {1}", "fmin": "{0} < {1} ? {0} : {1}",
        "floor_divide": "floor_divide<{T}>({0}, {1})", "remainder": "remainder<{T}>({0}, {1})",
        "fmod": "{1} == 0 ? 0 : {0} % {1}", "gcd": "gcd<{T}>({0}, {1})",
        "lcm": "lcm<{T}>({0}, {1})", "power": "whole_power<{T}>({0}, {1})",
        "floor": "{0}", "ceil": "{0}", "trunc": "{0}",
        "isfinite": "true", "isinf": "false", "isnan": "false",
    },
    "i": {
        "absolute": "{0} < 0 ? -{0} : {0}", "sign": "({0} > 0) - ({0} < 0)",
        "bitwise_count": "__popcll({0} < 0 ? 0ULL - (unsigned long long){0} : {0})",
        "signbit": "{0} < 0",
    },
    "u": {
        "negative": "-{0}", "absolute": "{0}", "sign": "{0} > 0", "bitwise_count": "__popcll({0})",
    },
    "fc": {
        "divide": "{0} / {1}", "reciprocal": "({T})1 / {0}", "sqrt": "sqrt({0})",
        "exp": "exp({0})", "expm1": "expm1({0})", "log": "log({0})", "log2": "log2({0})",
        "log10": "log10({0})", "log1p": "log1p({0})", "sin": "sin({0})", "cos": "cos({0})",
        "tan": "tan({0})", "arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})",
        "sinh": "sinh({0})", "cosh": "cosh({0})", "tanh": "tanh({0})", "arcsinh": "asinh({0})",
        "arccosh": "acosh({0})", "arctanh": "atanh({0})",
        "isfinite": "is_finite({0})", "isinf": "is_infinite({0})", "isnan": "{0} != {0}",
    },
    "f": {
        "power": "pow({0}, {1})", "uniform_power": "uniform_power({0}, {1})",
        "absolute": "fabs({0})", "fabs": "fabs({0})",
        "sign": "sign({0})", "cbrt": "cbrt({0})", "exp2": "exp2({0})", "hypot": "hypot({0}, {1})",
        "copysign": "copysign({0}, {1})", "arctan2": "atan2({0}, {1})",
        "logaddexp": "logaddexp({0}, {1})", "logaddexp2": "logaddexp2({0}, {1})",
        "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}",
        "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
        "fmax": "{0} >= {1} || {1} != {1} ? {0} : {1}",
        "fmin": "{0} <= {1} || {1} != {1} ? {0} : {1}",
        "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "rint": "rint({0})",
        "fmod": "fmod({0}, {1})", "floor_divide": "floor_divide<{T}>({0}, {1})",
        "remainder": "remainder<{T}>({0}, {1})", "signbit": "sign_bit({0})",
        "deg2rad": "{0} * ({T})0.017453292519943295", "rad2deg": "{0} * ({T})57.29577951308232",
        "degrees": "{0} * ({T})57.29577951308232", "radians": "{0} * ({T})0.017453292519943295",
        "heaviside": "heaviside({0}, {1})", "ldexp": "scaled({0}, {1})",
        "nextafter": "nextafter({0}, {1})", "complex": "Complex<{T}>({0}, {1})",
    },
    "c": {
        "power": "pow({0}, {1})", "absolute": "abs({0})", "sign": "sign({0})",
        "conjugate": "conj({0})", "real": "{0}.re", "imag": "{0}.im",
    },
}  # fmt: skip

_ONE, _TWO = "{0}", "{0}, {1}"

SPECIAL = {
    **{name: f"{name}({_ONE})" for name in (
        "expit", "log_expit", "logit", "erf", "erfc", "erfcx", "erfinv", "erfcinv", "log_ndtr",
        "exp10", "cosm1", "loggamma", "rgamma", "gammasgn", "j0", "j1", "entr",
    )},
    **{name: f"{name}({_TWO})" for name in (
        "xlogy", "xlog1py", "rel_entr", "kl_div", "huber", "pseudo_huber", "boxcox", "boxcox1p",
        "inv_boxcox", "inv_boxcox1p",
    )},
    "ndtr": "normcdf({0})", "ndtri": "normcdfinv({0})", "gamma": "tgamma({0})",
    "gammaln": "lgamma({0})", "i0": "cyl_bessel_i0({0})", "i1": "cyl_bessel_i1({0})",
    "y0": "bessel_y0({0})", "y1": "bessel_y1({0})",
}  # fmt: skip
"""The functions of scipy.special, on floats."""

FUNCTIONS = {
    (name, kind): text
    for kinds, texts in (*_BY_KIND.items(), ("f", SPECIAL))
    for kind in kinds
    for name, text in texts.items()
}
"""The expression by (NumPy's name of the function, kind of the arguments' dtype)."""
