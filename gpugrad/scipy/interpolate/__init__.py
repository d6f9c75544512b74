"""`scipy.interpolate` on Tensors: SciPy's names, signatures, defaults and errors.

The formulas are SciPy's own, read on Tensors: see `gpugrad.scipy.reading`. Where SciPy compiles or
loops, gathers, polynomials and banded systems stand instead. So interpolators differentiate by the
points where they are evaluated, by the values and by the knots.

>>> spline = gg.scipy.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
>>> print(gg.grad(lambda x: spline(x))(1.5))
3.0
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import numpy as np
from scipy import interpolate as _scipys
from scipy._lib import _util
from scipy.interpolate import _interpolate

from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import device
from gpugrad.core.tensor import Tensor
from gpugrad.scipy import sparse
from gpugrad.scipy.calling import on_values, plain_values
from gpugrad.scipy.interpolate import (
    curves,
    fitpack,
    fitted,
    grids,
    piecewise,
    scattered,
    smoothed,
    splines,
)
from gpugrad.scipy.interpolate.edits import EDITS
from gpugrad.scipy.namespaces import MODULES, NUMPY, Names
from gpugrad.scipy.reading import Reader, made_once
from gpugrad.scipy.signatures import lazy
from gpugrad.scipy.spatial import distance

_HERE = "scipy.interpolate."
_READ = {
    "_cubic": "Akima1DInterpolator CubicHermiteSpline CubicSpline PchipInterpolator "
    "pchip_interpolate",
    "_polyint": "BarycentricInterpolator KroghInterpolator approximate_taylor_polynomial "
    "barycentric_interpolate krogh_interpolate",
    "_bsplines": "BSpline make_interp_spline make_lsq_spline",
    "_ndbspline": "NdBSpline",
    "_rgi": "RegularGridInterpolator interpn",
    "_rbfinterp": "RBFInterpolator",
    "_fitpack_py": "splantider splder splev splint splrep",
    "_interpolate": "BPoly NdPPoly PPoly interp1d lagrange",
    "_pade": "pade",
    "_rbf": "Rbf",
    "_bary_rational": "AAA FloaterHormannInterpolator",
}
_MODULES = {name: module for module, names in _READ.items() for name in names.split()}

__all__ = sorted(n for n in _scipys.__all__ if n != "test")


def _on_host(x: Tensor) -> np.ndarray:
    """Values that only choose indices."""
    return TENSOR.stop_gradient(x).numpy()


def _validated(x: Any, **options: Any) -> Tensor:
    """`_asarray_validated` of an interpolator's argument."""
    x = NUMPY.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def _splrep(x: Any, y: Any, *args: Any, **keywords: Any) -> Any:
    """`splrep`; of values if nothing follows the arguments, or an option is only FITPACK's."""
    given = inspect.signature(_scipys.splrep).bind(x, y, *args, **keywords).arguments
    k, w, s = given.get("k", 3), given.get("w"), given.get("s")
    options = [v for name, v in given.items() if name not in ("x", "y", "w", "s", "k", "quiet")]
    special = any(v is not None and np.any(np.asarray(v)) for v in options)
    if special or not 1 <= k <= 5 or len(x) <= k or plain_values(x, y, w, s) is not None:
        return on_values(_scipys.splrep)(x, y, *args, **keywords)
    if w is None and not s:
        made = _read("_bsplines").make_interp_spline(x, y, k)
        t, c = made.t, made.c
    else:
        values = map(smoothed.host, (x, y, w))
        tck, fp, *_ = _scipys.splrep(*values, k=k, s=s, full_output=True, quiet=True)
        t, c, _ = smoothed.curve(*smoothed.prepared(x, y, w), tck, fp)
    return t, NUMPY.concatenate([c, NUMPY.zeros(k + 1, dtype=c.dtype)]), k


def _splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    if full_output:
        return on_values(_scipys.splint)(a, b, tck, full_output)
    return splines.splint(a, b, tck, _read("_fitpack_impl").splantider)


@made_once
def _reader() -> Reader:
    numbers = {"_asarray_validated": _validated, "float_factorial": _util.float_factorial}
    compiled = {"evaluate_spline": splines.evaluate_spline, "data_matrix": splines.data_matrix}
    given = {
        "scipy._lib._util": Names("_util", numbers, _util),
        "scipy.linalg": Names(
            "linalg", {"solve_banded": splines.solve_banded}, MODULES["scipy.linalg"]
        ),
        "scipy.sparse": sparse,
        "scipy.interpolate._dierckx": Names("_dierckx", compiled),
        "scipy.interpolate._interpnd": Names(
            "_interpnd", {"_ndim_coords_from_arrays": grids.coordinates}
        ),
        "scipy.interpolate._rgi_cython": Names(
            "_rgi", {"find_indices": grids.find_indices, "evaluate_linear_2d": None}
        ),
        "scipy.interpolate._fitpack2": _scipys,
        "scipy.spatial.distance": distance,
        "scipy.interpolate._rbfinterp_np": Names("_rbf", {}),
    }
    delegate = "_" * hasattr(_interpolate, "_PPoly")  # since SciPy 1.18, PPoly calls _PPoly
    replaced: dict[str, dict[str, Any]] = {
        "scipy.interpolate._interpolate": {
            f"{delegate}PPoly._evaluate": piecewise.evaluate,
            f"{delegate}BPoly._evaluate": piecewise.evaluate_bernstein,
            "PPoly.solve": piecewise.solve,
            "PPoly.integrate": piecewise.differences,
            "BPoly.integrate": piecewise.differences,
        },
        "scipy.interpolate._ndbspline": {
            "NdBSpline.__call__": splines.evaluate_nd,
            "NdBSpline.design_matrix": staticmethod(on_values(_scipys.NdBSpline.design_matrix)),
        },
        "scipy.interpolate._polyint": {"BarycentricInterpolator._evaluate": grids.barycentric},
        "scipy.interpolate._fitpack_impl": {"splev": splines.splev, "splint": _splint},
        "scipy.interpolate._fitpack_py": {"splrep": _splrep},
        "scipy.interpolate._rbfinterp_xp": {"NAME_TO_FUNC": grids.RADIAL},
        "scipy.interpolate._rbfinterp": {"_get_backend": lambda xp: _read("_rbfinterp_xp")},
    }
    helpers = {
        "continuous": piecewise.continuous,
        "evaluate_nd": piecewise.evaluate_nd,
        "fold": grids.fold,
        "squared_distances": grids.squared_distances,
        "divided_differences": grids.divided_differences,
        "barycentric_weights": grids.barycentric_weights,
        "interpolation_coefficients": splines.interpolation_coefficients,
        "least_squares": splines.least_squares,
        "periodic_coefficients": splines.periodic_coefficients,
        "on_host": _on_host,
        "linear": grids.linear,
        "splinef2d_points": on_values(np.transpose),
    }
    return Reader("scipy.interpolate", given, EDITS, replaced, **helpers)


def _read(module: str) -> Any:
    return _reader().read(_HERE + module)


def _plain_first(function: Any, scipys: Any) -> Any:
    """A function that makes a BSpline: SciPy's own for arrays that nothing follows."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        plain = plain_values(*args, *keywords.values())
        if plain is None:
            return function(*args, **keywords)
        named = dict(zip(keywords, plain[len(args) :], strict=True))
        made = scipys(*plain[: len(args)], **named)
        t, c = NUMPY.asarray(made.t), NUMPY.asarray(made.c)
        cls = _read("_bsplines").BSpline
        return cls.construct_fast(t, c, made.k, extrapolate=made.extrapolate, axis=made.axis)

    return call


def _with_design_matrix(cls: Any) -> Any:
    """BSpline, whose `design_matrix` is SciPy's own for arrays that nothing follows."""
    general = cls.design_matrix

    @functools.wraps(general)
    def design_matrix(x: Any, t: Any, k: int, extrapolate: Any = False) -> Any:
        if (plain := plain_values(x, t)) is None:
            return general(x, t, k, extrapolate)
        return sparse.csr_array(_scipys.BSpline.design_matrix(*plain, k, extrapolate))

    cls.design_matrix = staticmethod(design_matrix)
    return cls


def _on_device(function: Any) -> Any:
    """A function or method that creates its constants on the device of its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        own: Any = ()
        if args and type(args[0]).__module__.startswith(("scipy", "gpugrad.scipy.interpolate")):
            held = getattr(args[0], "_delegate_to", args[0])  # since SciPy 1.18
            own = (*vars(held).values(), getattr(held, "c", None), *getattr(held, "_tck", ()))
        for x in (*args, *keywords.values(), *own):
            if isinstance(x, Tensor):
                with device(x.device):
                    return function(*args, **keywords)
        return function(*args, **keywords)

    return call


def _class(cls: type) -> type:
    """A class of SciPy's, as it was read, whose methods work on the device of their arguments."""
    for owner in cls.__mro__[-2::-1]:
        for name, value in vars(owner).copy().items():
            public = name in ("__init__", "__call__") or name[:1] != "_"
            if public and type(value) is types.FunctionType and not hasattr(value, "__wrapped__"):
                setattr(owner, name, _on_device(value))
    return cls


@functools.cache
def _made() -> dict[str, Any]:
    """Functions and classes that stand for those that FITPACK and Qhull compute."""
    read = _read("_bsplines")
    make = read.make_interp_spline
    return {
        **curves.curve(make, read.BSpline),
        **fitted.classes(make, read.make_lsq_spline, _read("_fitpack_impl")),
        "CloughTocher2DInterpolator": scattered.CloughTocher2DInterpolator,
        "LinearNDInterpolator": scattered.LinearNDInterpolator,
        "NearestNDInterpolator": scattered.NearestNDInterpolator,
        "bisplev": fitpack.bisplev,
        "griddata": scattered.griddata_with(_read("_interpolate").interp1d),
        "insert": fitpack.insert,
        "make_smoothing_spline": fitpack.smoothing_spline(make),
        "spalde": fitpack.spalde,
        "sproot": fitpack.sproot,
    }


_OF_POINTS = ("make_interp_spline", "make_lsq_spline", "make_smoothing_spline")


def _found(name: str) -> Any:
    if name in _MODULES:
        value = getattr(_read(_MODULES[name]), name)
        value = _plain_first(value, getattr(_scipys, name)) if name in _OF_POINTS else value
        value = _with_design_matrix(value) if name == "BSpline" else value
        value = _class(value) if isinstance(value, type) else _on_device(value)
    elif name in _made():
        value = _made()[name]
        value = _plain_first(value, getattr(_scipys, name)) if name in _OF_POINTS else value
        value = _class(value) if isinstance(value, type) else _on_device(value)
    else:
        value = on_values(getattr(_scipys, name))
    return value


__getattr__, __dir__ = lazy(globals(), _found)
