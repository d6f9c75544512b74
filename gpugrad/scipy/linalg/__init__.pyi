# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from collections.abc import Callable
from gpugrad.core.tensor import Tensor
from gpugrad.linalg import SlogdetResult
from gpugrad.typing import ArrayLike, Axis, DTypeLike, Shape
from typing import Any, SupportsIndex

__all__: list[str]

def adjugate(x: ArrayLike, /) -> Tensor:
    """Transposed cofactors of square matrices: det(x) * inv(x), defined for singular ones too."""

def bandwidth(a: ArrayLike) -> tuple[int, int]:
    """Numbers of diagonals below and above the main one that are not 0."""

def block_diag(*arrays: ArrayLike) -> Tensor:
    """Block diagonal matrix: the arrays along the diagonal, 0 elsewhere."""

def cdf2rdf(w: ArrayLike, v: ArrayLike) -> tuple[Any, Any]:
    """Real block diagonal form of complex eigenvalues and eigenvectors in conjugate pairs."""

def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[Tensor, bool]:
    """Cholesky factor of positive definite matrices, for `cho_solve`."""

def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    /,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Tensor:
    """Solve a @ x = b, given the Cholesky factor of `a`."""

def cho_solve_banded(
    cb_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x == b``, given the result of `cholesky_banded` for the matrix."""

def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The upper Cholesky factor, or the lower one; of that triangle of `a`."""

def cholesky_banded(
    ab: ArrayLike, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Tensor:
    """The diagonals of the Cholesky factor of a Hermitian positive definite banded matrix."""

def circulant(c: ArrayLike, /) -> Tensor:
    """Square matrices whose columns are a vector, each rotated by one more element."""

def companion(a: ArrayLike, /) -> Tensor:
    """Companion matrices of polynomials: their eigenvalues are the roots."""

def cond(x: ArrayLike, /, p: ArrayLike | None = None) -> Tensor:
    """Condition number of matrices: the norm times that of the inverse."""

def convolution_matrix(a: ArrayLike, /, n: SupportsIndex, mode: str = "full") -> Tensor:
    """Matrix whose product with a vector is the convolution with `a`."""

def coshm(A: ArrayLike) -> Tensor:
    """Hyperbolic cosine of square matrices."""

def cosm(A: ArrayLike) -> Tensor:
    """Cosine of square matrices."""

def cross(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    axisa: Any = None,
    axisb: Any = None,
    axisc: Any = None,
) -> Tensor:
    """Cross product of vectors in space."""

def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""

def dft(n: Any, scale: Any = None) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """Elements on a diagonal of matrices, in the last two axes."""

def diagsvd(s: Shape, M: int, N: int) -> Tensor:
    """The diagonal matrix of singular values, of shape (M, N)."""

def eig(
    a: ArrayLike,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of general matrices, and the left and right eigenvectors that are asked for."""

def eig_banded(
    a_band: ArrayLike,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian banded matrix."""

def eigh(
    a: ArrayLike,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""

def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix."""

def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Eigenvalues of general matrices, with `b` and errors as of `eig`."""

def eigvals_banded(
    a_band: Any,
    lower: bool = False,
    overwrite_a_band: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues of a Hermitian banded matrix, with the arguments of `eig_banded`."""

def eigvalsh(a: Any, b: Any = None, **keywords: Any) -> Any:
    """Eigenvalues of Hermitian matrices, with the arguments of `eigh`."""

def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Eigenvalues of a real symmetric tridiagonal matrix, with the arguments of
    `eigh_tridiagonal`.
    """

def expm(x: ArrayLike, /) -> Tensor:
    """Exponential of square matrices: the sum of x^k / k!."""

def expm_cond(A: ArrayLike, check_finite: bool = True) -> Any:
    """Relative condition number of the exponential in the Frobenius norm."""

def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = True,
) -> Any:
    """The exponential of matrices, and its derivative along a direction."""

def fiedler(a: ArrayLike, /) -> Tensor:
    """Symmetric matrices of the distances between numbers."""

def fiedler_companion(a: ArrayLike, /) -> Tensor:
    """Companion matrices of five diagonals."""

def fractional_matrix_power(A: ArrayLike, t: ArrayLike) -> Any:
    """A real power of square matrices, exp(t log(A)); differentiable by both."""

def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of square matrices with distinct eigenvalues: it is applied to the eigenvalues."""

def hadamard(n: Any, dtype: DTypeLike = ...) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def hankel(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """Matrices with one value along each antidiagonal."""

def helmert(n: Any, full: bool = False) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def hessenberg(
    a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form of a matrix: ``a == q @ h @ q^H``, h is 0 below its first subdiagonal."""

def hilbert(n: Any) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """The inverse of a matrix, of which one triangle is read if `assume_a` says so."""

def invhilbert(n: Any, exact: bool = False) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def invpascal(n: Any, kind: str = "symmetric", exact: bool = True) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def khatri_rao(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Kronecker product of each column of `a` with the same column of `b`."""

def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Kronecker product: `x2` times each element of `x1`, as blocks."""

def ldl(
    A: ArrayLike,
    lower: bool = True,
    hermitian: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any, Any]:
    """The factors L, D of a Hermitian or symmetric matrix, ``A == L @ D @ L^H``."""

def leslie(f: ArrayLike, s: ArrayLike, /) -> Tensor:
    """Leslie matrices of populations by age."""

def logm(x: ArrayLike, /) -> Tensor:
    """Logarithm of square matrices: the one whose eigenvalues have angles between -pi and pi."""

def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
) -> Any:
    """x, residuals, rank and singular values, as `gpugrad.linalg.lstsq`."""

def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Tensor, ...]:
    """The factors p, l and u; or ``p @ l`` and u; or row indices for p."""

def lu_factor(
    x: ArrayLike, /, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[Tensor, Tensor]:
    """LU factors of matrices in one array, and the row exchanges that led to them."""

def lu_solve(
    lu_and_pivots: tuple[Any, Any],
    b: ArrayLike,
    /,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Tensor:
    """Solve a @ x = b, given the LU factors of `a`."""

def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Product of matrices; also of stacks of them, and of vectors."""

def matmul_toeplitz(
    c_or_cr: ArrayLike, x: ArrayLike, check_finite: bool = True, workers: int | None = None
) -> Tensor:
    """The product of a Toeplitz matrix with a vector or matrix, by FFTs."""

def matrix_balance(
    A: ArrayLike,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> tuple[Any, Any]:
    """A matrix similar to `A` whose rows and columns have norms of about the same size."""

def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str = "fro") -> Tensor:
    """Norm of matrices."""

def matrix_power(x: ArrayLike, /, n: SupportsIndex) -> Tensor:
    """Product of `n` copies of a square matrix, by repeated squaring."""

def matrix_rank(
    x: ArrayLike, /, rtol: ArrayLike | None = None, *, tol: Any = None, hermitian: Any = None
) -> Tensor:
    """How many singular values of matrices are not 0. Its gradient is None."""

def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """Swap the last two axes."""

def multi_dot(arrays: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Product of several matrices, in the order that takes the fewest multiplications."""

def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """A norm of vectors or matrices."""

def null_space(
    A: ArrayLike,
    rcond: Any = None,
    *,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Tensor:
    """An orthonormal basis of the null space of a matrix."""

def ordqz(
    A: ArrayLike,
    B: ArrayLike,
    sort: str = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Generalized Schur form of two matrices with sorted eigenvalues."""

def orth(A: ArrayLike, rcond: Any = None) -> Tensor:
    """An orthonormal basis of the range of a matrix: left singular vectors."""

def orthogonal_procrustes(
    A: ArrayLike, B: ArrayLike, check_finite: bool = True
) -> tuple[Tensor, Tensor]:
    """The orthogonal matrix R for which ``A @ R`` is nearest to `B`, and its scale."""

def outer(x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of `x1` with each of `x2`."""

def pascal(n: Any, kind: str = "symmetric", exact: bool = True) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def pinv(
    a: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse; singular values up to ``atol + rtol * max(s)`` count as 0."""

def pinvh(
    a: ArrayLike,
    atol: Any = None,
    rtol: ArrayLike | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of a Hermitian matrix, of which one triangle is read."""

def pivots_to_permutation(pivots: ArrayLike, /, *, size: Shape) -> Tensor:
    """The order of rows after the exchanges of `lu_factor`. Its gradient is None."""

def polar(x: ArrayLike, /, side: str = "right") -> tuple[Tensor, Tensor]:
    """Polar decomposition: orthonormal U and positive semidefinite P with x = U P, or x = P U."""

def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """The factors q and r, whole or (``"economic"``) reduced; r alone for ``"r"``."""

def qr_delete(
    Q: ArrayLike,
    R: ArrayLike,
    k: int,
    p: int = 1,
    which: str = "row",
    overwrite_qr: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R`` without `p` rows or columns from the `k`-th on."""

def qr_insert(
    Q: ArrayLike,
    R: ArrayLike,
    u: Any,
    k: int,
    which: str = "row",
    rcond: Any = None,
    overwrite_qru: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R`` with rows or columns inserted."""

def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """The product of q of ``a == q @ r`` with a matrix, and r."""

def qr_update(
    Q: ArrayLike,
    R: ArrayLike,
    u: ArrayLike,
    v: ArrayLike,
    overwrite_qruv: bool = False,
    check_finite: bool = True,
) -> tuple[Any, Any]:
    """The QR factors of ``Q @ R + u @ v^H``."""

def qz(
    A: ArrayLike,
    B: ArrayLike,
    output: str = "real",
    lwork: Any = None,
    sort: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """Generalized Schur form of two matrices: ``A == q @ aa @ z^H`` and ``B == q @ bb @ z^H``."""

def rq(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """The factors of ``a == r @ q``: r is upper triangular, and q has orthonormal rows."""

def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form from the real one."""

def schur(
    a: ArrayLike,
    output: str = "real",
    lwork: Any = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> Any:
    """Schur form of a matrix: ``a == z @ t @ z^H`` with a triangular t and a unitary z."""

def signm(A: ArrayLike) -> Tensor:
    """Sign, whose eigenvalues are -1 and 1, of square matrices."""

def sinhm(A: ArrayLike) -> Tensor:
    """Hyperbolic sine of square matrices."""

def sinm(A: ArrayLike) -> Tensor:
    """Sine of square matrices."""

def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant of square matrices."""

def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """The solution of ``a @ x == b``, or of the transposed matrix."""

def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x == b`` for a banded matrix."""

def solve_circulant(
    c: Any,
    b: ArrayLike,
    singular: str = "raise",
    tol: Any = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Tensor:
    """The solution of ``a @ x == b`` for a circulant matrix, by FFTs."""

def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: Shape | None = None,
    balanced: bool = True,
) -> Tensor:
    """The solution x of the algebraic Riccati equation a^H x e + e^H x a - (e^H x b + s) r^-1
    (b^H x e + s^H) + q = 0.
    """

def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Tensor:
    """The solution x of ``a @ x + x @ a^H == q``."""

def solve_discrete_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: Shape | None = None,
    balanced: bool = True,
) -> Tensor:
    """The solution x of the algebraic Riccati equation a^H x a - e^H x e - (a^H x b + s) (r +
    b^H x b)^-1 (b^H x a + s^H) + q = 0.
    """

def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Tensor:
    """The solution x of ``a @ x @ a^H - x + q == 0``."""

def solve_lyapunov(a: ArrayLike, q: ArrayLike) -> Tensor:
    """The solution x of ``a @ x + x @ a^H == q``."""

def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, /) -> Tensor:
    """Solution x of a @ x + x @ b = q."""

def solve_toeplitz(c_or_cr: ArrayLike, b: ArrayLike, check_finite: bool = True) -> Tensor:
    """The solution of ``a @ x == b`` for a Toeplitz matrix."""

def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution with the upper or lower triangle of `a`; `trans` is 0, 1, 2 or N, T, C."""

def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """The solution of ``a @ x == b`` for a Hermitian positive definite banded matrix."""

def sqrtm(x: ArrayLike, /) -> Tensor:
    """Square root of square matrices: the one whose eigenvalues have no negative real part."""

def subspace_angles(A: ArrayLike, B: ArrayLike) -> Tensor:
    """Angles between the ranges of two matrices, the largest first."""

def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """u, s and vh, or the singular values alone."""

def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values."""

def tanhm(A: ArrayLike) -> Tensor:
    """Hyperbolic tangent of square matrices."""

def tanm(A: ArrayLike) -> Tensor:
    """Tangent of square matrices."""

def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: Axis = 2) -> Tensor:
    """Sum of products over axes of two arrays."""

def tensorinv(a: ArrayLike, /, ind: SupportsIndex = 2) -> Tensor:
    """Inverse of a tensor, for sums over its last axes: it undoes tensordot(a, x)."""

def tensorsolve(a: ArrayLike, b: ArrayLike, /, axes: Axis = None) -> Tensor:
    """Solution x of tensordot(a, x, axes=x.ndim) = b."""

def toeplitz(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """Matrices with one value along each diagonal."""

def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Tensor:
    """Sum of the elements on a diagonal of matrices."""

def vander(x: ArrayLike, /, N: SupportsIndex | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrices: each column is a power of the numbers."""

def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    axis: Axis = -1,
    *,
    out: Tensor | None = None,
    dtype: DTypeLike = None,
) -> Tensor:
    """Sum of conj(x1) * x2 along an axis."""

def vector_norm(
    x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False, ord: ArrayLike = 2
) -> Tensor:
    """Norm of vectors: the `ord`-th root of the sum of the absolute values' powers."""
