# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from collections.abc import Callable
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis
from typing import Any, SupportsIndex
from gpugrad.scipy.sparse.linalg.operators import LaplacianNd as LaplacianNd
from gpugrad.scipy.sparse.linalg.systems import SuperLU as SuperLU
from scipy.sparse.linalg._dsolve.linsolve import MatrixRankWarning as MatrixRankWarning
from scipy.sparse.linalg._eigen.arpack.arpack import ArpackError as ArpackError
from scipy.sparse.linalg._eigen.arpack.arpack import ArpackNoConvergence as ArpackNoConvergence

__all__: list[str]

class LinearOperator:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Common interface for performing matrix vector products"""

    def __getattr__(self, name: str, /) -> Any: ...

def aslinearoperator(A: Any) -> Any:
    """Return A as a LinearOperator."""

def bicg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    """Biconjugate gradients for a square array; arguments and result as `cg`."""

def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    """Stabilized biconjugate gradients for a square array; arguments and result as `cg`."""

def cg(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 0.0,
    maxiter: Any = None,
    M: SupportsIndex | None = None,
    callback: Any = None,
) -> Any:
    """Conjugate gradients for a Hermitian positive definite array; implicit gradients."""

def cgs(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
) -> Any:
    """Squared conjugate gradients for a square array; arguments and result as `cg`."""

def eigs(
    A: ArrayLike,
    k: SupportsIndex = 6,
    M: SupportsIndex | None = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: Any = None,
    maxiter: Any = None,
    tol: Any = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    OPpart: Any = None,
    rng: Any = None,
) -> Any:
    """Some eigenvalues and eigenvectors of a square sparse array; differentiable as `eigsh`."""

def eigsh(
    A: Any,
    k: SupportsIndex = 6,
    M: SupportsIndex | None = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: Any = None,
    maxiter: Any = None,
    tol: Any = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
) -> Any:
    """Some eigenvalues and eigenvectors of a Hermitian sparse array, by ARPACK on the host."""

def expm(A: Any) -> Any:
    """Exponential of a square sparse array, a sparse one; differentiable by the entries."""

def expm_multiply(
    A: ArrayLike,
    B: ArrayLike,
    start: ArrayLike | None = None,
    stop: ArrayLike | None = None,
    num: SupportsIndex | None = None,
    endpoint: Any = None,
    traceA: Any = None,
) -> Any:
    """exp(A) @ B without the exponential, by Taylor polynomials; differentiable by A and B."""

def factorized(A: Any) -> Callable[[Any], Tensor]:
    """The function that solves A x = b for `b`, with the factors of `splu`."""

def funm_multiply_krylov(f: Any, A: ArrayLike, b: ArrayLike, **options: Any) -> Tensor:
    """f(t A) @ b by SciPy's Krylov method, without a derivative: it raises under a tape."""

def gcrotmk(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = 1000,
    M: Any = None,
    callback: Any = None,
    m: Any = 20,
    k: Any = None,
    CU: Any = None,
    discard_C: bool = False,
    truncate: str = "oldest",
) -> Any:
    """Flexible minimal residuals that keep directions; arguments and result as `cg`."""

def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    restart: Any = None,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    callback_type: Any = None,
) -> Any:
    """Generalized minimal residuals for a square array; arguments and result as `cg`."""

def inv(A: Any) -> Any:
    """Inverse of a square sparse array, by its factors: a sparse one, though most are full."""

def is_sptriangular(A: Any) -> tuple[bool, bool]:
    """Whether the entries of a sparse array are on and below its diagonal; and on and above."""

def lgmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = 1000,
    M: Any = None,
    callback: Any = None,
    inner_m: Any = 30,
    outer_k: Any = 3,
    outer_v: Any = None,
    store_outer_Av: bool = True,
    prepend_outer_v: bool = False,
) -> Any:
    """Minimal residuals that keep directions at a restart; arguments and result as `cg`."""

def lobpcg(
    A: ArrayLike,
    X: ArrayLike,
    B: Any = None,
    M: SupportsIndex | None = None,
    Y: ArrayLike | None = None,
    tol: Any = None,
    maxiter: Any = None,
    largest: bool = True,
    verbosityLevel: Any = 0,
    retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False,
    restartControl: Any = 20,
) -> Any:
    """Some eigenvalues and eigenvectors of a symmetric array by LOBPCG; differentiable as
    `eigsh`.
    """

def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-06,
    btol: float = 1e-06,
    conlim: float = 100000000.0,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Least squares by LSMR; arguments and results as `lsqr`."""

def lsqr(
    A: ArrayLike,
    b: ArrayLike,
    damp: float = 0.0,
    atol: float = 1e-06,
    btol: float = 1e-06,
    conlim: float = 100000000.0,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
) -> tuple[Any, ...]:
    """Least squares |A x - b|^2 + damp^2 |x|^2 by LSQR, differentiable by A's entries and by b."""

def matrix_power(A: Any, power: int) -> Any:
    """A square sparse array to the power of an int from 0 on, by repeated squaring."""

def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    shift: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    show: bool = False,
    check: bool = False,
) -> Any:
    """Minimal residuals for a Hermitian array, (A - shift I) x = b; arguments as `cg`."""

def norm(x: ArrayLike, ord: Any = None, axis: Axis = None) -> Tensor:
    """Norm of a sparse array, or of its rows or columns."""

def onenormest(
    A: Any, t: int = 2, itmax: int = 5, compute_v: bool = False, compute_w: bool = False
) -> Any:
    """A lower bound of the 1-norm of a sparse array or an operator, as SciPy's."""

def qmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M1: Any = None,
    M2: Any = None,
    callback: Any = None,
) -> Any:
    """Quasi-minimal residuals for a square array; as `cg`, with preconditioners `M1` and `M2`."""

def spbandwidth(A: Any) -> tuple[int, int]:
    """How many diagonals below and above the main one have entries."""

def spilu(A: ArrayLike, *args: Any, **options: Any) -> Any:
    """Incomplete factors of a sparse array, on the host: a preconditioner, taken for constant."""

def splu(A: ArrayLike, *args: Any, **options: Any) -> SuperLU:
    """The factors of a sparse array, whose solutions are differentiable by its entries."""

def spsolve(A: ArrayLike, b: ArrayLike, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """Solution of A x = b by SuperLU, differentiable by the entries of A and by b."""

def spsolve_triangular(
    A: ArrayLike,
    b: ArrayLike,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """Solution of A x = b for a triangular sparse array."""

def svds(
    A: ArrayLike,
    k: SupportsIndex = 6,
    ncv: Any = None,
    tol: Any = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: Any = None,
    return_singular_vectors: bool = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
    *,
    random_state: Any = None,
) -> Any:
    """Some singular values and their vectors, by SciPy on the host; differentiable as `eigsh`."""

def tfqmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-05,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,
    callback: Any = None,
    show: bool = False,
) -> Any:
    """Quasi-minimal residuals without transposes; arguments and result as `cg`."""

def use_solver(**kwargs: Any) -> Any:
    """Select default sparse direct solver to be used."""
