"""Trigonometric functions of degrees."""

import math
from typing import Any

from gpugrad.ops.special.common import scipy_op

_DEGREE = math.pi / 180
_UFUNC: dict[str, Any] = {"captures": True}

sindg = scipy_op("sindg(x)", lambda xp, x: _DEGREE * xp.cosdg(x), domain=(-99, 99), **_UFUNC)(
    doc="Sine of degrees, exact at multiples of 90.", example=("[0.0, 30.0]", "[0.  0.5]")
)
cosdg = scipy_op("cosdg(x)", lambda xp, x: -_DEGREE * xp.sindg(x), domain=(-99, 99), **_UFUNC)(
    doc="Cosine of degrees, exact at multiples of 90.", example=("[0.0, 60.0]", "[1.  0.5]")
)
tandg = scipy_op("tandg(x)", lambda xp, out: _DEGREE * (1 + out * out), domain=(-70, 70), **_UFUNC)(
    doc="Tangent of degrees.", example=("[0.0, 45.0]", "[0. 1.]")
)
cotdg = scipy_op(
    "cotdg(x)",
    lambda xp, out: -_DEGREE * (1 + out * out),
    domain=(20, 160),
    singular=True,
    **_UFUNC,
)(doc="Cotangent of degrees.", example=("[45.0, 90.0]", "[1. 0.]"))
radian = scipy_op("radian(d, m, s)", *(_DEGREE / 60**k for k in range(3)), **_UFUNC)(
    doc="Radians of degrees, minutes and seconds.", example=("180.0, 0.0, 0.0", "3.1415927")
)
