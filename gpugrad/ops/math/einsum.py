"""Sums of products in Einstein's notation."""

import functools
import math
import operator

import numpy as np

from gpugrad.core.backend import NUMPY, TENSOR
from gpugrad.core.samples import uniform
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.math.products import captures_products
from gpugrad.registry.on_arrays import through_float32
from gpugrad.registry.record import op
from gpugrad.registry.rules import conjugate

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@functools.lru_cache(maxsize=1024)
def _labels(subscripts, ndims):
    """Labels of each operand's axes and of the result's, with the ellipsis spelt out.

    >>> _labels("...ij,jk", (3, 2))
    (('aij', 'jk'), 'aik')
    """
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    hidden = [n - len(t) + 3 if "..." in t else 0 for t, n in zip(terms, ndims, strict=True)]
    dots = "".join(c for c in _LETTERS if c not in subscripts)[: max(hidden)]
    if not arrow:
        seen = left.replace(",", "").replace(".", "")
        result = "..." + "".join(sorted(c for c in set(seen) if seen.count(c) == 1))
    spelt = (t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, hidden, strict=True))
    return tuple(spelt), result.replace("...", dots)


def _einsum_vjp(xp, g, i, operands, subscripts):
    terms, result = _labels(subscripts, tuple(x.ndim for x in operands))
    own, shape = terms[i], operands[i].shape
    others = [conjugate(xp, x) for k, x in enumerate(operands) if k != i]
    inputs = ",".join([result, *terms[:i], *terms[i + 1 :]])
    once = "".join(dict.fromkeys(own))
    kept = "".join(c for c in once if c in inputs)
    y = xp.einsum([g, *others], subscripts=f"{inputs}->{kept}")
    lengths = dict(zip(own, shape, strict=True))
    full_shape = tuple(lengths[c] for c in once)
    if y.shape != full_shape:  # other operands lack some labels, or broadcast lengths of 1
        have = dict(zip(kept, y.shape, strict=True))
        y = xp.reshape(y, tuple(have.get(c, 1) for c in once))
        y = xp.sum_to(
            y, tuple(1 if n == 1 else m for m, n in zip(y.shape, full_shape, strict=True))
        )
        y = xp.broadcast_to(y, full_shape)
    return y if once == own else _on_diagonals(xp, y, once, own)


def _on_diagonals(xp, y, once, own):
    """Put `y`, with each label once, where the operand with repeated labels was read."""
    labels = once
    for c in once:
        for _ in range(own.count(c) - 1):
            y = xp.moveaxis(y, labels.index(c), -1)
            y = xp.diagonal_scatter(y, offset=0, shape=(*y.shape, y.shape[-1]))
            labels = labels.replace(c, "", 1) + c + c
    places = {c: [k for k, label in enumerate(labels) if label == c] for c in once}
    return xp.permute_dims(y, tuple(places[c].pop() for c in own))


def _einsum_batch(xp, batched, operands, *, subscripts):
    ranks = tuple(x.ndim - b for x, b in zip(operands, batched, strict=True))
    terms, result = _labels(subscripts, ranks)
    example = next(c for c in _LETTERS if c not in "".join(terms))
    named = (example + t if b else t for t, b in zip(terms, batched, strict=True))
    return xp.einsum(operands, subscripts=f"{','.join(named)}->{example}{result}")


_CASES = (
    ("ij,jk->ik", (2, 3), (3, 2)), ("ij,jk", (2, 3), (3, 2)), ("ba", (2, 3)),
    ("i,i->", (3,), (3,)), ("i,j->", (3,), (2,)), ("ij->", (2, 3)), (",->", (), ()),
    ("ii->i", (3, 3)), ("ii", (3, 3)), ("iii->i", (2, 2, 2)), ("ijji->", (2, 3, 3, 2)),
    ("iij,jk->k", (2, 2, 3), (3, 2)), ("ij,j,kj->ik", (2, 3), (3,), (2, 3)),
    ("...i,...i->...", (2, 1, 3), (4, 3)), ("i...->...", (2, 3)), ("...", (2, 3)),
    ("ij,jk->ik", (0, 3), (3, 2)), ("ij,j->i", (2, 0), (0,)), ("i,i->i", (1,), (3,)),
    ("i,i->", (3,), (1,)), (" b i , b j -> b i j", (2, 2), (2, 3)),
)  # fmt: skip


def _einsum_samples(rng):
    for subscripts, *shapes in _CASES:
        yield [[uniform(rng, *s) for s in shapes]], {"subscripts": subscripts}


@op(
    vjp=_einsum_vjp,
    variadic=True,
    linear="each",
    name="einsum",
    native_half=True,
    batch=_einsum_batch,
    kinds="fc",
    ref=lambda operands, subscripts: np.einsum(subscripts, *operands),
    samples=_einsum_samples,
    errors=[
        ([[np.ones((2, 3)), np.ones((2, 3))]], {"subscripts": "ij,jk"}, ShapeError, "einsum"),
        ([[np.ones(3)]], {"subscripts": "ij"}, ArgumentError, "einsum.*ij"),
        ([[np.ones(3)]], {"subscripts": "i,i"}, ArgumentError, "einsum"),
        ([[np.ones(3)]], {"subscripts": "i->j"}, ArgumentError, "einsum"),
    ],
    captures=captures_products,
    opens=lambda operands, subscripts: "c",
)
def _einsum(xp, operands, /, *, subscripts):
    """The op behind `gg.einsum`, which takes the labels first."""
    if xp is not NUMPY:
        return _by_products(xp, operands, subscripts)
    # NumPy's plain loop wins on small arrays (5 us; finding a path takes 35 us), BLAS from
    # 64 x 64 on
    many = len(operands) > 2 or max(x.size for x in operands) > 2048
    return _by_numpy(operands, subscripts, many)


@functools.partial(through_float32, values=(0,))
def _by_numpy(operands, subscripts, optimize):
    return np.einsum(subscripts, *operands, optimize=optimize)


def _by_products(xp, operands, subscripts):
    """By `matmul`, which a CUDA graph can capture, unlike CuPy's einsum."""
    terms, result = _labels(subscripts, tuple(x.ndim for x in operands))
    pool = list(zip(operands, terms, strict=True))
    for places in _order(subscripts, tuple(x.shape for x in operands)):
        first, *others = (pool[k] for k in sorted(places))
        pool = [x for k, x in enumerate(pool) if k not in places]
        for k, other in enumerate(others):
            rest = (labels for _, labels in (*pool, *others[k + 1 :]))
            first = _product(xp, first, other, set(result).union(*rest))
        pool.append(first)
    x, labels = _reduced(xp, *pool[0], result)
    return xp.permute_dims(x, tuple(map(labels.index, result)))


@functools.lru_cache(maxsize=1024)
def _order(subscripts, shapes):
    """NumPy's plan of which operands to multiply in turn; ValueError if they do not fit."""
    arrays = (np.broadcast_to(0.0, shape) for shape in shapes)
    return np.einsum_path(subscripts, *arrays, optimize="greedy")[0][1:]


def _reduced(xp, x, labels, wanted):
    """An operand with each label once, summed over unneeded labels; and its labels."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            axis = labels.index(c)
            x = xp.diagonal(x, 0, axis, labels.index(c, axis + 1))
            labels = labels.replace(c, "", 2) + c
    gone = tuple(k for k, c in enumerate(labels) if c not in wanted)
    return (xp.sum(x, axis=gone) if gone else x), "".join(c for c in labels if c in wanted)


def _product(xp, one, other, wanted):
    """The product of two operands, summed over labels that occur nowhere else."""
    x, a = _reduced(xp, *one, wanted.union(other[1]))
    y, b = _reduced(xp, *other, wanted.union(a))
    left, right = [c for c in a if c not in b], [c for c in b if c not in a]
    shared = [c for c in a if c in b]
    stack, inner = [c for c in shared if c in wanted], [c for c in shared if c not in wanted]
    lengths = dict(zip(b, y.shape, strict=True))
    for c, n in zip(a, x.shape, strict=True):
        lengths[c] = n if lengths.get(c, 1) == 1 else lengths[c]

    def laid_out(z, labels, order):
        z = xp.permute_dims(z, tuple(map(labels.index, order)))
        return xp.broadcast_to(z, tuple(lengths[c] for c in order))

    def size(labels):
        return math.prod(lengths[c] for c in labels)

    x, y = laid_out(x, a, [*stack, *left, *inner]), laid_out(y, b, [*stack, *inner, *right])
    lead, labels = tuple(lengths[c] for c in stack), "".join([*stack, *left, *right])
    x = xp.reshape(x, (*lead, size(left), size(inner)))
    y = xp.reshape(y, (*lead, size(inner), size(right)))
    z = xp.matmul(x, y) if inner else xp.multiply(x, y)
    return xp.reshape(z, tuple(lengths[c] for c in labels)), labels


def _spelt(operands):
    """``a, [0, 1], b, [1, 2], [0, 2]`` as subscripts and operands."""
    letters = sorted(_LETTERS)  # so that the order of the letters is that of the numbers

    def term(labels):
        try:
            return "".join("..." if k is Ellipsis else letters[operator.index(k)] for k in labels)
        except (TypeError, IndexError):
            raise ArgumentError(
                "einsum: pass subscripts first, as a string, or a list of labels, ints from 0 to "
                f"51, after each operand; got {labels!r:.60}."
            ) from None

    arrays, terms = operands[: len(operands) // 2 * 2 : 2], list(map(term, operands[1::2]))
    result = f"->{term(operands[-1])}" if len(operands) % 2 else ""
    return ",".join(terms) + result, arrays


def einsum(subscripts, *operands, optimize=None) -> Tensor:
    """Sum products over labelled axes, in Einstein's notation.

    Args:
        subscripts: labels of each operand's axes and, after ``->``, of the result's:
            ``"ij,jk->ik"``. Labels that the result lacks are summed over; a label that an operand
            repeats takes its diagonal; ``...`` stands for all other axes, which are broadcast.
            Without ``->`` the result has the labels that occur once, sorted.
        *operands: arrays, or numbers. As in NumPy, lists of ints may stand for subscripts:
            ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
        optimize: accepted for NumPy; the order of the products is always chosen.

    Returns:
        Tensor with the axes that the subscripts name. Of one Tensor whose axes are only reordered
        it is a view, as in NumPy; a diagonal is read-only.

    Raises:
        ArgumentError: the subscripts do not fit the operands.
        ShapeError: axes of one label have different lengths.

    >>> print(gg.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [10.0, 1.0]))
    [12. 34.]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _spelt([subscripts, *operands])
    if len(operands) == 1 and isinstance(operands[0], Tensor) and "," not in subscripts:
        (term,), result = _labels(subscripts, (operands[0].ndim,))
        if len(term) == operands[0].ndim and sorted(result) == sorted(set(term)):
            return _by_products(TENSOR, operands, subscripts)
    return _einsum(list(operands), subscripts=subscripts)
