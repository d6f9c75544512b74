"""Every op supports every mode, except those listed here, each with its reason.

An op that is listed without need fails too, so the lists stay short.
"""

from pathlib import Path

import numpy as np
import pytest
from fresh import output_of

import gpugrad as gg
from gpugrad.errors import ArgumentError, GpugradError

HOME = Path(gg.__file__).parent

_ORDER = "the derivative by the order has no closed form, and neither SciPy nor a peer has it"
_PARAMETERS = "the derivative by a parameter is no function of the same kind"
NO_RULE = {  # this gradient raises NoGradientError; those of the other inputs exist
    "iv": _ORDER, "ive": _ORDER, "jv": _ORDER, "kv": _ORDER, "kve": _ORDER, "yv": _ORDER,
    "zeta": "by x: the derivative of the Hurwitz zeta function by its exponent, which SciPy lacks",
    "zetac": "as zeta", "hyp0f1": _PARAMETERS, "hyp1f1": _PARAMETERS, "hyp2f1": _PARAMETERS,
    "hyperu": _PARAMETERS, "wright_bessel": _PARAMETERS, "eval_jacobi": _PARAMETERS,
    "eval_gegenbauer": _PARAMETERS, "eval_genlaguerre": _PARAMETERS, "struve": _ORDER,
    "modstruve": _ORDER, "lpmv": _ORDER, "jve": _ORDER, "yve": _ORDER, "hankel1": _ORDER,
    "hankel1e": _ORDER, "hankel2": _ORDER, "hankel2e": _ORDER, "besselpoly": _ORDER,
    "eval_sh_jacobi": _PARAMETERS, "log_wright_bessel": _PARAMETERS,
    "gamma_reparameterized": "by the sample and where it came from: they are noise, not inputs",
}  # fmt: skip
NO_RULE_OF = {"gpugrad.ops.special.equations": "the equation of a function has derivatives by x"}
LOOPS = {"spline_spread": "of orders above 1 a batch axis would take part in the spline"}
_SIZE = "the size of the result depends on the values, so examples would differ in shape"
NOT_UNDER_VMAP = {  # it raises ArgumentError, which names vmap and the way out
    "argwhere": _SIZE, "compress": _SIZE, "flatnonzero": _SIZE, "unique_all": _SIZE,
    "bincount": "without minlength= its length depends on the values",
}  # fmt: skip


def _differentiable():
    return {n: op for n, op in gg.OPS.items() if op.differentiable and "<" not in op.home}


def test_there_are_at_least_450_ops():
    assert len(gg.OPS) >= 450


def test_ops_without_a_rule_for_an_input_are_listed():
    missing = {
        n
        for n, op in _differentiable().items()
        if any(getattr(r, "is_missing", False) for r in op.rules) and op.home not in NO_RULE_OF
    }
    assert missing == set(NO_RULE)


def test_ops_that_vmap_runs_example_by_example_are_listed():
    loops = {
        n
        for n, op in gg.OPS.items()
        if op.batch == "loop"
        or (op.batch is None and op.kind != "elementwise" and not
            (op.kind == "composite" and op.differentiable))
    }  # fmt: skip
    assert loops == set(LOOPS)


def _refuses(op):
    """Whether vmap over all arrays of an op's samples raises an error that names vmap."""
    for args, keywords in op.samples(np.random.default_rng(0)):
        leaves = [np.asarray(a) for a in args if isinstance(a, np.ndarray)]
        if op.variadic or len(leaves) != len(args):
            continue
        try:
            gg.vmap(lambda *xs, op=op, keywords=keywords: op.eager(*xs, **keywords))(
                *[np.stack([a, a]) for a in leaves]
            )
        except ArgumentError as error:
            if "vmap" in str(error):
                return True
            raise
    return False


def test_ops_that_vmap_refuses_are_listed():
    refused = {n for n, op in gg.OPS.items() if callable(op.batch) and _refuses(op)}
    assert refused == set(NOT_UNDER_VMAP)


def test_page_of_the_ops_matches_the_registry():
    """If this fails, run: ci/ops_page > gpugrad/ops/README.md"""
    script = HOME.parent / "ci" / "ops_page"
    assert (HOME / "ops" / "README.md").read_text() == output_of(script)


INTERNAL = {  # public functions check the axes of an example before they call these
    "bin_edges", "cholesky_grad", "flash_attention", "masked_softmax", "order_statistics",
    "window_argmax", "window_max",
}  # fmt: skip
WRITES = {"index_put", "setitem"}  # they broadcast a value with too many axes of length 1


def _calls(op):
    """The arrays and parameters of the samples of an op, for those that are arrays only."""
    for sample in op.samples(np.random.default_rng(0)):
        arrays, params = sample if isinstance(sample, tuple) else (sample, {})
        if all(isinstance(a, (np.ndarray, np.generic, float)) for a in arrays):
            yield [np.asarray(a) for a in arrays], params


def _raises(f):
    try:
        f()
    except GpugradError:
        return True
    return False


def _accepts_only_batched(op, arrays, params):
    """Whether an op refuses arrays, but takes two examples of the first: then it mixes them."""
    first, *others = arrays

    def call(x):
        return op.eager(x, *map(gg.asarray, others), **params)

    both = gg.asarray(np.stack([first] * max(2, *first.shape, 2)))
    with np.errstate(all="ignore"):
        return _raises(lambda: call(gg.asarray(first))) and not _raises(lambda: gg.vmap(call)(both))


def _primitives():
    return {n: op for n, op in gg.OPS.items() if not op.variadic and "<" not in op.home}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_axis_out_of_bounds_is_never_the_batch_axis_of_vmap():
    mixed = set()
    for name, op in _primitives().items():
        key = next((k for k in ("axis", "axes") if k in op.params), None)
        for arrays, params in _calls(op) if key else ():
            n = arrays[0].ndim
            for axis in (n, -n - 1):
                old = params.get(key)
                value = (axis, *old[1:]) if isinstance(old, tuple) else axis
                if _accepts_only_batched(op, arrays, {**params, key: value}):
                    mixed.add(name)
    assert not mixed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_batch_of_examples_with_too_few_axes_is_not_one_matrix():
    mixed = set()
    for name, op in _primitives().items():
        if name in INTERNAL | WRITES:
            continue
        for (first, *others), params in _calls(op):
            for n in range(first.ndim if first.size else 0):
                less = np.asarray(first[(0,) * (first.ndim - n)])
                if _accepts_only_batched(op, [less, *others], params):
                    mixed.add(name)
    assert not mixed


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "std", "any", "nanmax"])
@pytest.mark.parametrize("axis", [0, -1])
def test_reductions_of_0d_examples_take_axis_0_as_those_of_0d_arrays_do(name, axis):
    x, f = gg.asarray([1.5, -2.0, 4.0]), getattr(gg, name)
    got = gg.vmap(lambda example: f(example, axis=axis))(x)
    assert got.tolist() == [f(example, axis=axis).item() for example in x]
