# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from typing import Any
from gpugrad.scipy.interpolate import fitpack as fitpack
from gpugrad.scipy.interpolate.fitted import (
    InterpolatedUnivariateSpline as InterpolatedUnivariateSpline,
)
from gpugrad.scipy.interpolate.fitted import LSQUnivariateSpline as LSQUnivariateSpline
from gpugrad.scipy.interpolate.fitted import UnivariateSpline as UnivariateSpline
from gpugrad.scipy.interpolate.scattered import (
    CloughTocher2DInterpolator as CloughTocher2DInterpolator,
)
from gpugrad.scipy.interpolate.scattered import LinearNDInterpolator as LinearNDInterpolator
from gpugrad.scipy.interpolate.scattered import NearestNDInterpolator as NearestNDInterpolator
from gpugrad.scipy.interpolate.surfaces import BivariateSpline as BivariateSpline
from gpugrad.scipy.interpolate.surfaces import LSQBivariateSpline as LSQBivariateSpline
from gpugrad.scipy.interpolate.surfaces import LSQSphereBivariateSpline as LSQSphereBivariateSpline
from gpugrad.scipy.interpolate.surfaces import RectBivariateSpline as RectBivariateSpline
from gpugrad.scipy.interpolate.surfaces import (
    RectSphereBivariateSpline as RectSphereBivariateSpline,
)
from gpugrad.scipy.interpolate.surfaces import SmoothBivariateSpline as SmoothBivariateSpline
from gpugrad.scipy.interpolate.surfaces import (
    SmoothSphereBivariateSpline as SmoothSphereBivariateSpline,
)
from scipy.interpolate import fitpack2 as fitpack2
from scipy.interpolate import interpnd as interpnd
from scipy.interpolate import interpolate as interpolate
from scipy.interpolate import ndgriddata as ndgriddata
from scipy.interpolate import polyint as polyint
from scipy.interpolate import rbf as rbf
from scipy.interpolate._interpolate import interp2d as interp2d

__all__: list[str]

class AAA:
    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        rtol: Any = None,
        max_terms: Any = 100,
        clean_up: bool = True,
        clean_up_tol: Any = 1e-13,
    ) -> None:
        """AAA real or complex rational approximation."""

    def __getattr__(self, name: str, /) -> Any: ...

class Akima1DInterpolator:
    def __init__(
        self, x: Any, y: Any, axis: Any = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        """Akima "visually pleasing" interpolator (C1 smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class BPoly:
    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: Any = 0) -> None:
        """Piecewise polynomial in the Bernstein basis."""

    def __getattr__(self, name: str, /) -> Any: ...

class BSpline:
    def __init__(self, t: Any, c: Any, k: Any, extrapolate: bool = True, axis: Any = 0) -> None:
        """Univariate spline in the B-spline basis."""

    def __getattr__(self, name: str, /) -> Any: ...

class BarycentricInterpolator:
    def __init__(
        self,
        xi: Any,
        yi: Any = None,
        axis: Any = 0,
        *,
        wi: Any = None,
        rng: Any = None,
        random_state: Any = None,
    ) -> None:
        """Barycentric (Lagrange with improved stability) interpolator (C∞ smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class CubicHermiteSpline:
    def __init__(self, x: Any, y: Any, dydx: Any, axis: Any = 0, extrapolate: Any = None) -> None:
        """Piecewise cubic interpolator to fit values and first derivatives (C1 smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class CubicSpline:
    def __init__(
        self, x: Any, y: Any, axis: Any = 0, bc_type: str = "not-a-knot", extrapolate: Any = None
    ) -> None:
        """Piecewise cubic interpolator to fit values (C2 smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class FloaterHormannInterpolator:
    def __init__(self, points: Any, values: Any, *, d: Any = 3, axis: Any = 0) -> None:
        """Floater-Hormann barycentric rational interpolator (C∞ smooth on real axis)."""

    def __getattr__(self, name: str, /) -> Any: ...

class KroghInterpolator:
    def __init__(self, xi: Any, yi: Any, axis: Any = 0) -> None:
        """Krogh interpolator (C∞ smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class NdBSpline:
    def __init__(self, t: Any, c: Any, k: Any, *, extrapolate: Any = None) -> None:
        """Tensor product spline object."""

    def __getattr__(self, name: str, /) -> Any: ...

class NdPPoly:
    def __init__(self, c: Any, x: Any, extrapolate: Any = None) -> None:
        """Piecewise tensor product polynomial"""

    def __getattr__(self, name: str, /) -> Any: ...

class PPoly:
    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: Any = 0) -> None:
        """Piecewise polynomial in the power basis."""

    def __getattr__(self, name: str, /) -> Any: ...

class PchipInterpolator:
    def __init__(self, x: Any, y: Any, axis: Any = 0, extrapolate: Any = None) -> None:
        """PCHIP shape-preserving interpolator (C1 smooth)."""

    def __getattr__(self, name: str, /) -> Any: ...

class RBFInterpolator:
    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: Any = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: Any = None,
    ) -> None:
        """Radial basis function interpolator in N ≥ 1 dimensions."""

    def __getattr__(self, name: str, /) -> Any: ...

class Rbf:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Class for radial basis function interpolation of functions from N-D scattered data to
        an M-D domain (legacy).
        """

    def __getattr__(self, name: str, /) -> Any: ...

class RegularGridInterpolator:
    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = ...,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        """Interpolator of specified order on a rectilinear grid in N ≥ 1 dimensions."""

    def __getattr__(self, name: str, /) -> Any: ...

def approximate_taylor_polynomial(
    f: Any, x: Any, degree: Any, scale: Any, order: Any = None
) -> Any:
    """Estimate the Taylor polynomial of f at x by polynomial fitting."""

def barycentric_interpolate(
    xi: Any, yi: Any, x: Any, axis: Any = 0, *, der: Any = 0, rng: Any = None
) -> Any:
    """Convenience function for barycentric interpolation."""

def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Tensor:
    """`scipy.interpolate.bisplev`."""

def bisplrep(
    x: Any,
    y: Any,
    z: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    yb: Any = None,
    ye: Any = None,
    kx: Any = 3,
    ky: Any = 3,
    task: Any = 0,
    s: Any = None,
    eps: Any = 1e-16,
    tx: Any = None,
    ty: Any = None,
    full_output: Any = 0,
    nxest: Any = None,
    nyest: Any = None,
    quiet: Any = 1,
) -> Any:
    """A B-spline surface beside points, with gradients at SciPy's knots and residual."""

def generate_knots(
    x: Any,
    y: Any,
    *,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: Any = 3,
    s: Any = 0,
    nest: Any = None,
    bc_type: Any = None,
) -> Any:
    """Generate knot vectors until the Least SQuares (LSQ) criterion is satified."""

def griddata(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    fill_value: float = ...,
    rescale: bool = False,
) -> Tensor: ...
def insert(x: Any, tck: Any, m: int = 1, per: int = 0) -> Any:
    """`scipy.interpolate.insert`: W. Boehm's algorithm, m times."""

class interp1d:
    def __init__(
        self,
        x: Any,
        y: Any,
        kind: str = "linear",
        axis: Any = -1,
        copy: bool = True,
        bounds_error: Any = None,
        fill_value: Any = ...,
        assume_sorted: bool = False,
    ) -> None:
        """Interpolate a 1-D function (legacy)."""

    def __getattr__(self, name: str, /) -> Any: ...

def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = ...,
) -> Any:
    """Multidimensional interpolation on regular or rectilinear grids."""

def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: Any = 0) -> Any:
    """Convenience function for Krogh interpolation."""

def lagrange(x: Any, w: Any) -> Any:
    """Return a Lagrange interpolating polynomial."""

def make_interp_spline(
    x: Any,
    y: Any,
    k: Any = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: Any = 0,
    check_finite: bool = True,
) -> Any:
    """Create an interpolating B-spline with specified degree and boundary conditions."""

def make_lsq_spline(
    x: Any,
    y: Any,
    t: Any,
    k: Any = 3,
    w: Any = None,
    axis: Any = 0,
    check_finite: bool = True,
    *,
    method: str = "qr",
) -> Any:
    """Create a smoothing B-spline satisfying the Least SQuares (LSQ) criterion."""

def make_smoothing_spline(
    x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0
) -> Any: ...
def make_splprep(
    x: Any,
    *,
    w: Any = None,
    u: Any = None,
    ub: Any = None,
    ue: Any = None,
    k: Any = 3,
    s: Any = 0,
    t: Any = None,
    nest: Any = None,
    bc_type: Any = None,
) -> Any: ...
def make_splrep(
    x: Any,
    y: Any,
    *,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: Any = 3,
    s: Any = 0,
    t: Any = None,
    nest: Any = None,
    bc_type: Any = None,
) -> Any: ...
def pade(an: Any, m: Any, n: Any = None) -> Any:
    """Return Pade approximation to a polynomial as the ratio of two polynomials."""

def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: Any = 0) -> Any:
    """Convenience function for pchip interpolation."""

def spalde(x: Any, tck: Any) -> Any:
    """`scipy.interpolate.spalde`: all derivatives at each point."""

def splantider(tck: Any, n: Any = 1) -> Any:
    """Compute the spline for the antiderivative (integral) of a given spline."""

def splder(tck: Any, n: Any = 1) -> Any:
    """Compute the spline representation of the derivative of a given spline"""

def splev(x: Any, tck: Any, der: Any = 0, ext: Any = 0) -> Any:
    """Evaluate a B-spline or its derivatives."""

def splint(a: Any, b: Any, tck: Any, full_output: Any = 0) -> Any:
    """Evaluate the definite integral of a B-spline between two given points."""

def splprep(
    x: Any,
    w: Any = None,
    u: Any = None,
    ub: Any = None,
    ue: Any = None,
    k: Any = 3,
    task: Any = 0,
    s: Any = None,
    t: Any = None,
    full_output: Any = 0,
    nest: Any = None,
    per: Any = 0,
    quiet: Any = 1,
) -> Any: ...
def splrep(x: Any, y: Any, *args: Any, **keywords: Any) -> Any:
    """`splrep`; of values if nothing follows the arguments, or an option is only FITPACK's."""

def sproot(tck: Any, mest: int = 10) -> Any:
    """`scipy.interpolate.sproot`: Newton's method gives the roots their derivatives."""
