"""Checks of what an op says of itself."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from typing import Any

import numpy as np

from gpugrad.testing.checks.subject import Subject, several
from gpugrad.testing.close import GradientCheckError, NearNumbers, about, assert_same, numbered

__all__ = ["check_documentation", "check_errors", "check_forward", "check_record"]


def _reference(op: Any) -> Any:
    """The function that the forward must equal; None if there is no function of that name."""
    if not isinstance(op.ref, str):
        return op.ref
    home, _, name = op.ref.rpartition(".")
    return getattr(importlib.import_module(home), name, None)


def check_record(s: Subject) -> None:
    """The record is complete: kinds, samples, a reference, calls that must fail."""
    op, missing = s.op, []
    if not op.kinds or not set(op.kinds) <= set("fcib"):
        missing.append(f"kinds ({op.kinds!r} are not among 'f', 'c', 'i', 'b')")
    if not s.calls:
        missing.append("samples")
    if _reference(op) is None:
        missing.append("ref, the function that its forward must equal")
    if not op.errors:
        missing.append("errors, calls that must fail")
    if missing:
        raise GradientCheckError(f"{op.name}: its record lacks {'; '.join(missing)}.")


def check_documentation(s: Subject) -> None:
    """There is a docstring that names every argument and says the shape, and its example runs."""
    op = s.op
    if not op.doc:
        raise GradientCheckError(f"{op.name}: it has no docstring.")
    unnamed = [n for n in (*op.arrays, *op.params) if not re.search(rf"\b{n}\b", op.doc)]
    if unnamed:
        raise GradientCheckError(f"{op.name}: its docstring does not say what {unnamed} are.")
    _check_shape(s)
    names = {"gg": sys.modules["gpugrad"], "np": np}  # which every example may use
    example = doctest.DocTestParser().get_doctest(op.doc, names, op.name, None, 0)
    if not example.examples:
        raise GradientCheckError(f"{op.name}: its docstring has no example (>>> ...).")
    said: list[str] = []
    if doctest.DocTestRunner(NearNumbers(), verbose=False).run(example, out=said.append).failed:
        raise GradientCheckError(f"{op.name}: the example in its docstring fails.\n{''.join(said)}")


def _check_shape(s: Subject) -> None:
    """Where the docstring says that the result has the shape of an argument, it has."""
    said = re.search(r"^Returns:\n    Tensor of the shape of `(\w+)`\.$", s.op.doc, re.MULTILINE)
    if said is None or said[1] not in s.op.arrays:
        return
    for sample in (*s.every, *s.whole):
        args, _ = sample.filled(sample.leaves)
        shape = np.shape(args[s.op.arrays.index(said[1])])
        if (got := sample.results()[0].shape) != shape:
            raise GradientCheckError(
                f"{sample.title}: the docstring says that the result has the shape of {said[1]}, "
                f"{shape}. It has {got}."
            )


def check_errors(s: Subject) -> None:
    """Each call in `errors` fails with its class, in words that name the op."""
    op = s.op
    for k, (args, keywords, expected, words) in enumerate(op.errors):
        title = f"{op.name}, error {k}"
        try:
            result = op.eager(*args, **keywords)
        except Exception as error:
            raised = error
        else:
            raise GradientCheckError(
                f"{title}: the call returned {result!r:.80}, it should raise {expected.__name__}."
            )
        if not isinstance(raised, expected):
            raise GradientCheckError(
                f"{title}: {type(raised).__name__} instead of {expected.__name__}: {raised}"
            ) from raised
        text = str(raised)
        if not re.match(rf"{op.name}\b", text) or not re.search(words, text):
            raise GradientCheckError(
                f"{title}: the message should begin with {op.name} and match {words!r}. It is: "
                f"{text}"
            )


def check_forward(s: Subject) -> None:
    """The results equal those of the reference."""
    ref = _reference(s.op)
    if ref is None:
        return
    for sample in (*s.every, *s.whole):
        args, keywords = sample.filled(
            [a.copy() if isinstance(a, np.ndarray) else a for a in sample.leaves]
        )
        with about(sample.title, "the forward"):
            results = sample.results()
        with np.errstate(all="ignore"):
            desired = ref(*args, **keywords)
        desired = several(desired) if s.op.outputs > 1 else [desired]
        assert_same(sample.title, "the forward and ref", numbered(results), results, desired)
