"""`out=` of every op that has it: gradients are those of a call without it, and of older values."""

import inspect

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import DTypeError
from gpugrad.registry.numpys_form import numpys_function


def _takes_out(name):
    op = gg.OPS[name]
    function = numpys_function(op)
    if function is None or getattr(gg, name, op.eager) is not op.eager:  # see test_call_is_numpys
        return False
    try:
        return isinstance(function, np.ufunc) or "out" in inspect.signature(function).parameters
    except ValueError:  # of a function in C, before NumPy 2.4
        return False


def _tuple(result):
    return result if isinstance(result, tuple) else (result,)


def _is_float(x):
    return x.dtype.kind in "fc"


def _square(xs):
    return sum((gg.sum(gg.abs(x) ** 2) for x in xs if _is_float(x)), start=gg.zeros(()))


def _same(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_equal(*(None if x is None else x.numpy() for x in (a, e)))


@pytest.mark.parametrize("name", [name for name in gg.OPS if _takes_out(name)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_out_keeps_gradients_right(name):
    """Of the result, of what a tape has saved of `out`, and of arguments that are `out`."""
    op = gg.OPS[name]
    args, keywords = next(iter(op.samples(np.random.default_rng(0))))
    arrays = [gg.asarray(a) for a in (args[0] if op.variadic else args)]

    def run(copies, **out):
        return _tuple(op.eager(*([copies] if op.variadic else copies), **keywords, **out))

    def as_out(results):
        return {"out": tuple(results) if len(results) > 1 else results[0]}

    plain = run(arrays)
    variables = [gg.Variable(y, trainable=False) for y in plain]
    with pytest.raises(DTypeError, match=r"v\.assign"):
        run(arrays, **as_out(variables))
    _same([v.value() for v in variables], plain)

    with gg.GradientTape(persistent=True) as tape:
        copies = [gg.positive(a) if a.dtype != bool else a for a in arrays]
        ones = [gg.ones_like(y) for y in plain]
        tape.watch([x for x in (*copies, *ones) if _is_float(x)])
        saved = [gg.exp(w) if _is_float(w) else w for w in ones]
        older, expected = _square(saved), run(copies)
        _same(run(copies, **as_out(saved)), plain)
        of_plain, of_out = _square(expected), _square(saved)
        fits = len(plain) == 1 and (arrays[0].shape, arrays[0].dtype) == (
            plain[0].shape,
            plain[0].dtype,
        )
        x = gg.multiply(copies[0], 1)
        if fits:
            run([x, *copies[1:]], out=x)
        of_itself = _square([x]) if fits else of_plain
    sources = list(filter(_is_float, copies))
    gradients = tape.gradient(of_plain, sources)
    _same(tape.gradient(of_out, sources), gradients)
    _same(tape.gradient(of_itself, sources), gradients)
    for w in filter(_is_float, ones):
        np.testing.assert_allclose(tape.gradient(older, w), np.full(w.shape, 2 * np.exp(2)), 1e-6)
