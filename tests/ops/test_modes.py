"""Every op supports every mode, except those listed here, each with its reason.

An op that is listed without need fails too, so the lists stay short.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

import gpugrad as gg
from gpugrad.errors import ArgumentError

HOME = Path(gg.__file__).parent

_ORDER = "the derivative by the order has no closed form, and neither SciPy nor a peer has it"
NO_RULE = {  # this gradient raises NoGradientError; those of the other inputs exist
    "iv": _ORDER, "ive": _ORDER, "jv": _ORDER, "kv": _ORDER, "kve": _ORDER, "yv": _ORDER,
    "zeta": "by x: the derivative of the Hurwitz zeta function by its exponent, which SciPy lacks",
    "gamma_reparameterized": "by the sample and where it came from: they are noise, not inputs",
}  # fmt: skip
LOOPS: dict[str, str] = {}
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
        if any(getattr(r, "is_missing", False) for r in op.rules)
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
    page = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (HOME / "ops" / "README.md").read_text() == page.stdout
