# Written by ci/stubs from the functions themselves, with NumPy 2.4 and SciPy 1.17; do not edit.
from gpugrad.typing import DTypeLike
from typing import Any
from numpy.linalg import LinAlgError as LinAlgError

__all__: list[str]

def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Cholesky decomposition."""

def cond(x: Any, p: Any = None) -> Any:
    """Compute the condition number of a matrix."""

def cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """Returns the cross product of 3-element vectors."""

def det(a: Any) -> Any:
    """Compute the determinant of an array."""

def diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    """Returns specified diagonals of a matrix (or a stack of matrices) ``x``."""

def eig(a: Any) -> Any:
    """Compute the eigenvalues and right eigenvectors of a square array."""

def eigh(a: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues and eigenvectors of a complex Hermitian (conjugate symmetric) or a
    real symmetric matrix.
    """

def eigvals(a: Any) -> Any:
    """Compute the eigenvalues of a general matrix."""

def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Compute the eigenvalues of a complex Hermitian or real symmetric matrix."""

def inv(a: Any) -> Any:
    """Compute the inverse of a matrix."""

def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the least-squares solution to a linear matrix equation."""

def matmul(x1: Any, x2: Any, /) -> Any:
    """Computes the matrix product."""

def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: str = "fro") -> Any:
    """Computes the matrix norm of a matrix (or a stack of matrices) ``x``."""

def matrix_power(a: Any, n: Any) -> Any:
    """Raise a square matrix to the (integer) power `n`."""

def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Return matrix rank of array using SVD method"""

def matrix_transpose(x: Any, /) -> Any:
    """Transposes a matrix (or a stack of matrices) ``x``."""

def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Compute the dot product of two or more arrays in a single function call, while
    automatically selecting the fastest evaluation order.
    """

def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Matrix or vector norm."""

def outer(x1: Any, x2: Any, /) -> Any:
    """Compute the outer product of two vectors."""

def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = ...) -> Any:
    """Compute the (Moore-Penrose) pseudo-inverse of a matrix."""

def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute the qr factorization of a matrix."""

def slogdet(a: Any) -> Any:
    """Compute the sign and (natural) logarithm of the determinant of an array."""

def solve(a: Any, b: Any) -> Any:
    """Solve a linear matrix equation, or system of linear scalar equations."""

def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular Value Decomposition."""

def svdvals(x: Any, /) -> Any:
    """Returns the singular values of a matrix (or a stack of matrices) ``x``. When x is a stack
    of matrices, the function will compute the singular values for each matrix in the stack.
    """

def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Compute tensor dot product along specified axes."""

def tensorinv(a: Any, ind: Any = 2) -> Any:
    """Compute the 'inverse' of an N-dimensional array."""

def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve the tensor equation ``a x = b`` for x."""

def trace(x: Any, /, *, offset: Any = 0, dtype: DTypeLike = None) -> Any:
    """Returns the sum along the specified diagonals of a matrix (or a stack of matrices) ``x``."""

def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """Computes the vector dot product."""

def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Computes the vector norm of a vector (or batch of vectors) ``x``."""
