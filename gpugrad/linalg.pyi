# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.core.tensor import Tensor
from gpugrad.typing import ArrayLike, Axis, DTypeLike, Shape
from typing import Any, NamedTuple, SupportsIndex

__all__: list[str]

def adjugate(x: ArrayLike, /) -> Tensor:
    """Transposed cofactors of square matrices: det(x) * inv(x), defined for singular ones too."""

def bandwidth(a: ArrayLike) -> tuple[int, int]:
    """Numbers of diagonals below and above the main one that are not 0."""

def block_diag(*arrays: ArrayLike) -> Tensor:
    """Block diagonal matrix: the arrays along the diagonal, 0 elsewhere."""

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

def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """Triangular factor L of positive definite matrices: L times its conjugate transpose."""

def circulant(c: ArrayLike, /) -> Tensor:
    """Square matrices whose columns are a vector, each rotated by one more element."""

def companion(a: ArrayLike, /) -> Tensor:
    """Companion matrices of polynomials: their eigenvalues are the roots."""

def cond(x: ArrayLike, /, p: ArrayLike | None = None) -> Tensor:
    """Condition number of matrices: the norm times that of the inverse."""

def convolution_matrix(a: ArrayLike, /, n: SupportsIndex, mode: str = "full") -> Tensor:
    """Matrix whose product with a vector is the convolution with `a`."""

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

def det(x: ArrayLike, /) -> Tensor:
    """Determinant of square matrices."""

def dft(n: SupportsIndex, scale: Any = None) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """Elements on a diagonal of matrices, in the last two axes."""

def eig(x: ArrayLike, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices."""

def eigh(x: ArrayLike, /, *, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of symmetric (Hermitian) matrices."""

def eigvals(x: ArrayLike, /) -> Tensor:
    """Eigenvalues of square matrices."""

def eigvalsh(x: ArrayLike, /, *, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric (Hermitian) matrices."""

def expm(x: ArrayLike, /) -> Tensor:
    """Exponential of square matrices: the sum of x^k / k!."""

def fiedler(a: ArrayLike, /) -> Tensor:
    """Symmetric matrices of the distances between numbers."""

def fiedler_companion(a: ArrayLike, /) -> Tensor:
    """Companion matrices of five diagonals."""

def hadamard(n: SupportsIndex, dtype: DTypeLike = ...) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def hankel(c: ArrayLike, r: ArrayLike | None = None, /) -> Tensor:
    """Matrices with one value along each antidiagonal."""

def helmert(n: SupportsIndex, full: bool = False) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def hilbert(n: SupportsIndex) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def inv(x: ArrayLike, /) -> Tensor:
    """Inverse of square matrices."""

def invhilbert(n: SupportsIndex, exact: bool = False) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def invpascal(n: SupportsIndex, kind: str = "symmetric", exact: bool = True) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def khatri_rao(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Kronecker product of each column of `a` with the same column of `b`."""

def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Kronecker product: `x2` times each element of `x1`, as blocks."""

def leslie(f: ArrayLike, s: ArrayLike, /) -> Tensor:
    """Leslie matrices of populations by age."""

def logm(x: ArrayLike, /) -> Tensor:
    """Logarithm of square matrices: the one whose eigenvalues have angles between -pi and pi."""

def lstsq(a: ArrayLike, b: ArrayLike, /, rcond: float | None = None) -> LstsqResult:
    """Least squares, with the results of numpy.linalg.lstsq, also for batches."""

def lu(
    x: ArrayLike, /, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = False
) -> tuple[Tensor, ...]:
    """LU factors of matrices: x = P L U."""

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

def norm(x: ArrayLike, /, ord: Any = None, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Norm of vectors or matrices, as numpy.linalg.norm."""

def outer(x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None) -> Tensor:
    """Products of each element of `x1` with each of `x2`."""

def pascal(n: SupportsIndex, kind: str = "symmetric", exact: bool = True) -> Tensor:
    """SciPy's matrix of the name, with its arguments, on the default device."""

def pinv(
    x: ArrayLike, /, rtol: ArrayLike | None = None, *, rcond: Any = None, hermitian: Any = None
) -> Tensor:
    """Moore-Penrose pseudoinverse of matrices: the inverse if it exists."""

def pivots_to_permutation(pivots: ArrayLike, /, *, size: Shape) -> Tensor:
    """The order of rows after the exchanges of `lu_factor`. Its gradient is None."""

def polar(x: ArrayLike, /, side: str = "right") -> tuple[Tensor, Tensor]:
    """Polar decomposition: orthonormal U and positive semidefinite P with x = U P, or x = P U."""

def qr(x: ArrayLike, /, *, mode: str = "reduced") -> Any:
    """QR decomposition: orthonormal columns Q and upper triangular R, with Q @ R = x."""

def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinant of square matrices."""

def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Solution of x1 @ x = x2 for square matrices."""

def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, /) -> Tensor:
    """Solution x of a @ x + x @ b = q."""

def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    /,
    trans: int | str = 0,
    lower: bool | None = None,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
    *,
    adjoint: bool = False,
) -> Tensor:
    """Solution of a @ x = b for triangular matrices."""

def sqrtm(x: ArrayLike, /) -> Tensor:
    """Square root of square matrices: the one whose eigenvalues have no negative real part."""

def svd(
    x: ArrayLike, /, *, full_matrices: bool = True, compute_uv: Any = None, hermitian: Any = None
) -> SVDResult:
    """Singular values and vectors of matrices: x = U diag(S) Vh."""

def svdvals(x: ArrayLike, /) -> Tensor:
    """Singular values of matrices."""

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

class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class LstsqResult(NamedTuple):
    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor

class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor

class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
