"""Checks of an op's record, documentation, error messages and reference."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from typing import Any

import numpy as np

from gpugrad.registry.docs import is_part
from gpugrad.testing.checks.subject import Subject, as_list
from gpugrad.testing.close import (
    GradientCheckError,
    NearNumbers,
    assert_same,
    name_failure,
    result_names,
)


def _reference(op: Any) -> Any:
    """The function that the forward must equal; None if no function has that name."""
    if not isinstance(op.ref, str):
        return op.ref
    home, _, name = op.ref.rpartition(".")
    return getattr(importlib.import_module(home), name, None)


def check_record(s: Subject) -> None:
    """Check that the record has kinds, samples, a reference, and calls that must fail."""
    op, missing = s.op, []
    if not op.kinds or not set(op.kinds) <= set("fcib"):
        missing.append(f"kinds ({op.kinds!r} are not among 'f', 'c', 'i', 'b')")
    if not s.calls:
        missing.append("samples")
    if _reference(op) is None:
        missing.append("ref (the function that its forward must equal)")
    if not op.errors:
        missing.append("errors (calls that must fail)")
    if missing:
        raise GradientCheckError(f"{op.name}: its record lacks {'; '.join(missing)}.")


def check_documentation(s: Subject) -> None:
    """Check that the docstring names all arguments and the right shape, and run its example."""
    op = s.op
    if not op.doc:
        raise GradientCheckError(f"{op.name}: it has no docstring.")
    unnamed = [n for n in (*op.arrays, *op.params) if not re.search(rf"\b{n}\b", op.doc)]
    if unnamed:
        raise GradientCheckError(f"{op.name}: its docstring does not describe {unnamed}.")
    _check_shape(s)
    names = {"gg": sys.modules["gpugrad"], "np": np}  # available to every example
    example = doctest.DocTestParser().get_doctest(op.doc, names, op.name, None, 0)
    if not example.examples and not is_part(op.doc):
        raise GradientCheckError(f"{op.name}: its docstring has no example (>>> ...).")
    report: list[str] = []
    if doctest.DocTestRunner(NearNumbers(), verbose=False).run(example, out=report.append).failed:
        text = "".join(report)
        raise GradientCheckError(f"{op.name}: the example in its docstring fails.\n{text}")


def _check_shape(s: Subject) -> None:
    """Check a docstring's claim that the result has the shape of an argument."""
    claim = re.search(r"^Returns:\n    Tensor of the shape of `(\w+)`\.$", s.op.doc, re.MULTILINE)
    if claim is None or claim[1] not in s.op.arrays:
        return
    for sample in (*s.samples, *s.integer_samples):
        args, _ = sample.bind_leaves(sample.leaves)
        shape = np.shape(args[s.op.arrays.index(claim[1])])
        if (got := sample.results()[0].shape) != shape:
            raise GradientCheckError(
                f"{sample.title}: the docstring says that the result has the shape of {claim[1]}, "
                f"{shape}. Its shape is {got}."
            )


def check_errors(s: Subject) -> None:
    """Check that each call in `errors` raises its class with a message that names the op."""
    op = s.op
    for k, (args, keywords, expected, words) in enumerate(op.errors):
        title = f"{op.name}, error {k}"
        try:
            result = op.eager(*args, **keywords)
        except Exception as error:
            raised = error
        else:
            raise GradientCheckError(
                f"{title}: the call returned {result!r:.80}, expected {expected.__name__}."
            )
        if not isinstance(raised, expected):
            raise GradientCheckError(
                f"{title}: got {type(raised).__name__}, expected {expected.__name__}: {raised}"
            ) from raised
        text = str(raised)
        if not re.match(rf"{op.name}\b", text) or not re.search(words, text):
            raise GradientCheckError(
                f"{title}: the message must begin with {op.name} and match {words!r}, got: {text}"
            )


def check_forward(s: Subject) -> None:
    """Check that the results equal those of the reference."""
    ref = _reference(s.op)
    if ref is None:
        return
    for sample in (*s.samples, *s.integer_samples):
        args, keywords = sample.bind_leaves(
            [a.copy() if isinstance(a, np.ndarray) else a for a in sample.leaves]
        )
        with name_failure(sample.title, "the forward"):
            results = sample.results()
        with np.errstate(all="ignore"):
            desired = ref(*args, **keywords)
        desired = as_list(desired) if s.op.outputs > 1 else [desired]
        assert_same(sample.title, "the forward and ref", result_names(results), results, desired)
