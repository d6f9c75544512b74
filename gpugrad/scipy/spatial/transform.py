"""`scipy.spatial.transform` on Tensors: rotations, rigid transforms and their interpolation.

The formulas are SciPy's own for array libraries, read on Tensors: see `gpugrad.scipy.reading`. A
Rotation holds a Tensor of quaternions of shape (..., 4), in the dtype that it was made of. Its
derivatives by rotation vectors are exact at the identity, too.

>>> rotation = gg.scipy.spatial.transform.Rotation
>>> turned = rotation.from_euler("z", [90.0], degrees=True).apply([1.0, 0.0, 0.0])
>>> print(turned.round(6) + 0.0)
[0. 1. 0.]
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.spatial import transform as _transform
from scipy.spatial.transform import _rotation_cy

from gpugrad.autodiff.batched import Batched
from gpugrad.core.tensor import Tensor
from gpugrad.scipy.calling import new_tensor, on_values, plain_values
from gpugrad.scipy.namespaces import NUMPY, Names, vendored
from gpugrad.scipy.reading import Reader, made_once
from gpugrad.trace.array import Traced

__all__ = sorted(_transform.__all__)


def is_lazy(x: Any) -> bool:
    """Whether values are not known: in a trace and in `vmap`."""
    return isinstance(x, Tensor) and type(x._data) in (Batched, Traced)


class _At:
    """`array_api_extra.at`: an array with some other elements."""

    def __init__(self, x: Any, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.x, index)

    def set(self, value: Any, **options: Any) -> Any:
        x = NUMPY.array(self.x)
        x[self.index] = value
        return x

    def multiply(self, value: Any, **options: Any) -> Any:
        return self.set(self.x[self.index] * value)


def _at_least(x: Any, *, ndim: int, xp: Any = None) -> Any:
    return NUMPY.reshape(x, (1,) * (ndim - x.ndim) + x.shape) if x.ndim < ndim else x


_NO_COMPILED = {
    "backend_registry = {array_namespace(np.empty(0)): cython_backend}": "backend_registry = {}"
}
_FLOAT = np.dtype(float)
_COMPILED = """from_quat from_matrix from_rotvec from_mrp as_matrix as_mrp
apply inv magnitude"""
"""SciPy's compiled functions that are faster than its formulas; others take ten times as long."""


def _plain_first(formula: Any) -> Any:
    """A formula, which is SciPy's compiled function for float64 arrays that nothing follows."""
    compiled = getattr(_rotation_cy, formula.__name__)

    @functools.wraps(formula)
    def call(*args: Any, **options: Any) -> Any:
        plain = plain_values(*args, *options.values())
        if plain is None or any(getattr(x, "dtype", _FLOAT) != _FLOAT for x in plain):
            return formula(*args, **options)
        # it takes no array that is read-only, as one that was broadcast
        plain = [x.copy() if type(x) is np.ndarray and not x.flags.writeable else x for x in plain]
        named = dict(zip(options, plain[len(args) :], strict=True))
        if "copy" in named:  # or it would normalize a Tensor in place
            named["copy"] = True
        return new_tensor(compiled(*plain[: len(args)], **named))

    return call


def _select_backend(xp: Any, cython_compatible: bool) -> Any:
    """SciPy's function of that name."""
    formulas = _reader().read("scipy.spatial.transform._rotation_xp")
    return _with_compiled(formulas) if cython_compatible else formulas


@functools.cache
def _with_compiled(formulas: Any) -> Any:
    return Names(
        "rotation", {n: _plain_first(getattr(formulas, n)) for n in _COMPILED.split()}, formulas
    )


def _solve_banded(shape: tuple[int, int], ab: Tensor, b: Tensor) -> Tensor:
    """`scipy.linalg.solve_banded`, for the few rotations of a spline."""
    n = ab.shape[1]
    i, j = np.indices((n, n))
    k = shape[1] + i - j
    inside = (k >= 0) & (k < ab.shape[0])
    matrix = NUMPY.where(NUMPY.asarray(inside), ab[np.where(inside, k, 0), j], 0.0)
    return NUMPY.linalg.solve(matrix, b)


class _Polynomials:
    """`scipy.interpolate.PPoly` of cubic polynomials."""

    def __init__(self, c: Tensor, x: Tensor) -> None:
        self.c, self.x = c, x

    def __call__(self, x: Tensor, nu: int = 0) -> Tensor:
        at = NUMPY.clip(NUMPY.searchsorted(self.x, x, side="right") - 1, 0, self.c.shape[1] - 1)
        t = (x - self.x[at])[:, None]
        c = [self.c[k][at] for k in range(4)]
        for _ in range(nu):
            c = [k * c[len(c) - 1 - k] for k in range(len(c) - 1, 0, -1)]
        return functools.reduce(lambda total, c: total * t + c, c)


_IDENTITY = "xp.asarray([[0.0, 0.0, 0.0, 1.0]], dtype=quat.dtype, device=xp_device(quat))"
EDITS: dict[str, dict[str, Any]] = {
    "scipy.spatial.transform._rotation": _NO_COMPILED,
    "scipy.spatial.transform._rigid_transform": {
        **_NO_COMPILED,
        "from scipy.spatial.transform import Rotation\n": (
            "from scipy.spatial.transform._rotation import Rotation\n"
        ),
    },
    "scipy.spatial.transform._rotation_xp": {
        "reduce": {
            # ones are no rotation: SciPy 1.17 reduces right in its compiled code alone
            "left = xp.ones_like(quat)": f"left = {_IDENTITY}",
            "right = xp.ones_like(quat)": f"right = {_IDENTITY}",
        },
        "from_rotvec": {
            # functions of the square of the angle, whose second derivatives are exact at 0
            """    angle = xp_vector_norm(rotvec, axis=-1, keepdims=True, xp=xp)
    small_angle = angle <= 1e-3
    angle2 = angle**2
    small_scale = 0.5 - angle2 / 48 + angle2**2 / 3840
""": """    angle2 = xp.sum(rotvec * rotvec, axis=-1, keepdims=True)
    small_angle = angle2 <= 1e-6
    angle = xp.sqrt(xp.where(small_angle, 1.0, angle2))
    small_scale = 0.5 - angle2 / 48 + angle2**2 / 3840
    cos = xp.where(small_angle, 1 - angle2 / 8 + angle2**2 / 384, xp.cos(angle / 2))
""",
            """    div_angle = angle + xp.asarray(small_angle, dtype=angle.dtype)
    large_scale = xp.sin(angle / 2) / div_angle
""": "    large_scale = xp.sin(angle / 2) / angle\n",
            "quat = xp.concat([rotvec * scale, xp.cos(angle / 2)], axis=-1)": (
                "quat = xp.concat([rotvec * scale, cos], axis=-1)"
            ),
        },
        "as_rotvec": {
            """    ax_norm = xp_vector_norm(quat[..., :3], axis=-1, keepdims=True, xp=xp)
    angle = 2 * xp.atan2(ax_norm, quat[..., 3][..., None])
    small_angle = angle <= 1e-3
    angle2 = angle**2
    small_scale = 2 + angle2 / 12 + 7 * angle2**2 / 2880
""": """    sin2 = xp.sum(quat[..., :3] ** 2, axis=-1, keepdims=True)
    small_angle = sin2 <= 2.5e-7
    small_scale = 2 + sin2 / 3 + 3 * sin2**2 / 20
    sin = xp.sqrt(xp.where(small_angle, 1.0, sin2))
""",
            """    div_sin = xp.sin(angle / 2.0) + xp.asarray(small_angle, dtype=angle.dtype)
    large_scale = angle / div_sin
""": "    large_scale = 2 * xp.atan2(sin, quat[..., 3][..., None]) / sin\n",
        },
    },
}


@made_once
def _reader() -> Reader:
    extra = vendored("array_api_extra")
    constants = {name: on_values(getattr(_rotation_cy, name)) for name in ("identity", "random")}
    package = "scipy.spatial.transform"
    names = {"at": _At, "atleast_nd": _at_least}
    reader = Reader(
        package,
        {
            f"{package}._rotation_cy": Names("rotation_cy", constants),
            f"{package}._rigid_transform_cy": Names("rigid_transform_cy", {}),
            extra.__name__: Names("extra", names, extra),
            "scipy.linalg": Names("linalg", {"solve_banded": _solve_banded}),
            "scipy.interpolate": Names("interpolate", {"PPoly": _Polynomials}),
        },
        EDITS,
        {f"{package}._rotation": {"select_backend": _select_backend}},
    )
    helpers = reader.read("scipy._lib._array_api")
    helpers.__dict__.update(is_lazy_array=is_lazy)
    return reader


def _on_device(theirs: Any) -> Any:
    """The spline of SciPy's, which creates its arrays on the device of the rotations."""

    class RotationSpline(theirs):  # type: ignore[misc]  # its class is made when it is asked for
        __doc__ = theirs.__doc__

        def __init__(self, times: Any, rotations: Any) -> None:
            with rotations.as_quat().device:
                super().__init__(times, rotations)

        def __call__(self, times: Any, order: int = 0) -> Any:
            with self.rotations.as_quat().device:
                return super().__call__(times, order)

    return RotationSpline


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = {"RotationSpline": "_rotation_spline", "RigidTransform": "_rigid_transform"}
    module = _reader().read(f"scipy.spatial.transform.{home.get(name, '_rotation')}")
    value = getattr(module, name)
    globals()[name] = value = _on_device(value) if name == "RotationSpline" else value
    value.__module__ = __name__  # where pickle finds it
    return value


def __dir__() -> list[str]:
    return __all__
