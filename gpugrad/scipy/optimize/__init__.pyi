# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike
from typing import Any, SupportsIndex
from scipy.optimize import cobyla as cobyla
from scipy.optimize import lbfgsb as lbfgsb
from scipy.optimize import linesearch as linesearch
from scipy.optimize import minpack as minpack
from scipy.optimize import minpack2 as minpack2
from scipy.optimize import moduleTNC as moduleTNC
from scipy.optimize import nonlin as nonlin
from scipy.optimize import optimize as optimize
from scipy.optimize import slsqp as slsqp
from scipy.optimize import tnc as tnc
from scipy.optimize import zeros as zeros
from scipy.optimize._constraints import Bounds as Bounds
from scipy.optimize._constraints import LinearConstraint as LinearConstraint
from scipy.optimize._constraints import NonlinearConstraint as NonlinearConstraint
from scipy.optimize._hessian_update_strategy import BFGS as BFGS
from scipy.optimize._hessian_update_strategy import HessianUpdateStrategy as HessianUpdateStrategy
from scipy.optimize._hessian_update_strategy import SR1 as SR1
from scipy.optimize._lbfgsb_py import LbfgsInvHessProduct as LbfgsInvHessProduct
from scipy.optimize._nonlin import BroydenFirst as BroydenFirst
from scipy.optimize._nonlin import InverseJacobian as InverseJacobian
from scipy.optimize._nonlin import KrylovJacobian as KrylovJacobian
from scipy.optimize._nonlin import NoConvergence as NoConvergence
from scipy.optimize._optimize import OptimizeResult as OptimizeResult
from scipy.optimize._optimize import OptimizeWarning as OptimizeWarning
from scipy.optimize._zeros_py import RootResults as RootResults

__all__: list[str]
linear_sum_assignment: Any

def anderson(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    w0: Any = 0.01,
    M: Any = 5,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using (extended) Anderson mixing."""

def approx_fprime(
    xk: ArrayLike, f: Any, epsilon: ArrayLike = 1.4901161193847656e-08, *args: Any
) -> Tensor:
    """Derivatives of a function by forward differences."""

def basinhopping(
    func: Any,
    x0: Any,
    niter: Any = 100,
    T: Any = 1.0,
    stepsize: Any = 0.5,
    minimizer_kwargs: Any = None,
    take_step: Any = None,
    accept_test: Any = None,
    callback: Any = None,
    interval: Any = 50,
    disp: bool = False,
    niter_success: Any = None,
    rng: Any = None,
    *,
    target_accept_rate: Any = 0.5,
    stepwise_factor: Any = 0.9,
    seed: Any = None,
) -> Any:
    """SciPy's `basinhopping` on Tensors; `x` and `fun` are differentiable."""

def bisect(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """SciPy's `bisect`; the root is differentiable by all that `f` reads."""

def bracket(
    func: Any,
    xa: Any = 0.0,
    xb: Any = 1.0,
    args: Any = (),
    grow_limit: Any = 110.0,
    maxiter: Any = 1000,
) -> Any:
    """Bracket the minimum of a function."""

def brent(
    func: Any,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.48e-08,
    full_output: Any = 0,
    maxiter: Any = 500,
) -> Any:
    """Given a function of one variable and a possible bracket, return a local minimizer of the
    function isolated to a fractional precision of tol.
    """

def brenth(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """SciPy's `brenth`; the root is differentiable by all that `f` reads."""

def brentq(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """SciPy's `brentq`; the root is differentiable by all that `f` reads."""

def broyden1(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    reduction_method: str = "restart",
    max_rank: Any = None,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using Broyden's first Jacobian approximation."""

def broyden2(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    reduction_method: str = "restart",
    max_rank: Any = None,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using Broyden's second Jacobian approximation."""

def brute(
    func: Any,
    ranges: Any,
    args: Any = (),
    Ns: Any = 20,
    full_output: Any = 0,
    finish: Any = ...,
    disp: bool = False,
    workers: Any = 1,
) -> Any:
    """Minimize a function over a given range by brute force."""

def check_grad(
    func: Any,
    grad: Any,
    x0: Any,
    *args: Any,
    epsilon: Any = 1.4901161193847656e-08,
    direction: str = "all",
    rng: Any = None,
    seed: Any = None,
) -> Any:
    """Check the correctness of a gradient function by comparing it against a (forward) finite-
    difference approximation of the gradient.
    """

def curve_fit(
    f: Any,
    xdata: Any,
    ydata: ArrayLike,
    p0: Any = None,
    sigma: ArrayLike | None = None,
    absolute_sigma: bool = False,
    check_finite: Any = None,
    bounds: Any = ...,
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: Any = None,
    **kwargs: Any,
) -> Any:
    """Fit of a curve to data by least squares; parameters and covariance are differentiable."""

def diagbroyden(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using diagonal Broyden Jacobian approximation."""

def differential_evolution(
    func: Any,
    bounds: Any,
    args: Any = (),
    strategy: str = "best1bin",
    maxiter: Any = 1000,
    popsize: Any = 15,
    tol: Any = 0.01,
    mutation: Any = (0.5, 1),
    recombination: Any = 0.7,
    rng: Any = None,
    callback: Any = None,
    disp: bool = False,
    polish: bool = True,
    init: str = "latinhypercube",
    atol: Any = 0,
    updating: str = "immediate",
    workers: Any = 1,
    constraints: Any = (),
    x0: Any = None,
    *,
    integrality: Any = None,
    vectorized: bool = False,
    seed: Any = None,
) -> Any:
    """SciPy's `differential_evolution` on Tensors; `x` and `fun` are differentiable."""

def direct(
    func: Any,
    bounds: Any | Bounds,
    *,
    args: Any = (),
    eps: float = 0.0001,
    maxfun: int | None = None,
    maxiter: int = 1000,
    locally_biased: bool = True,
    f_min: float = ...,
    f_min_rtol: float = 0.0001,
    vol_tol: float = 1e-16,
    len_tol: float = 1e-06,
    callback: Any = None,
) -> OptimizeResult:
    """SciPy's `direct` on Tensors; `x` and `fun` are differentiable."""

def dual_annealing(
    func: Any,
    bounds: Any,
    args: Any = (),
    maxiter: Any = 1000,
    minimizer_kwargs: Any = None,
    initial_temp: Any = 5230.0,
    restart_temp_ratio: Any = 2e-05,
    visit: Any = 2.62,
    accept: Any = -5.0,
    maxfun: Any = 10000000.0,
    rng: Any = None,
    no_local_search: bool = False,
    callback: Any = None,
    x0: Any = None,
    *,
    seed: Any = None,
) -> Any:
    """SciPy's `dual_annealing` on Tensors; `x` and `fun` are differentiable."""

def excitingmixing(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    alphamax: Any = 1.0,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using a tuned diagonal Jacobian approximation."""

def fixed_point(
    func: Any, x0: Any, args: Any = (), xtol: Any = 1e-08, maxiter: Any = 500, method: str = "del2"
) -> Any:
    """Fixed point of a function by Steffensen's method; arguments as SciPy's."""

def fmin(
    func: Any,
    x0: Any,
    args: Any = (),
    xtol: Any = 0.0001,
    ftol: Any = 0.0001,
    maxiter: Any = None,
    maxfun: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    initial_simplex: Any = None,
) -> Any:
    """Minimize a function using the downhill simplex algorithm."""

def fmin_bfgs(
    f: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    gtol: Any = 1e-05,
    norm: Any = ...,
    epsilon: Any = 1.4901161193847656e-08,
    maxiter: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    xrtol: Any = 0,
    c1: Any = 0.0001,
    c2: Any = 0.9,
    hess_inv0: Any = None,
) -> Any:
    """Minimize a function using the BFGS algorithm."""

def fmin_cg(
    f: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    gtol: Any = 1e-05,
    norm: Any = ...,
    epsilon: Any = 1.4901161193847656e-08,
    maxiter: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    c1: Any = 0.0001,
    c2: Any = 0.4,
) -> Any:
    """Minimize a function using a nonlinear conjugate gradient algorithm."""

def fmin_cobyla(
    func: Any,
    x0: Any,
    cons: Any,
    args: Any = (),
    consargs: Any = None,
    rhobeg: Any = 1.0,
    rhoend: Any = 0.0001,
    maxfun: Any = 1000,
    disp: Any = None,
    catol: Any = 0.0002,
    *,
    callback: Any = None,
) -> Any:
    """Minimize a function using the Constrained Optimization By Linear Approximation (COBYLA)
    method. This method uses the pure-python implementation of the algorithm from PRIMA.
    """

def fmin_l_bfgs_b(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    approx_grad: Any = 0,
    bounds: Any = None,
    m: Any = 10,
    factr: Any = 10000000.0,
    pgtol: Any = 1e-05,
    epsilon: Any = 1e-08,
    iprint: Any = ...,
    maxfun: Any = 15000,
    maxiter: Any = 15000,
    disp: Any = ...,
    callback: Any = None,
    maxls: Any = 20,
) -> Any:
    """Minimize a function func using the L-BFGS-B algorithm."""

def fmin_ncg(
    f: Any,
    x0: Any,
    fprime: Any,
    fhess_p: Any = None,
    fhess: Any = None,
    args: Any = (),
    avextol: Any = 1e-05,
    epsilon: Any = 1.4901161193847656e-08,
    maxiter: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    c1: Any = 0.0001,
    c2: Any = 0.9,
) -> Any:
    """Unconstrained minimization of a function using the Newton-CG method."""

def fmin_powell(
    func: Any,
    x0: Any,
    args: Any = (),
    xtol: Any = 0.0001,
    ftol: Any = 0.0001,
    maxiter: Any = None,
    maxfun: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    direc: Any = None,
) -> Any:
    """Minimize a function using modified Powell's method."""

def fmin_slsqp(
    func: Any,
    x0: Any,
    eqcons: Any = (),
    f_eqcons: Any = None,
    ieqcons: Any = (),
    f_ieqcons: Any = None,
    bounds: Any = (),
    fprime: Any = None,
    fprime_eqcons: Any = None,
    fprime_ieqcons: Any = None,
    args: Any = (),
    iter: Any = 100,
    acc: Any = 1e-06,
    iprint: Any = 1,
    disp: Any = None,
    full_output: Any = 0,
    epsilon: Any = 1.4901161193847656e-08,
    callback: Any = None,
) -> Any:
    """Minimize a function using Sequential Least Squares Programming"""

def fmin_tnc(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    approx_grad: Any = 0,
    bounds: Any = None,
    epsilon: Any = 1e-08,
    scale: Any = None,
    offset: Any = None,
    messages: Any = 15,
    maxCGit: Any = -1,
    maxfun: Any = None,
    eta: Any = -1,
    stepmx: Any = 0,
    accuracy: Any = 0,
    fmin: Any = 0,
    ftol: Any = -1,
    xtol: Any = -1,
    pgtol: Any = -1,
    rescale: Any = -1,
    disp: Any = None,
    callback: Any = None,
) -> Any:
    """Minimize a function with variables subject to bounds, using gradient information in a
    truncated Newton algorithm. This method wraps a C implementation of the algorithm.
    """

def fminbound(
    func: Any,
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: Any = 1e-05,
    maxfun: Any = 500,
    full_output: Any = 0,
    disp: Any = 1,
) -> Any:
    """Bounded minimization for scalar functions."""

def fsolve(
    func: Any,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: Any = 1.49012e-08,
    maxfev: Any = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    """Root of a vector function by Powell's method; arguments as SciPy's, and see `root`."""

def golden(
    func: Any,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.4901161193847656e-08,
    full_output: Any = 0,
    maxiter: Any = 5000,
) -> Any:
    """Return the minimizer of a function of one variable using the golden section method."""

def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """Nonparametric isotonic regression."""

def least_squares(
    fun: Any,
    x0: ArrayLike,
    jac: str = "2-point",
    bounds: ArrayLike = ...,
    method: str = "trf",
    ftol: Any = 1e-08,
    xtol: Any = 1e-08,
    gtol: Any = 1e-08,
    x_scale: Any = None,
    loss: str = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: Any = None,
    verbose: SupportsIndex = 0,
    args: Any = (),
    kwargs: Any = None,
    callback: Any = None,
    workers: Any = None,
) -> Any:
    """Nonlinear least squares by SciPy's methods; the solution is differentiable."""

def leastsq(
    func: Any,
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: Any = 1.49012e-08,
    xtol: Any = 1.49012e-08,
    gtol: Any = 0.0,
    maxfev: Any = 0,
    epsfcn: Any = None,
    factor: Any = 100,
    diag: Any = None,
) -> Any:
    """Nonlinear least squares by Levenberg and Marquardt; arguments as SciPy's."""

def line_search(
    f: Any,
    myfprime: Any,
    xk: Any,
    pk: Any,
    gfk: Any = None,
    old_fval: Any = None,
    old_old_fval: Any = None,
    args: Any = (),
    c1: Any = 0.0001,
    c2: Any = 0.9,
    amax: Any = None,
    extra_condition: Any = None,
    maxiter: Any = 10,
) -> Any:
    """Find alpha that satisfies strong Wolfe conditions."""

def linearmixing(
    F: Any,
    xin: Any,
    iter: Any = None,
    alpha: Any = None,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using a scalar Jacobian approximation."""

def linprog(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Any = None,
    options: Any = None,
    x0: Any = None,
    integrality: Any = None,
) -> Any:
    """Linear programming: minimize a linear objective function subject to linear equality and
    inequality constraints.
    """

def linprog_verbose_callback(res: Any) -> Any:
    """A sample callback function demonstrating the linprog callback interface. This callback
    produces detailed output to sys.stdout before each iteration and after the final iteration
    of the simplex algorithm.
    """

def lsq_linear(
    A: Any,
    b: Any,
    bounds: Any = ...,
    method: str = "trf",
    tol: Any = 1e-10,
    lsq_solver: Any = None,
    lsmr_tol: Any = None,
    max_iter: Any = None,
    verbose: Any = 0,
    *,
    lsmr_maxiter: Any = None,
) -> Any:
    """Linear least squares with bounds; arguments as SciPy's, `A` a dense array."""

def milp(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Any = None,
) -> Any:
    """Mixed-integer linear programming"""

def minimize(
    fun: Any,
    x0: ArrayLike,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """Minimum of a scalar function by SciPy's methods; the solution is differentiable."""

def minimize_scalar(
    fun: Any,
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: Any = None,
    options: Any = None,
) -> Any:
    """Minimum of a function of one number by SciPy's methods; arguments as SciPy's."""

def newton(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: Any = 1.48e-08,
    maxiter: Any = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: Any = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Roots by the methods of Newton, Halley or the secant; arguments as SciPy's."""

def newton_krylov(
    F: Any,
    xin: Any,
    iter: Any = None,
    rdiff: Any = None,
    method: str = "lgmres",
    inner_maxiter: Any = 20,
    inner_M: Any = None,
    outer_k: Any = 10,
    verbose: bool = False,
    maxiter: Any = None,
    f_tol: Any = None,
    f_rtol: Any = None,
    x_tol: Any = None,
    x_rtol: Any = None,
    tol_norm: Any = None,
    line_search: str = "armijo",
    callback: Any = None,
    **kw: Any,
) -> Any:
    """Find a root of a function, using Krylov approximation for inverse Jacobian."""

def nnls(A: Any, b: Any, *, maxiter: Any = None, atol: Any = ...) -> Any:
    """Linear least squares with ``x >= 0``; arguments as SciPy's."""

def quadratic_assignment(A: Any, B: Any, method: str = "faq", options: Any = None) -> Any:
    """Approximates solution to the quadratic assignment problem and the graph matching problem."""

def ridder(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """SciPy's `ridder`; the root is differentiable by all that `f` reads."""

def root(
    fun: Any,
    x0: ArrayLike,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """Root of a vector function by SciPy's methods; the solution is differentiable."""

def root_scalar(
    f: Any,
    args: Any = (),
    method: Any = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: Any = None,
    rtol: Any = None,
    maxiter: Any = None,
    options: Any = None,
) -> Any:
    """Root of a function of one number by SciPy's methods; arguments as SciPy's."""

def rosen(x: Any) -> Tensor:
    """Rosenbrock's function, the sum of 100 (x_(i+1) - x_i^2)^2 + (1 - x_i)^2 along the first
    axis.
    """

def rosen_der(x: Any) -> Tensor:
    """The gradient of `rosen`."""

def rosen_hess(x: Any) -> Tensor:
    """The Hessian of `rosen`, of shape (n, n) for `x` of shape (n,)."""

def rosen_hess_prod(x: Any, p: Any) -> Tensor:
    """The Hessian of `rosen` at `x`, times `p`."""

def shgo(
    func: Any,
    bounds: Any,
    args: Any = (),
    constraints: Any = None,
    n: Any = 100,
    iters: Any = 1,
    callback: Any = None,
    minimizer_kwargs: Any = None,
    options: Any = None,
    sampling_method: str = "simplicial",
    *,
    workers: Any = 1,
) -> Any:
    """SciPy's `shgo` on Tensors; `x` and `fun` are differentiable."""

def show_options(solver: Any = None, method: Any = None, disp: bool = True) -> Any:
    """Show documentation for additional options of optimization solvers."""

def toms748(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    k: Any = 1,
    xtol: Any = 2e-12,
    rtol: Any = 8.881784197001252e-16,
    maxiter: Any = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """SciPy's `toms748`; the root is differentiable by all that `f` reads."""
