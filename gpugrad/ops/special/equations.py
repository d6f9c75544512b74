"""Solutions of differential equations of second order, with their first derivatives.

SciPy gives such a function y and its slope y'. The equation gives the slope's own slope, so the
derivatives by x are known to any order: DLMF 12.2 (parabolic cylinder), 28.2 and 28.20 (Mathieu),
30.2 (spheroidal). Those by the other parameters are not known. SciPy computes these on the CPU;
CuPy lacks them.
"""

import math

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.ops.special.primitives import few, primitive
from gpugrad.registry.record import names_in

_DEGREE = math.pi / 180
_MOST = {"v": 1e4, "a": 1e4, "m": 100, "n": 100, "q": 1e4, "c": 100, "cv": 1e6, "x": 1e4}
"""With larger arguments SciPy's functions may crash, or ask for all memory."""
_NOT_KNOWN = "The gradients by other arguments than `x` are not known; asking for one raises."


def _slope(xp, g, out, second, shape, unit=1.0):
    """The gradient by x of (y, y'), given y''; `unit` is what the derivative y' is by."""
    return xp.sum_to((g[0] * out[1] + g[1] * second) * unit, shape)


def _solution(signature, by_x, doc, example, samples, counts=0):
    """An op whose results are y and y'; `counts` arguments are integers, without a gradient."""
    n = len(names_in(signature)[1]) - 1 - counts
    returns = "Two Tensors of the broadcast shape: the function and its derivative."
    rules = [*[None] * counts, *[...] * n, by_x]
    doc = f"{doc}, and its derivative.\n\n{_NOT_KNOWN}" if n else f"{doc}, and its derivative."
    doc += f" It is NaN for orders above {_MOST['m' if counts else 'v']:g} and `x` above 1e4."
    return primitive(
        signature, rules, doc, returns, example, outputs=2, samples=samples, most=_MOST
    )


_CYLINDER = few((-1.5, 2.5), (-2, 2))

pbdv = _solution(
    "pbdv(v, x)",
    lambda xp, g, out, v, x, x_shape: _slope(
        xp, g, out, (0.25 * x * x - v - 0.5) * out[0], x_shape
    ),
    "Parabolic cylinder function D of order `v`",
    ("1.0, 1.0", "0.7788008 0.38940036"),
    _CYLINDER,
)
pbvv = _solution(
    "pbvv(v, x)",
    lambda xp, g, out, v, x, x_shape: _slope(
        xp, g, out, (0.25 * x * x - v - 0.5) * out[0], x_shape
    ),
    "Parabolic cylinder function V of order `v`",
    ("1.0, 1.0", "-0.28196558 0.88352126"),
    _CYLINDER,
)
pbwa = _solution(
    "pbwa(a, x)",
    lambda xp, g, out, a, x, x_shape: _slope(xp, g, out, (a - 0.25 * x * x) * out[0], x_shape),
    "Parabolic cylinder function W, for `a` and `x` between -5 and 5",
    ("1.0, 1.0", "0.31593764 -0.22951692"),
    _CYLINDER,
)

# ---- characteristic values: eigenvalues of tridiagonal matrices, linear in a parameter -------

_SIZE = 40
_K = np.arange(float(_SIZE))
_ABOVE = np.eye(_SIZE, k=1)


def _by_parameter(xp, constant, diagonal, above, s, index):
    """Derivative of an eigenvalue of a symmetric tridiagonal matrix by s, v @ T @ v.

    The matrix is diag(constant) + s T, and T has `diagonal` and `above`.
    """
    s = xp.expand_dims(s, axis=-1)
    middle, side = constant + s * diagonal, s * above
    square = xp.expand_dims(middle, axis=-1) * np.eye(_SIZE)
    upper = xp.expand_dims(side, axis=-1) * _ABOVE
    _, vectors = xp.eigh(square + upper + xp.matrix_transpose(upper))
    chosen = 1.0 * (xp.expand_dims(index, axis=-1) == _K)
    v = xp.sum(vectors * xp.expand_dims(chosen, axis=-2), axis=-1)
    after = xp.matmul(v, _ABOVE.T)  # v shifted by one
    return xp.sum(diagonal * v * v + 2 * above * v * after, axis=-1)


def _mathieu_slope(even):
    """The rule of a_m (`even`) or b_m by q: DLMF 28.4.5 to 28.4.8, made symmetric."""

    def rule(xp, g, m, q, q_shape):
        m = xp.astype(xp.floor(m + 0 * q), "int64")
        odd = m % 2
        shift = odd if even else 2 - odd
        start = xp.expand_dims(shift, axis=-1)
        first = xp.expand_dims(1.0 * odd, axis=-1) * (_K == 0)
        root = math.sqrt(2) - 1 if even else 0.0
        above = 1.0 + xp.expand_dims(root * (1 - odd), axis=-1) * (_K == 0)
        slope = _by_parameter(
            xp, (2 * _K + start) ** 2, first if even else -first, above, q, (m - shift) // 2
        )
        return xp.sum_to(g * slope, q_shape)

    return rule


def _mathieu_value(name, doc, even, example):
    return primitive(
        f"{name}(m, q)",
        [None, _mathieu_slope(even)],
        f"Characteristic value of {doc} Mathieu functions, of the order `m`.\n\n"
        "The gradient by `q` is exact for `m` up to 30 and `q` up to 300.",
        "Tensor of the broadcast shape.",
        example,
        samples=few([1, 2, 3], (0.3, 3)),
        most=_MOST,
    )


mathieu_a = _mathieu_value("mathieu_a", "even", True, ("0, 1.0", "-0.4551386"))
mathieu_b = _mathieu_value("mathieu_b", "odd", False, ("1, 1.0", "-0.11024882"))


def _angular(name, value, doc, example):
    return _solution(
        f"{name}(m, q, x)",
        lambda xp, g, out, m, q, x, x_shape: _slope(
            xp,
            g,
            out,
            (2 * q * xp.cos(2 * _DEGREE * x) - getattr(xp, value)(m, q)) * out[0],
            x_shape,
            _DEGREE,
        ),
        f"{doc} Mathieu function of the order `m` at `x` degrees",
        example,
        few([1, 2, 3], (0.3, 3), (5, 85)),
        counts=1,
    )


mathieu_cem = _angular("mathieu_cem", "mathieu_a", "Even", ("0, 1.0, 30.0", "0.5110228 0.46599758"))
mathieu_sem = _angular("mathieu_sem", "mathieu_b", "Odd", ("1, 1.0, 30.0", "0.3896274 0.8424282"))


def _radial(name, value, doc, example):
    return _solution(
        f"{name}(m, q, x)",
        lambda xp, g, out, m, q, x, x_shape: _slope(
            xp, g, out, (getattr(xp, value)(m, q) - 2 * q * xp.cosh(2 * x)) * out[0], x_shape
        ),
        f"{doc} modified Mathieu function of the order `m`",
        example,
        few([1, 2, 3], (0.3, 3), (0.2, 1)),
        counts=1,
    )


mathieu_modcem1 = _radial(
    "mathieu_modcem1", "mathieu_a", "Even, first kind of", ("0, 1.0, 0.5", "0.4651064 -0.8381262")
)
mathieu_modcem2 = _radial(
    "mathieu_modcem2", "mathieu_a", "Even, second kind of", ("0, 1.0, 0.5", "0.3546096 0.72975165")
)
mathieu_modsem1 = _radial(
    "mathieu_modsem1", "mathieu_b", "Odd, first kind of", ("1, 1.0, 0.5", "0.4046255 0.61617506")
)
mathieu_modsem2 = _radial(
    "mathieu_modsem2", "mathieu_b", "Odd, second kind of", ("1, 1.0, 0.5", "-0.4396325 0.9038709")
)


def _spheroidal_slope(sign):
    """The rule of a characteristic value by c: it is an eigenvalue of D + sign c^2 X.

    In normalised Legendre functions of the degrees l = m + p, m + p + 2, ..., D is l (l + 1) and X
    the matrix of x^2: DLMF 30.8, made symmetric.
    """

    def square(m, n):
        return (n * n - m * m) / (4 * n * n - 1)

    def rule(xp, g, m, n, c, c_shape):
        m, n = 1.0 * m + 0 * c, 1.0 * n + 0 * c
        parity = (n - m) % 2
        first = xp.expand_dims(m, axis=-1)
        degree = first + xp.expand_dims(parity, axis=-1) + 2 * _K
        diagonal = square(first, degree) + square(first, degree + 1)
        above = xp.sqrt(square(first, degree + 1) * square(first, degree + 2))
        index = xp.astype((n - m - parity) / 2, "int64")
        by_square = _by_parameter(xp, degree * (degree + 1), diagonal, above, sign * c * c, index)
        return xp.sum_to(g * 2 * sign * c * by_square, c_shape)

    return rule


_WAVES = [[0, 1], [1, 2, 3]]


def _spheroidal_value(name, doc, sign, example):
    return primitive(
        f"{name}(m, n, c)",
        [None, None, _spheroidal_slope(sign)],
        f"Characteristic value of {doc} spheroidal functions, of order `m` and degree `n`.\n\n"
        "The gradient by `c` is exact for `n` up to 30 and `c` up to 30.",
        "Tensor of the broadcast shape.",
        example,
        samples=few(*_WAVES, (0.5, 3)),
        most=_MOST,
    )


pro_cv = _spheroidal_value("pro_cv", "prolate", 1, ("0, 1, 1.0", "2.5930846"))
obl_cv = _spheroidal_value("obl_cv", "oblate", -1, ("0, 1, 1.0", "1.3932064"))


def _prolate(xp, out, m, c, cv, x):
    rest = 1 - x * x
    return (2 * x * out[1] - (cv - c * c * x * x - m * m / rest) * out[0]) / rest


def _oblate_angle(xp, out, m, c, cv, x):
    rest = 1 - x * x
    return (2 * x * out[1] - (cv + c * c * x * x - m * m / rest) * out[0]) / rest


def _oblate_radius(xp, out, m, c, cv, x):
    more = 1 + x * x
    return ((cv - c * c * x * x - m * m / more) * out[0] - 2 * x * out[1]) / more


def _spheroidal(name, value, second, doc, domain, examples):
    """A spheroidal wave function, and the one that gets the characteristic value."""
    rank = f"Spheroidal wave function, {doc}, of order `m` and degree `n`"
    wave = _solution(
        f"{name}(m, n, c, x)",
        lambda xp, g, out, m, n, c, x, x_shape: _slope(
            xp, g, out, second(xp, out, m, c, getattr(xp, value)(m, n, c), x), x_shape
        ),
        rank,
        ("0, 1, 1.0, " + examples[0], examples[1]),
        few(*_WAVES, (0.5, 3), domain),
        counts=2,
    )

    def samples(rng):
        for (m, n, c, x), _ in few(*_WAVES, (0.5, 3), domain)(rng):
            cv = getattr(NUMPY.special, value)(m, n, c)
            yield [m, n, c, np.asarray(cv), x], {}

    given = _solution(
        f"{name}_cv(m, n, c, cv, x)",
        lambda xp, g, out, m, c, cv, x, x_shape: _slope(
            xp, g, out, second(xp, out, m, c, cv, x), x_shape
        ),
        f"{rank}, with the characteristic value `cv`",
        ("0, 1, 1.0, gg.special." + value + "(0, 1, 1.0), " + examples[0], examples[1]),
        samples,
        counts=2,
    )
    return wave, given


_INSIDE, _OUTSIDE = (-0.8, 0.8), (1.2, 3)

pro_ang1, pro_ang1_cv = _spheroidal(
    "pro_ang1", "pro_cv", _prolate, "prolate and angular", _INSIDE, ("0.5", "0.48775318 0.9269535")
)
pro_rad1, pro_rad1_cv = _spheroidal(
    "pro_rad1",
    "pro_cv",
    _prolate,
    "prolate and radial, first kind",
    _OUTSIDE,
    ("2.0", "0.4560369 0.023288947"),
)
pro_rad2, pro_rad2_cv = _spheroidal(
    "pro_rad2",
    "pro_cv",
    _prolate,
    "prolate and radial, second kind",
    (2, 3),
    ("2.0", "-0.43843517 0.70854497"),
)
obl_ang1, obl_ang1_cv = _spheroidal(
    "obl_ang1",
    "obl_cv",
    _oblate_angle,
    "oblate and angular",
    _INSIDE,
    ("0.5", "0.51275563 1.0769924"),
)
obl_rad1, obl_rad1_cv = _spheroidal(
    "obl_rad1",
    "obl_cv",
    _oblate_radius,
    "oblate and radial, first kind",
    (0.3, 2),
    ("0.5", "0.15622886 0.29654104"),
)
obl_rad2, obl_rad2_cv = _spheroidal(
    "obl_rad2",
    "obl_cv",
    _oblate_radius,
    "oblate and radial, second kind",
    (2.5, 4),
    ("2.0", "-0.28733873 0.46966287"),
)
