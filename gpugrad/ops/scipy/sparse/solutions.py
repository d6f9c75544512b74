"""Solutions of systems with sparse matrices in CSR form, for `gpugrad.scipy.sparse.linalg`.

A solution is differentiated by the equation that it satisfies, whichever function has found it: the
adjoint is one more system with the conjugate transpose, solved by the same function.
"""

import warnings
import weakref
from typing import Any

import numpy as np

from gpugrad.core.backend import NUMPY
from gpugrad.core.devices import host
from gpugrad.core.forking import new_lock
from gpugrad.errors import (
    ArgumentError,
    DeviceError,
    GpugradWarning,
    ShapeError,
    SingularMatrixError,
)
from gpugrad.ops.scipy.sparse.products import (
    OF_TWO,
    TWO,
    batch_of,
    checked,
    csr,
    errors_of,
    example,
    full,
)
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate


class SingularSparseError(SingularMatrixError, RuntimeError):
    """A sparse matrix has no inverse. SciPy's `splu` raises a RuntimeError."""


# ---- solutions ---------------------------------------------------------------------------

_kept: dict[Any, Any] = {}
_keeping = new_lock()


def _factors(data, indices, indptr, kind):
    """SuperLU's factors of the transpose, kept as long as the array `data` is, as on a tape.

    The values are compared, as replays and optimizers write to arrays in place.
    """
    key, values = (id(data), kind), (data, indices, indptr)
    with _keeping:
        found = _kept.get(key)
    if found and found[0]() is data and all(map(np.array_equal, found[1], values)):
        return found[2]
    n = indptr.size - 1  # the arrays of CSR form are the transpose in CSC form, which SuperLU takes
    a = NUMPY.scipy("sparse").csc_array((data.astype(kind), indices, indptr), shape=(n, n))
    a.sum_duplicates()
    try:
        lu = NUMPY.scipy("sparse.linalg").splu(a)
    except RuntimeError as error:
        raise _singular(error) from error
    copies = data.copy(), *values[1:]
    with _keeping:
        _kept[key] = weakref.ref(data, lambda _: _kept.pop(key, None)), copies, lu
    return lu


def _singular(error):
    return SingularSparseError(
        f"csr_solve: the sparse matrix is singular: {error}. Add a small multiple of the identity, "
        "or use lsqr."
    )


def _by_factors(data, indices, indptr, b, adjoint, options):
    kind = np.result_type(data, b, np.float32)
    lu, b = _factors(data, indices, indptr, kind), np.ascontiguousarray(b, kind)
    return conjugate(np, lu.solve(conjugate(np, b), "N")) if adjoint else lu.solve(b, "T")


def _by_substitution(data, indices, indptr, b, adjoint, options):
    a = csr(data, indices, indptr, (b.shape[0],) * 2)
    lower = dict(options)["lower"]
    a, lower = (a.conj().T.tocsr(), not lower) if adjoint else (a, lower)
    try:
        return NUMPY.scipy("sparse.linalg").spsolve_triangular(a.tocsr(), b, lower)
    except np.linalg.LinAlgError as error:
        raise _singular(error) from error


def _by_iteration(xp, method, data, indices, indptr, b, adjoint, options):
    """SciPy's or cupyx's iterative solver, one right-hand side after the other."""
    options, shape = dict(options), (b.shape[0],) * 2
    kind, linalg = np.result_type(data, b, np.float32), xp.scipy("sparse.linalg")
    report = options.pop("report", None)

    def product(v):
        how = {"shape": shape, "adjoint": adjoint}
        return xp.csr_matmul(data, indices, indptr, v.reshape(-1), **how)

    if xp is NUMPY:  # SciPy's own product has no checks
        a = csr(data, indices, indptr, shape)
        a = a.conj().T if adjoint else a
    else:
        a = linalg.LinearOperator(shape, matvec=product, dtype=kind)
    columns, xs = b if b.ndim == 2 else b[:, None], []
    for k in range(columns.shape[1]):
        x, info = iterate(xp, method, a, columns[:, k].astype(kind), adjoint, options)
        if report is not None and not adjoint:
            report.info = max(report.info, info)
        xs.append(x)
    return xp.lib.stack(xs, axis=1).reshape(b.shape)


def iterate(xp, method, a, b, adjoint, options):
    """One solution by SciPy's or cupyx's function, and its status; warns without convergence.

    Args:
        a: a sparse matrix or an operator of arrays; of the adjoint system if `adjoint`.
        b: array of shape (n,).
        adjoint: whether the preconditioners among the options are those of the adjoint.
        options: dict of the function's arguments.
    """
    solve = getattr(xp.scipy("sparse.linalg"), method, None)
    if solve is None:
        raise DeviceError(f"{method}: cupyx.scipy.sparse.linalg lacks it. Move A to the CPU.")
    least = 8 * float(np.finfo(np.result_type(b, np.float32)).eps)
    options = {**options, "rtol": max(options.get("rtol", 1e-5), least)}
    if adjoint:  # that of M1 M2 is M2^H M1^H
        options.pop("x0", None)
        swapped = {"M": "M", "M1": "M2", "M2": "M1"}
        options = {
            swapped.get(k, k): v.H if k in swapped and v is not None else v
            for k, v in options.items()
        }
    x, info = solve(a, b, **options)
    if info:
        left = float(xp.lib.linalg.norm(b - a @ x))
        warnings.warn(
            f"{method}: no convergence after {info} iterations: the residual is {left:.3g}. "
            "The gradient is that of the exact solution.",
            GpugradWarning,
            stacklevel=2,
        )
    return x, int(info)


_DIRECT = {"lu": _by_factors, "triangular": _by_substitution}


def _solve_b(xp, g, data, indices, indptr, shape, adjoint, method, options):
    how = {"shape": shape, "adjoint": not adjoint, "method": method, "options": options}
    return xp.csr_solve(data, indices, indptr, g, **how)


def _solve_vjp(xp, g, out, data, indices, indptr, shape, adjoint, method, options):
    """The gradients by the entries and by the right-hand sides, from one solution."""
    y = _solve_b(xp, g, data, indices, indptr, shape, adjoint, method, options)
    left, right = (out, y) if adjoint else (y, out)
    by_data = -xp.csr_sampled(left, conjugate(xp, right), indices, indptr)
    return by_data, None, None, y


def _solve_samples(rng):
    yield example(rng, 3, 3, (3,), shift=3.0)
    yield example(rng, 3, 3, (3, 2), shift=3.0, adjoint=True)
    yield example(rng, 2, 2, (2, 0), shift=3.0)
    exact = (("rtol", 1e-12),)
    yield example(rng, 3, 3, (3, 2), shift=3.0, method="gmres", options=exact)
    yield example(rng, 3, 3, (3,), shift=3.0, method="bicgstab", options=exact, adjoint=True)


def _solve_ref(data, indices, indptr, b, shape, adjoint=False, method="lu", options=()):
    return np.linalg.solve(full(data, indices, indptr, shape, adjoint), b)


@op(
    vjp=_solve_vjp,
    kinds="fc",
    batch=batch_of("csr_solve"),
    ref=_solve_ref,
    samples=_solve_samples,
    errors=[
        *errors_of("csr_solve"),
        ([np.zeros(2), *TWO[1:], np.ones(2)], OF_TWO, SingularMatrixError, "csr_solve.*singular"),
        ([*TWO, np.ones(2)], {"shape": (2, 3)}, ShapeError, r"square.*\(2, 3\)"),
        ([*TWO, np.ones(2)], {**OF_TWO, "method": "qr"}, ArgumentError, "method='qr'"),
    ],
    captures=False,
)
def csr_solve(xp, data, indices, indptr, b, /, *, shape, adjoint=False, method="lu", options=()):
    """Solution of A x = b for a square sparse matrix A in CSR form.

    Args:
        data: array of shape (nnz,).
        indices: integers of shape (nnz,), the columns; without a derivative.
        indptr: integers of shape (n + 1,), where each row starts; without a derivative.
        b: array of shape (n,) or (n, k).
        shape: (n, n).
        adjoint: whether to solve with the conjugate transpose of A.
        method: ``"lu"``: by SuperLU, on the host also if the arrays are on a GPU; the factors are
            kept as long as the array `data`, so the gradient does not factorize again.
            ``"triangular"``, or an iterative one such as ``"cg"``: SciPy's function, whose solution
            is differentiated as an exact one.
        options: pairs of the names and values of SciPy's arguments.

    Returns:
        Tensor of the shape of `b`.

    >>> print(gg.csr_solve([2.0, 4.0], [0, 1], [0, 1, 2], [2.0, 2.0], shape=(2, 2)))
    [1.  0.5]
    """
    m, n = shape
    if m != n:
        raise ShapeError(f"csr_solve: a square matrix is needed, the shape is {tuple(shape)}.")
    checked("csr_solve", data, indices, indptr, shape, (b, n))
    if method not in (*_DIRECT, *ITERATIVE):
        raise ArgumentError(f"csr_solve: method={method!r} is none of {(*_DIRECT, *ITERATIVE)}.")
    if not b.size:
        return xp.lib.zeros(b.shape, dtype=np.result_type(data, b, np.float32))
    if method in ITERATIVE:
        return _by_iteration(xp, method, data, indices, indptr, b, adjoint, options)
    if xp is NUMPY:
        return _DIRECT[method](data, indices, indptr, b, adjoint, options)
    on_host = map(host, (data, indices, indptr, b))  # as cupyx, whose splu factorizes there
    return xp.lib.asarray(_DIRECT[method](*on_host, adjoint, options))


ITERATIVE = (
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "gcrotmk",
    "gmres",
    "lgmres",
    "minres",
    "qmr",
    "tfqmr",
)
"""SciPy's solvers that `csr_solve` takes as its method."""


# ---- least squares -----------------------------------------------------------------------


def _lstsq_vjp(xp, g, out, data, indices, indptr, b, shape, adjoint, method, options):
    """By the derivative of a pseudo-inverse (Golub and Pereyra, 1973), for any constant rank."""
    how = {"shape": shape, "method": method, "options": options}

    def inverse(b, adjoint):
        return xp.csr_lstsq(data, indices, indptr, b, adjoint=adjoint, **how)

    def product(x, adjoint):
        return xp.csr_matmul(data, indices, indptr, x, shape=shape, adjoint=adjoint)

    z = inverse(g, not adjoint)
    w, v = inverse(z, adjoint), inverse(out, not adjoint)
    pairs = [(-z, out), (b - product(out, adjoint), w), (v, g - product(z, not adjoint))]
    total = None
    for left, right in pairs:
        x, y = (right, left) if adjoint else (left, right)
        term = xp.csr_sampled(x, conjugate(xp, y), indices, indptr)
        total = term if total is None else total + term
    return total, None, None, z


def _lstsq_samples(rng):
    yield example(rng, 4, 2, (4,))
    yield example(rng, 4, 2, (2, 2), adjoint=True)
    yield example(rng, 3, 3, (3,), shift=3.0, method="lsmr")


def _lstsq_ref(data, indices, indptr, b, shape, adjoint=False, method="lsqr", options=()):
    return np.linalg.pinv(full(data, indices, indptr, shape, adjoint)) @ b


@op(
    vjp=_lstsq_vjp,
    kinds="fc",
    batch=batch_of("csr_lstsq"),
    ref=_lstsq_ref,
    samples=_lstsq_samples,
    errors=[
        *errors_of("csr_lstsq"),
        ([*TWO, np.ones(2)], {**OF_TWO, "method": "qr"}, ArgumentError, "method='qr'"),
    ],
    captures=False,
)
def csr_lstsq(xp, data, indices, indptr, b, /, *, shape, adjoint=False, method="lsqr", options=()):
    """The least solution of A x = b in the sense of least squares, for A in CSR form.

    Args:
        data: array of shape (nnz,).
        indices: integers of shape (nnz,), the columns; without a derivative.
        indptr: integers of shape (m + 1,), where each row starts; without a derivative.
        b: array of shape (m,) or (m, k); (n,) or (n, k) for the adjoint.
        shape: (m, n).
        adjoint: whether to take the conjugate transpose of A.
        method: ``"lsqr"`` or ``"lsmr"``: SciPy's function.
        options: pairs of the names and values of SciPy's arguments.

    Returns:
        Tensor of shape (n,) or (n, k); (m,) or (m, k) for the adjoint.

    >>> print(gg.csr_lstsq([1.0, 1.0], [0, 0], [0, 1, 2], [1.0, 3.0], shape=(2, 1)))
    [2.]
    """
    m, n = shape
    checked("csr_lstsq", data, indices, indptr, shape, (b, n if adjoint else m))
    if method not in ("lsqr", "lsmr"):
        raise ArgumentError(f"csr_lstsq: method={method!r} is neither 'lsqr' nor 'lsmr'.")
    on_host = [host(x) if xp is not NUMPY else x for x in (data, indices, indptr, b)]
    a, y = csr(*on_host[:3], shape), on_host[3]
    a = a.conj().T if adjoint else a
    solve = getattr(NUMPY.scipy("sparse.linalg"), method)
    columns = y if y.ndim == 2 else y[:, None]
    kind = np.result_type(data, b, np.float32)
    least = float(np.finfo(kind).eps)
    tight = {"atol": least, "btol": least} | dict(options)
    out = np.zeros((a.shape[1], columns.shape[1]), kind)
    for k in range(columns.shape[1] if y.size else 0):
        with np.errstate(over="ignore"):  # lsmr estimates a condition from 1e100, in float32
            out[:, k] = solve(a, columns[:, k], **tight)[0]
    return xp.lib.asarray(out.reshape(a.shape[1], *y.shape[1:]))
