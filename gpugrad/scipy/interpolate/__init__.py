"""`scipy.interpolate` on Tensors: SciPy's names, signatures, defaults and errors.

The formulas are SciPy's own, read on Tensors: see `gpugrad.scipy.reading`. Where SciPy compiles or
loops, gathers, polynomials and banded systems stand instead. So interpolators differentiate by the
points where they are evaluated, by the values and by the knots. Names without a derivative here, as
`UnivariateSpline`, are SciPy's and raise under a tape.

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
from gpugrad.scipy.interpolate import fitpack, fitted, grids, piecewise, scattered, splines
from gpugrad.scipy.interpolate.edits import EDITS
from gpugrad.scipy.namespaces import MODULES, NUMPY, Names
from gpugrad.scipy.reading import Reader, made_once
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
    """`splrep`: the spline through all points has gradients, a smoothed one has none."""
    bound = inspect.signature(_scipys.splrep).bind(x, y, *args, **keywords)
    k = bound.arguments.pop("k", 3)
    options = [v for name, v in bound.arguments.items() if name not in ("x", "y", "quiet")]
    smoothed = any(v is not None and np.any(np.asarray(v)) for v in options)
    if smoothed or not 1 <= k <= 5 or len(x) <= k:
        return on_values(_scipys.splrep)(x, y, *args, **keywords)
    made = _read("_bsplines").make_interp_spline(x, y, k)
    return made.t, NUMPY.concatenate([made.c, NUMPY.zeros(k + 1, dtype=made.c.dtype)]), k


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
        "squared_norms": grids.squared_norms,
        "barycentric_weights": grids.barycentric_weights,
        "interpolation_coefficients": splines.interpolation_coefficients,
        "least_squares": splines.least_squares,
        "periodic_coefficients": splines.periodic_coefficients,
        "on_host": _on_host,
        "plain_linear": grids.plain_linear,
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
        if args and type(args[0]).__module__[:5] == "scipy":
            held = getattr(args[0], "_delegate_to", args[0])  # since SciPy 1.18
            own = (*vars(held).values(), getattr(held, "c", None))
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


def _values_class(cls: type) -> type:
    """A class of SciPy's that gets values and returns Tensors; raises if that cuts a gradient."""
    public = [name for name in dir(cls) if name[:1] != "_" or name in ("__init__", "__call__")]
    methods = {
        name: on_values(method)
        for name in public
        if callable(method := inspect.getattr_static(cls, name))
        and not isinstance(method, (staticmethod, classmethod))
        and method is not object.__init__
    }
    own = {"__doc__": cls.__doc__, "__module__": __name__, "passes_through": True}
    return type(cls.__name__, (cls,), {**methods, **own})


@functools.cache
def _made() -> dict[str, Any]:
    """Functions and classes that stand for those that FITPACK and Qhull compute."""
    read = _read("_bsplines")
    make = read.make_interp_spline
    home = Names("values", {n: _values_class(getattr(_scipys, n)) for n in _FITTED})
    make_splrep, make_splprep, splprep = fitpack.curve(make)
    return {
        **fitted.classes(make, read.make_lsq_spline, _read("_fitpack_impl"), home),
        "LinearNDInterpolator": scattered.LinearNDInterpolator,
        "NearestNDInterpolator": scattered.NearestNDInterpolator,
        "bisplev": fitpack.bisplev,
        "griddata": scattered.griddata_with(_read("_interpolate").interp1d, _scipys),
        "insert": fitpack.insert,
        "make_smoothing_spline": fitpack.smoothing_spline(make),
        "make_splprep": make_splprep,
        "make_splrep": make_splrep,
        "spalde": fitpack.spalde,
        "splprep": splprep,
        "sproot": fitpack.sproot,
    }


_OF_POINTS = ("make_interp_spline", "make_lsq_spline", "make_smoothing_spline")
_FITTED = ["InterpolatedUnivariateSpline", "LSQUnivariateSpline", "RectBivariateSpline"]
_FITTED.append("UnivariateSpline")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
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
        value = getattr(_scipys, name)
        value = _values_class(value) if isinstance(value, type) else on_values(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
