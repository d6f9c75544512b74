"""Declarations of SciPy's functions of several arguments or results, which SciPy computes."""

import functools
import inspect
from typing import Any

import numpy as np

from gpugrad.errors import ShapeError
from gpugrad.ops._scipy import library
from gpugrad.ops.special.common import need_real
from gpugrad.registry.record import names_in, op


def few(*choices):
    """Few samples: a list is a choice of integers, a tuple an interval of floats."""

    def samples(rng):
        for shape in ((3,), (), (0, 2)):
            yield (
                [
                    np.asarray((rng.choice if type(c) is list else rng.uniform)(*_args(c), shape))
                    for c in choices
                ],
                {},
            )

    return samples


def _args(choice):
    return (choice,) if type(choice) is list else choice


def forward_of(signature, complex_results=False, most=None):
    """A forward that calls SciPy in float64: its float32 loops may give NaN, or never end.

    The result has the dtype of the real arguments: integers, such as orders, do not widen float32.
    `most` are the largest absolute values, by argument, with which SciPy computes: beyond them, or
    with NaN, it may write past its arrays, so the result is NaN without a call.
    """
    name, arrays = names_in(signature)
    function = library(name)

    def forward(xp, *args):
        need_real(xp, *args)
        args = [xp.lib.asarray(a) for a in args]
        dtype = xp.lib.result_type(*(a for a in args if a.dtype.kind == "f"), xp.lib.float32)
        if complex_results:
            dtype = xp.lib.result_type(dtype, xp.lib.complex64)
        args = [a.astype(xp.lib.float64, copy=False) for a in args]
        outside = None
        if most is not None:
            near = [abs(a) <= most[name] for name, a in zip(arrays, args, strict=True)]
            outside = ~functools.reduce(xp.lib.logical_and, near)
            args = [xp.lib.where(outside, 1.0, a) for a in args]
        out = function(xp, *args)
        results = out if type(out) is tuple else (out,)
        if outside is not None:
            results = tuple(xp.lib.where(outside, xp.lib.nan, y) for y in results)
        results = tuple(y.astype(dtype) for y in results)
        return results if type(out) is tuple else results[0]

    parameters = [inspect.Parameter(a, inspect.Parameter.POSITIONAL_ONLY) for a in ("xp", *arrays)]
    forward.__dict__["__signature__"] = inspect.Signature(parameters)
    forward.__name__ = name
    return forward


def primitive(signature, vjp, doc, returns, example, complex_results=False, most=None, **record):
    """Declare SciPy's function of the name, with rules `vjp`; `example` is arguments and output."""
    name, arrays = names_in(signature)
    forward = forward_of(signature, complex_results, most)
    rules = [vjp] if callable(vjp) else filter(callable, vjp)
    forward.__module__ = next(iter(rules)).__module__  # where the op is declared
    unpack = "*" if record.get("outputs", 1) > 1 else ""
    forward.__doc__ = (
        f"{doc}\n\nReturns:\n    {returns}\n\n"
        f">>> print({unpack}gg.special.{name}({example[0]}))\n{example[1]}\n"
    )
    sizes = [np.ones(k) for k in (2, 3, 3, 3, 3)]
    wrong: list[Any] = [(sizes[: len(arrays)], {}, ShapeError, r"\(2,\).*\(3,\)")]
    fields = {"batch": "stack", "ref": f"scipy.special.{name}", "errors": wrong, **record}
    return op(vjp, **fields)(forward)


def every(signature, slopes):
    """A joint rule from partial derivatives ``slopes(xp, out, *args)`` by all arguments."""
    arrays = names_in(signature)[1]

    def rule(xp, g, out, args, shapes):
        partials = slopes(xp, out, *args)
        return tuple(
            xp.sum_to(xp.masked_multiply(g, d), s) for d, s in zip(partials, shapes, strict=True)
        )

    # the rule's parameters say what a tape saves
    shapes = ", ".join(f"{a}_shape" for a in arrays)
    text = f"lambda xp, g, out, {', '.join(arrays)}, {shapes}: "
    text += f"rule(xp, g, out, ({', '.join(arrays)},), ({shapes},))"
    joint = eval(text, {"rule": rule})
    joint.__module__ = slopes.__module__
    return joint
