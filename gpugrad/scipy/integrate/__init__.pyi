# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.typing import ArrayLike
from typing import Any, SupportsIndex
from scipy.integrate._ivp.lsoda import LSODA as LSODA
from scipy.integrate._ode import complex_ode as complex_ode
from scipy.integrate._ode import ode as ode
from scipy.integrate._odepack_py import ODEintWarning as ODEintWarning
from scipy.integrate._quadpack_py import IntegrationWarning as IntegrationWarning

__all__: list[str]

class BDF:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        max_step: Any = ...,
        rtol: Any = 0.001,
        atol: Any = 1e-06,
        jac: Any = None,
        jac_sparsity: Any = None,
        vectorized: bool = False,
        first_step: Any = None,
        **extraneous: Any,
    ) -> None:
        """Implicit method based on backward-differentiation formulas."""

    def __getattr__(self, name: str, /) -> Any: ...

class DOP853:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        max_step: Any = ...,
        rtol: Any = 0.001,
        atol: Any = 1e-06,
        vectorized: bool = False,
        first_step: Any = None,
        **extraneous: Any,
    ) -> None:
        """Explicit Runge-Kutta method of order 8."""

    def __getattr__(self, name: str, /) -> Any: ...

class DenseOutput:
    def __init__(self, t_old: Any, t: Any) -> None:
        """Base class for local interpolant over step made by an ODE solver."""

    def __getattr__(self, name: str, /) -> Any: ...

class OdeSolution:
    def __init__(self, ts: Any, interpolants: Any, alt_segment: bool = False) -> None:
        """Continuous ODE solution."""

    def __getattr__(self, name: str, /) -> Any: ...

class OdeSolver:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        vectorized: Any,
        support_complex: bool = False,
    ) -> None:
        """Base class for ODE solvers."""

    def __getattr__(self, name: str, /) -> Any: ...

class RK23:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        max_step: Any = ...,
        rtol: Any = 0.001,
        atol: Any = 1e-06,
        vectorized: bool = False,
        first_step: Any = None,
        **extraneous: Any,
    ) -> None:
        """Explicit Runge-Kutta method of order 3(2)."""

    def __getattr__(self, name: str, /) -> Any: ...

class RK45:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        max_step: Any = ...,
        rtol: Any = 0.001,
        atol: Any = 1e-06,
        vectorized: bool = False,
        first_step: Any = None,
        **extraneous: Any,
    ) -> None:
        """Explicit Runge-Kutta method of order 5(4)."""

    def __getattr__(self, name: str, /) -> Any: ...

class Radau:
    def __init__(
        self,
        fun: Any,
        t0: Any,
        y0: Any,
        t_bound: Any,
        max_step: Any = ...,
        rtol: Any = 0.001,
        atol: Any = 1e-06,
        jac: Any = None,
        jac_sparsity: Any = None,
        vectorized: bool = False,
        first_step: Any = None,
        **extraneous: Any,
    ) -> None:
        """Implicit Runge-Kutta method of Radau IIA family of order 5."""

    def __getattr__(self, name: str, /) -> Any: ...

def cubature(
    f: Any,
    a: Any,
    b: Any,
    *,
    rule: str = "gk21",
    rtol: Any = 1e-08,
    atol: Any = 0,
    max_subdivisions: Any = 10000,
    args: Any = (),
    workers: Any = 1,
    points: Any = None,
) -> Any:
    """SciPy's `cubature`; raises if a tape watches what it reads."""

def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None
) -> Any:
    """Cumulatively integrate y(x) using the composite Simpson's 1/3 rule. The integral of the
    samples at every point is calculated by assuming a quadratic relationship between each
    point and the two adjacent points.
    """

def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None
) -> Any:
    """Cumulatively integrate y(x) using the composite trapezoidal rule."""

def dblquad(
    func: Any,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: Any = 1.49e-08,
    epsrel: Any = 1.49e-08,
) -> Any:
    """SciPy's `dblquad`; raises if a tape watches what it reads."""

def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: Any = 5) -> Any:
    """Compute a definite integral using fixed-order Gaussian quadrature."""

def lebedev_rule(n: Any) -> Any:
    """SciPy's `lebedev_rule`; raises if a tape watches what it reads."""

def newton_cotes(rn: Any, equal: Any = 0) -> Any:
    """Return weights and error coefficient for Newton-Cotes integration."""

def nquad(
    func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> Any:
    """SciPy's `nquad`; raises if a tape watches what it reads."""

def nsum(
    f: Any,
    a: Any,
    b: Any,
    *,
    step: Any = 1,
    args: Any = (),
    log: bool = False,
    maxterms: Any = 1048576,
    tolerances: Any = None,
) -> Any:
    """SciPy's `nsum`; raises if a tape watches what it reads."""

def odeint(
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: ArrayLike | None = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
) -> Any:
    """The states of an initial value problem y' = func(y, t) at the times `t`, as SciPy's
    `odeint`.
    """

def qmc_quad(
    func: Any,
    a: Any,
    b: Any,
    *,
    n_estimates: Any = 8,
    n_points: Any = 1024,
    qrng: Any = None,
    log: bool = False,
) -> Any:
    """SciPy's `qmc_quad`; raises if a tape watches what it reads."""

def quad(
    func: Any,
    a: ArrayLike,
    b: Any,
    args: Any = (),
    full_output: SupportsIndex = 0,
    epsabs: Any = 1.49e-08,
    epsrel: Any = 1.49e-08,
    limit: Any = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: bool = False,
) -> Any:
    """The integral of a function from `a` to `b`, and an estimate of its error, as SciPy's
    `quad`.
    """

def quad_vec(
    f: Any,
    a: ArrayLike,
    b: Any,
    epsabs: Any = 1e-200,
    epsrel: Any = 1e-08,
    norm: str = "2",
    cache_size: Any = 100000000.0,
    limit: Any = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """The integral of a function with values of any shape, as SciPy's `quad_vec`."""

def romb(y: Any, dx: Any = 1.0, axis: Any = -1, show: bool = False) -> Any:
    """Romberg integration using samples of a function."""

def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Integrate y(x) using samples along the given axis and the composite Simpson's rule. If x
    is None, spacing of dx is assumed.
    """

def solve_bvp(
    fun: Any,
    bc: Any,
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: Any = 0.001,
    max_nodes: Any = 1000,
    verbose: Any = 0,
    bc_tol: Any = None,
) -> Any:
    """SciPy's `solve_bvp`; raises if a tape watches what it reads."""

def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """The solution of an initial value problem y' = fun(t, y), as SciPy's `solve_ivp`."""

def tanhsinh(
    f: Any,
    a: Any,
    b: Any,
    *,
    args: Any = (),
    log: bool = False,
    maxlevel: Any = None,
    minlevel: Any = 2,
    atol: Any = None,
    rtol: Any = None,
    preserve_shape: bool = False,
    callback: Any = None,
) -> Any:
    """SciPy's `tanhsinh`; raises if a tape watches what it reads."""

def tplquad(
    func: Any,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: Any = 1.49e-08,
    epsrel: Any = 1.49e-08,
) -> Any:
    """SciPy's `tplquad`; raises if a tape watches what it reads."""

def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Integrate along the given axis using the composite trapezoidal rule."""
