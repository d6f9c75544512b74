"""The parameters of NumPy's functions, which an op's function takes beside its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.forking import import_module
from gpugrad.core.known_as import keyword_error, names_elsewhere

UFUNCS = ("out", "where", "dtype")
"""The keywords of NumPy's ufuncs that an op takes; each costs 5 ns."""

RENAMED = {"a_max": "max", "a_min": "min", "reps": "repetitions"}
"""The names of ops for parameters of NumPy's functions."""


def numpys_form(op: Any, keywords: Sequence[str] = UFUNCS) -> tuple[str, list[str]]:
    """The parameters of an op's function, and the line for calls that only NumPy's function takes.

    They are in NumPy's order, unless the op has another. A parameter that only NumPy's function has
    is None if it is not given. Names of other libraries, which are refused, come as ``**_others``:
    each as a parameter of its own would cost every call 10 ns.
    """
    own = op.signature.parameters
    theirs = _numpys_parameters(op, keywords)
    places = [p.name for p in own.values() if p.kind is p.POSITIONAL_OR_KEYWORD or _may_lack(p)]
    in_order = [p.name for p in theirs][: len(places)] == places
    merged = {n: p for n, p in own.items() if p.kind is not p.KEYWORD_ONLY}
    last, others = dict[str, inspect.Parameter](), []
    for p in theirs:
        if p.name in merged:
            continue
        if p.name not in own:
            others.append(p.name)
        is_placed = in_order and p.kind is p.POSITIONAL_OR_KEYWORD
        (merged if is_placed else last)[p.name] = inspect.Parameter(
            p.name,
            p.kind if is_placed else p.KEYWORD_ONLY,
            default=own[p.name].default if p.name in own else None,
        )
    merged |= {n: p for n, p in own.items() if n not in merged} | last
    tests, wrong = [f"{k} is not None" for k in others], ""
    if not elsewhere(op).keys() <= merged.keys():
        merged["_others"] = inspect.Parameter("_others", inspect.Parameter.VAR_KEYWORD)
        tests, wrong = [*tests, "_others"], ", _others"
    parameters = parameters_text(op.signature.replace(parameters=list(merged.values())))
    if not tests:
        return parameters, []
    arrays = "".join(f"{n}, " for n in op.arrays)
    params, given = (", ".join(f"{k!r}: {k}" for k in names) for names in (op.params, others))
    call = f"by_numpy(({arrays}), {{{params}}}, {{{given}}}{wrong})"
    return parameters, [f"if {' or '.join(tests)}: return {call}"]


def elsewhere(op: Any) -> dict[str, str]:
    """The op's parameters by the names that they have in other libraries.

    Not those that must be given: Python itself says that one is missing, or another too much.
    """
    if not op.home.startswith("gpugrad."):
        return {}
    names = names_elsewhere("a keyword")
    optional = [k for k, default in op.params.items() if default is not inspect.Parameter.empty]
    return {theirs: here for here in optional for theirs in names.get(here, ())}


def refuse_others(op: Any, others: Iterable[str]) -> None:
    """Raise TypeError if there are other keywords; it says what one of another library is here."""
    if unknown := [*others]:
        error = keyword_error(op.name, op.params, [k for k in unknown if k in elsewhere(op)])
        raise error or TypeError(f"{op.name}() got an unexpected keyword argument {unknown[0]!r}")


def _may_lack(p: inspect.Parameter) -> bool:
    """Whether a parameter is an array that may be left out."""
    return p.kind is p.POSITIONAL_ONLY and p.default is not p.empty


def _numpys_parameters(op: Any, keywords: Sequence[str]) -> list[inspect.Parameter]:
    """The parameters of NumPy's function beside the op's required arrays, by the op's names.

    The keywords of ufuncs may be positional, which Python passes faster by 10 ns each.
    """
    function, either = numpys_function(op), inspect.Parameter.POSITIONAL_OR_KEYWORD
    if isinstance(function, np.ufunc):
        names = [k for k in keywords if k != "where" or function.signature is None]
        return [inspect.Parameter(k, either, default=None) for k in names]
    try:
        theirs = list(numpys_signature(function).parameters.values())
    except (TypeError, ValueError):  # no such function; before NumPy 2.4, one in C
        return []
    theirs = theirs[len(op.arrays) - len(op.optional) :]
    named: dict[str, inspect.Parameter] = {}
    for p in theirs:
        name = RENAMED.get(p.name, p.name)
        if p.kind is p.VAR_KEYWORD or name in ("device", "like"):
            continue
        if p.kind is p.VAR_POSITIONAL or (p.default is p.empty and name not in op.params):
            return []  # its arrays are other arguments than the op's
        named.setdefault(name, p.replace(name=name))
    return list(named.values())


_IN_C: dict[str, Any] = {
    "dot": lambda a, b, out=None: None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
}
"""NumPy's functions in C with further parameters than the op: before NumPy 2.4 none was known."""


def numpys_signature(function: Any) -> inspect.Signature:
    """The signature of NumPy's function; ValueError or TypeError if it has none."""
    try:
        return inspect.signature(function)
    except ValueError:
        known = _IN_C.get(function.__name__)
        if known is None:
            raise
        return inspect.signature(known)


_NUMPYS = {"arrays": ["numpy"], "math": ["numpy"], "linalg": ["numpy.linalg", "numpy"]}
_NUMPYS["fft"] = ["numpy.fft"]
"""NumPy imports some of them when they are first asked for: a fork waits for `import_module`."""


def numpys_function(op: Any) -> Any:
    """NumPy's function with the name of an op, or None."""
    if not op.home.startswith("gpugrad.ops."):  # a user's op is no function of NumPy
        return None
    if op.ufunc is not None:
        return op.ufunc
    part = op.home.removeprefix("gpugrad.ops.").partition(".")[0]
    modules = [import_module(name) for name in _NUMPYS.get(part, ())]
    found = [f for m in modules if (f := getattr(m, op.name, None)) is not None]
    return found[0] if found and not isinstance(found[0], type) else None


def parameters_text(signature: inspect.Signature) -> str:
    """A signature as text, without types; defaults other than None by the name _d_NAME."""
    ps = [
        p.replace(
            annotation=p.empty,
            default=p.default if p.default in (p.empty, None) else _Named(p.name),
        )
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=ps, return_annotation=signature.empty))


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"_d_{self.name}"
