"""The named Fourier transforms: they crop or pad to the requested length and call a primitive."""

from typing import Any

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gpugrad.ops.fft.complex import (
    ADJOINT_NORM,
    IGNORED,
    along_axes,
    checked_norm,
    from_end,
    lengths_and_axes,
    need_length,
    resized,
)
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


def _complex(xp, name, x, s, axes, norm):
    norm, pairs = checked_norm(name, norm), lengths_and_axes(name, x, s, axes)
    return along_axes(xp, name, x, pairs, norm=norm, inverse=name.startswith("i"))


def _complex_one(xp, name, x, s, axes, norm):
    """`_complex` along one axis, in 80 % of the time."""
    norm, axes = checked_norm(name, norm), from_end(name, x, axes)
    x = resized(xp, name, x, x.shape[axes[0]] if s is None else s[0], axes[0])
    return xp.fft_c2c(x, axes=axes, norm=norm, inverse=name.startswith("i"))


def _forward(xp, name, x, s, axes, norm):
    """Real array to half spectrum; the last axis first."""
    norm, pairs = checked_norm(name, norm), lengths_and_axes(name, x, s, axes)
    if not pairs:
        raise ShapeError(f"{name}: at least one axis is needed.")
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{name}: x is {x.dtype}, not real. Use gg.fft.fft and its variants, or gg.real(x)."
        )
    *others, last = pairs
    distinct = len({axis for _, axis in pairs}) == len(pairs)
    now = pairs if distinct else [last]
    for n, axis in now:
        x = resized(xp, name, x, n, axis)
    x = xp.fft_r2c(x, axes=tuple(axis for _, axis in now), norm=norm)
    return x if distinct else along_axes(xp, name, x, others, norm=norm)


def _backward(xp, name, x, s, axes, norm):
    """Half spectrum to real array; the last axis last."""
    norm, pairs = checked_norm(name, norm), lengths_and_axes(name, x, s, axes)
    if not pairs:
        raise ShapeError(f"{name}: at least one axis is needed.")
    *others, (n, last) = pairs
    if s is None or s[-1] is None:
        n = 2 * (x.shape[last] - 1)
    need_length(name, n)
    distinct = len({axis for _, axis in pairs}) == len(pairs)
    if not distinct:
        x, others = along_axes(xp, name, x, others[::-1], norm=norm, inverse=True), []
    for m, axis in others:
        x = resized(xp, name, x, m, axis)
    x = resized(xp, name, x, n // 2 + 1, last)
    return xp.fft_c2r(x, axes=(*(axis for _, axis in others), last), n=n, norm=norm)


def _hermitian(xp, name, x, s, axes, norm):
    """`hfft` is `irfft` of the conjugate with the other scale."""
    return _backward(xp, name, conjugate(xp, x), s, axes, ADJOINT_NORM[checked_norm(name, norm)])


def _inverse_hermitian(xp, name, x, s, axes, norm):
    return xp.conj(_forward(xp, name, x, s, axes, ADJOINT_NORM[checked_norm(name, norm)]))


# ---- samples and errors ------------------------------------------------------------------

_SAMPLES = {
    "one": shaped(
        [(5,)], ([(2, 3)], {"n": 5, "axis": 0}), ([(2, 4)], {"n": 3, "norm": "ortho"}),
        ([(2, 3)], {"axis": -2, "norm": "forward"}), [(0, 3)], [(1,)],
    ),
    "several": shaped(
        [(2, 3)], ([(2, 3)], {"s": (4, 2)}), ([(2, 3)], {"axes": (0,), "norm": "ortho"}),
        ([(2, 1, 3)], {"s": (3, 2), "axes": (-1, 0), "norm": "forward"}),
        ([(0, 2, 2)], {"axes": (1,)}),
    ),
    "two": shaped(
        [(2, 3)], ([(2, 3)], {"s": (3, 2), "norm": "ortho"}),
        ([(2, 1, 3)], {"axes": (0, 2), "norm": "forward"}),
    ),
    "half one": shaped(
        [(4,)], ([(2, 3)], {"n": 5, "axis": 0}), ([(2, 4)], {"n": 3, "norm": "ortho"}),
        ([(3, 2)], {"axis": -2, "norm": "forward"}), [(0, 3)], ([(1,)], {"n": 1}),
    ),
    "half several": shaped(
        [(2, 3)], ([(2, 3)], {"s": (3, 3)}), ([(3, 2)], {"axes": (0,), "norm": "ortho"}),
        ([(2, 1, 3)], {"s": (3, 2), "axes": (-1, 0), "norm": "forward"}),
        ([(0, 2, 2)], {"axes": (1,)}),
    ),
    "half two": shaped(
        [(2, 3)], ([(2, 3)], {"s": (3, 3), "norm": "ortho"}),
        ([(2, 1, 3)], {"axes": (0, 2), "norm": "forward"}),
    ),
}  # fmt: skip
_ONE_ERRORS: list[Any] = [
    ([np.ones(3)], {"n": -1}, ShapeError, "n=-1 must be"),
    ([np.ones(3)], {"axis": 1}, AxisError, "axis 1"),
    ([np.ones(3)], {"n": 0}, ShapeError, "n=0"),
    ([np.ones(3)], {"norm": "x"}, ArgumentError, "no norm 'x'"),
]
_SEVERAL_ERRORS: list[Any] = [
    ([np.ones((3, 3))], {"axes": (0, 2)}, AxisError, "axis 2"),
    ([np.ones((3, 3))], {"s": (2,), "axes": (0, 1)}, ShapeError, "same length"),
    ([np.ones((3, 3))], {"s": (2, 0), "axes": (0, 1)}, ShapeError, "n=0"),
    ([np.ones((3, 3))], {"norm": "x"}, ArgumentError, "no norm 'x'"),
]
_REAL_ONE: list[Any] = [*_ONE_ERRORS, ([np.ones(3) + 1j], {}, DTypeError, "not real")]
_REAL_SEVERAL: list[Any] = [*_SEVERAL_ERRORS, ([np.ones((3, 3)) + 1j], {}, DTypeError, "not real")]

# ---- along one axis ----------------------------------------------------------------------


_CUT = "number of points: `x` is cut, or padded with zeros at the end; its length if None."
_GROWN = """length of the result; 2 (m - 1) for `x` of length m if None. `x` is cut, or padded
            with zeros, to n // 2 + 1 points."""
_IGNORED = """ Imaginary parts of its first, and for even `n` of its
            last point, are ignored, and get no gradient."""


def _along_one(name, run, what, x, n, returns, example, **record):
    """Declare a transform along one axis."""

    def transform(
        xp, x, /, n=None, axis=-1, norm="backward", overwrite_x=False, workers=None, *, plan=None
    ):
        if n is not None:
            need_length(name, n)  # in `s` -1 would be the length of `x`
        return run(xp, name, x, None if n is None else (n,), (axis,), norm)

    scales = ("(no scale here)", "(divided by sqrt(n))", "(divided by n)")
    if name.startswith("i"):
        scales = ("(divided by n)", "(divided by sqrt(n))", "(no scale here)")
    transform.__doc__ = f"""{what}

    Args:
        x: {x}
        n: {n}
        norm: ``"backward"`` {scales[0]}, ``"ortho"`` {scales[1]} or
            ``"forward"`` {scales[2]}; None is ``"backward"``.
        {IGNORED}

    Returns:
        {returns} along the axis, of the precision of `x`.

    >>> print(gg.fft.{name}({example[0]}))
    {example[1]}
    """
    record = {"kinds": "fc", "errors": _ONE_ERRORS, "native_half": "wide"} | record
    return op(name=name, ref=f"scipy.fft.{name}", **record)(transform)


_ANY = {
    "x": "array of at least one axis; real or complex.",
    "n": _CUT,
    "returns": "Complex Tensor with `n` points",
    "samples": _SAMPLES["one"],
}
_REAL = {
    "x": "real array of at least one axis.",
    "n": _CUT,
    "returns": "Complex Tensor, n // 2 + 1 long",
    "kinds": "f",
    "samples": _SAMPLES["one"],
    "errors": _REAL_ONE,
}
_HALF = {"n": _GROWN, "returns": "Real Tensor, `n` long", "samples": _SAMPLES["half one"]}

fft = _along_one(
    "fft",
    _complex_one,
    "Discrete Fourier transform along an axis: sum over j of x_j exp(-2 pi i j k / n).",
    example=("[1.0, 2.0, 3.0, 4.0]", "[10.+0.j -2.+2.j -2.+0.j -2.-2.j]"),
    **_ANY,
)
ifft = _along_one(
    "ifft",
    _complex_one,
    "Inverse discrete Fourier transform along an axis.",
    example=("[3.0, -1.0]", "[1.+0.j 2.+0.j]"),
    **_ANY,
)
rfft = _along_one(
    "rfft",
    _forward,
    "Discrete Fourier transform of a real array along an axis: the first half of `fft`.",
    example=("[1.0, 2.0, 3.0, 4.0]", "[10.+0.j -2.+2.j -2.+0.j]"),
    **_REAL,
)
irfft = _along_one(
    "irfft",
    _backward,
    "Real array from the first half of its spectrum; the inverse of `rfft`.",
    x="array of at least one axis." + _IGNORED,
    example=("[10.0, -2.0 + 2.0j, -2.0]", "[1. 2. 3. 4.]"),
    **_HALF,
)
hfft = _along_one(
    "hfft",
    _hermitian,
    "Fourier transform, which is real, of an array that is symmetric: x_-k = conj(x_k).",
    x="array of at least one axis: the first half of the symmetric one.",
    example=("[1.0, 2.0, 1.0]", "[ 6.  0. -2.  0.]"),
    **_HALF,
)
ihfft = _along_one(
    "ihfft",
    _inverse_hermitian,
    "First half of the symmetric array whose transform is `x`; the inverse of `hfft`.",
    example=("[6.0, 0.0, -2.0, 0.0]", "[1.-0.j 2.-0.j 1.-0.j]"),
    **_REAL,
)

# ---- along several axes ------------------------------------------------------------------


def _along_several(name, run, what, last=None, *, x, s, axes, returns, example, half="", **record):
    """Declare a transform along several axes; along two if `last` is the default of `axes`."""

    def transform(
        xp, x, /, s=None, axes=last, norm="backward", overwrite_x=False, workers=None, *, plan=None
    ):
        return run(xp, name, x, s, axes, norm)

    one = name[:-1]
    which = "several axes" if last is None else f"two axes: `{one}n` of the last two"
    choice = "tuple of ints; the last len(s) axes if None, or all without `s`"
    transform.__doc__ = f"""{what} along {which}.

    Args:
        x: {x}
        s: {s}
        axes: {choice if last is None else "pair of ints"}{axes}.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``, as for `{one}`.
        {IGNORED}

    Returns:
        {returns}, of the precision of `x`.

    >>> print(gg.fft.{name}({example[0]}))
    {example[1]}
    """
    samples = _SAMPLES[half + ("several" if last is None else "two")]
    record = {"kinds": "fc", "errors": _SEVERAL_ERRORS, "native_half": "wide"} | record
    return op(name=name, ref=f"scipy.fft.{name}", samples=samples, **record)(transform)


_POINTS = """number of points along each of the axes (-1 or None: the length of `x`); `x` is
            cut, or padded with zeros at the end."""
_LENGTHS = """length of the result along each of the axes (-1: that of `x`); for the last one
            2 (m - 1) if None."""
_SPECTRUM = ("[[1.0, 2.0], [3.0, 4.0]]", "[[10.+0.j -2.+0.j]\n     [-4.+0.j  0.+0.j]]")
_INVERSE = ("[[10.0, -2.0], [-4.0, 0.0]]", "[[1.+0.j 2.+0.j]\n     [3.+0.j 4.+0.j]]")
_ANY_N: dict[str, Any] = {
    "x": "array, real or complex.",
    "s": _POINTS,
    "axes": "",
    "returns": "Complex Tensor",
}
_REAL_N: dict[str, Any] = {
    "what": "Discrete Fourier transform of a real array",
    "x": "real array.",
    "s": _POINTS,
    "axes": "; the last one is halved",
    "returns": "Complex Tensor, n // 2 + 1 long along the last of the axes",
    "example": _SPECTRUM,
    "kinds": "f",
    "errors": _REAL_SEVERAL,
}
_HALF_N: dict[str, Any] = {
    "what": "Inverse of `rfftn`: real array from its half spectrum",
    "x": "array; imaginary parts that the spectrum of a real array lacks are ignored.",
    "s": _LENGTHS,
    "axes": "; the last one is halved",
    "returns": "Real Tensor",
    "example": (_INVERSE[0], "[[1. 2.]\n     [3. 4.]]"),
    "half": "half ",
}
_TWO = (-2, -1)
_FORWARD, _BACKWARD = "Discrete Fourier transform", "Inverse discrete Fourier transform"

fftn = _along_several("fftn", _complex, _FORWARD, example=_SPECTRUM, **_ANY_N)
ifftn = _along_several("ifftn", _complex, _BACKWARD, example=_INVERSE, **_ANY_N)
fft2 = _along_several("fft2", _complex, _FORWARD, _TWO, example=_SPECTRUM, **_ANY_N)
ifft2 = _along_several("ifft2", _complex, _BACKWARD, _TWO, example=_INVERSE, **_ANY_N)
rfftn = _along_several("rfftn", _forward, **_REAL_N)
irfftn = _along_several("irfftn", _backward, **_HALF_N)
rfft2 = _along_several("rfft2", _forward, last=_TWO, **_REAL_N)
irfft2 = _along_several("irfft2", _backward, last=_TWO, **_HALF_N)
_HERMITIAN_N = _HALF_N | {
    "what": "Fourier transform, which is real, of an array whose half is `x`, as for `hfft`,",
    "example": (_INVERSE[0], "[[ 4.  8.]\n     [12. 16.]]"),
}
_INVERSE_HERMITIAN_N = _REAL_N | {
    "what": "Half of the symmetric array whose transform is `x`, the inverse of `hfftn`,",
    "example": (_SPECTRUM[0], "[[ 2.5-0.j -0.5-0.j]\n     [-1. -0.j  0. -0.j]]"),
}
hfftn = _along_several("hfftn", _hermitian, **_HERMITIAN_N)
ihfftn = _along_several("ihfftn", _inverse_hermitian, **_INVERSE_HERMITIAN_N)
hfft2 = _along_several("hfft2", _hermitian, last=_TWO, **_HERMITIAN_N)
ihfft2 = _along_several("ihfft2", _inverse_hermitian, last=_TWO, **_INVERSE_HERMITIAN_N)
