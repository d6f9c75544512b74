"""The op record, and the eager function that is written out for each op.

An op is one immutable record, complete when it is created. Three kinds:

- *elementwise*: `elementwise(...)`; partial derivatives `d`, one for each input, give the
  VJP, the JVP and the unbroadcasting;
- *primitive*: ``@op(vjp=[...])``; one rule for each input, so unwanted gradients are never
  computed;
- *composite*: ``@op()``; no rule: on recorded Tensors the body runs on Tensors, and its ops
  are what is recorded.

A formula takes `xp` first and calls only registered ops through it. `xp` is the reading: bare
NumPy arrays, bare CuPy arrays, or Tensors that an outer tape records. The names of a rule's
parameters are the list of what the tape saves for it: ``out``, an input's name, an input's
name with ``_shape`` or ``_dtype``, or a metadata argument's name.

In a signature, what stands before ``/`` are arrays, what stands after it is metadata:
``def take(xp, x, indices, /, *, axis)`` (``arrays=`` names them where that cannot be).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad import backend
from gpugrad.backend import (
    ARRAYS,
    HALF,
    NAMESPACES,
    NUMPY,
    SCALARS,
    TENSOR,
    Namespace,
    meet,
    meet_arrays,
)
from gpugrad.errors import ArgumentError, DTypeError, NoGradientError, ShapeError, reraise
from gpugrad.samples import grid
from gpugrad.tape import block, graphs, number, record, record_many
from gpugrad.tensor import Tensor, new, recorders, tensor, wrap

__all__ = ["OPS", "Op", "elementwise", "no_gradient", "op"]

Rule = Callable[..., Any]


class _Registry(dict[str, "Op"]):
    """The ops by name; an unknown name is an error that says what a formula may call."""

    def __missing__(self, name: str) -> Op:
        raise AttributeError(f"xp.{name}: not a registered op, so a formula may not call it.")


OPS: dict[str, Op] = _Registry()
"""Every registered op, by name."""


class _Readings(dict[type, Callable[..., Any]]):
    """An op's function for each array type, looked up in the type's namespace once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __missing__(self, kind: type) -> Callable[..., Any]:
        self[kind] = function = (
            self._of_numbers if kind in SCALARS else getattr(NAMESPACES[kind], self.name)
        )
        return function

    def _of_numbers(self, *numbers: Any, **params: Any) -> Any:
        """Python numbers only: they become arrays on the default device."""
        *arrays, kind = meet(self.name, *numbers)
        return self[kind](*arrays, **params)


class Op:
    """One operation: its forward, its derivative rules, its samples and its documentation.

    Attributes:
        name: under which formulas call it (``xp.name``).
        kind: ``"elementwise"``, ``"primitive"`` or ``"composite"``.
        arrays: names of the array arguments.
        params: names and defaults of the metadata arguments.
        differentiable: False says that the gradient is None.
        kinds: of dtype that it takes: ``f`` float, ``c`` complex, ``i`` int, ``b`` bool.
        samples: function of a NumPy random generator that yields (arguments, keywords).
        ref: the function on NumPy arrays that the forward must equal, or its dotted name.
        errors: calls that must fail: (arguments, keywords, exception class, words).
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        *,
        kind: str,
        signature: inspect.Signature,
        arrays: Sequence[str] | None = None,
        vjp: Sequence[Any] | Rule | None = None,
        jvp: Sequence[Any] | None = None,
        partials: Sequence[Any] | None = None,
        linear: bool | str = False,
        differentiable: bool = True,
        outputs: int = 1,
        variadic: bool = False,
        keeps_half: bool = False,
        kinds: str = "f",
        samples: Any = None,
        ref: Any = None,
        errors: Sequence[Any] = (),
        doc: str = "",
    ) -> None:
        self.name, self.forward, self.kind = name, forward, kind
        self.linear, self.differentiable = linear, differentiable
        self.outputs, self.variadic, self.keeps_half = outputs, variadic, keeps_half
        self.kinds = kinds
        self.samples, self.ref, self.errors, self.doc = samples, ref, tuple(errors), doc
        self.signature = signature
        ps = signature.parameters
        self.arrays = tuple(arrays or (n for n, p in ps.items() if p.kind is p.POSITIONAL_ONLY))
        self.optional = frozenset(n for n in self.arrays if ps[n].default is None)
        self.params = {n: p.default for n, p in ps.items() if n not in self.arrays}
        self.impl = _Readings(name)
        self._bind(vjp, jvp, partials)
        self.eager = _write_eager(self)

    # -- rules

    def _bind(self, vjp: Any, jvp: Any, partials: Any) -> None:
        """Order what the rules read into one list of saves, and make rules index it."""
        rules = [vjp] if callable(vjp) else list(vjp or ())
        every = [f for f in (*rules, *(jvp or ()), *(partials or ())) if callable(f)]
        saves: list[str] = []
        for rule in every:
            saves += [n for n in _reads(rule) if self._is_saved(n) and n not in saves]
        self.saves = tuple(saves)
        per_input = [[] for _ in self.arrays] if callable(vjp) else [
            [n for given in (rules, jvp or (), partials or ()) if k < len(given)
             and callable(given[k]) for n in _reads(given[k])]
            for k in range(len(self.arrays))
        ]  # fmt: skip
        self.readers = {  # the inputs whose rules read a saved array: else it is not kept
            n: tuple(a for a, reads in zip(self.arrays, per_input, strict=True) if n in reads)
            for n in saves
        }
        self.origins = tuple(self._origin(n) for n in saves)
        bind = functools.partial(_bind_rule, op=self)
        self.partials = None if partials is None else tuple(
            bind(p) if callable(p) else p for p in partials
        )  # fmt: skip
        self.jvps = None if jvp is None else tuple(bind(r) if r else None for r in jvp)
        self.rules: tuple[Any, ...] = ()
        if callable(vjp):
            self._each = bind(vjp)
        else:
            self.rules = tuple(
                _missing_rule(self.name) if r is ... else bind(r) if r else None for r in rules
            )

    def spread(self, n: int) -> list[Rule]:
        """The rules of a variadic op's `n` inputs, from its one rule."""
        return [functools.partial(self._each, i=i) for i in range(n)]

    def _is_saved(self, name: str) -> bool:
        return name == "out" or name.removesuffix("_shape").removesuffix("_dtype") in self.arrays

    def _origin(self, name: str) -> Any:
        """Whose serial number a saved value has: an input's position, "out", "all", or None."""
        if name.endswith(("_shape", "_dtype")):
            return None
        return name if name == "out" else "all" if self.variadic else self.arrays.index(name)

    # -- readings

    def bare(self, xp: Namespace) -> Callable[..., Any]:
        """The op's function on bare arrays of one library."""
        if isinstance(self.forward, _LibraryFunction):
            function = self.forward.of(xp)
        else:
            function = functools.partial(self.forward, xp)
            function = function if self.keeps_half else _through_float32(function)
        if xp is not NUMPY and backend.gpu_count() > 1:
            function = _on_one_gpu(self.name, function)
        return function

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}{self.signature}>"


def _read(xp: Namespace, name: str) -> Callable[..., Any]:
    op = OPS[name]
    return op.eager if xp is TENSOR else op.bare(xp)


Namespace.read = staticmethod(_read)


class _LibraryFunction:
    """The forward of an op that the array library has under a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, xp: Namespace) -> Callable[..., Any]:
        return getattr(xp.lib, self.name)  # type: ignore[no-any-return]


def _through_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute with 16-bit floats as a GPU kernel does: in float32, rounded once at the end."""

    def half(x: Any) -> bool:
        if isinstance(x, (list, tuple)):
            return any(half(v) for v in x)
        return getattr(x, "dtype", None) in HALF

    def widen(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [widen(v) for v in x]
        return x.astype(np.float32) if half(x) else x

    def dtypes(args: Any) -> set[Any]:
        inner = (dtypes(a) if isinstance(a, (list, tuple)) else {getattr(a, "dtype", None)}
                 for a in args)  # fmt: skip
        return set().union(*inner)

    def narrow(r: Any, dtype: Any) -> Any:
        if isinstance(r, tuple):
            return tuple(narrow(v, dtype) for v in r)
        return r.astype(dtype) if r.dtype == np.float32 else r

    def through_float32(*args: Any, **params: Any) -> Any:
        for a in args:
            if type(a) is np.ndarray and a.dtype.char not in "eE" or not half(a):
                continue
            break
        else:
            return function(*args, **params)
        floats = {d for d in dtypes(args) if d is not None and d.kind in "fcV"}
        result = function(*(widen(a) for a in args), **params)
        return narrow(result, floats.pop()) if len(floats) == 1 else result

    return through_float32


def _on_one_gpu(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Where there are several GPUs: run on that of the arrays, and refuse arrays of two."""

    def on_one_gpu(*args: Any, **params: Any) -> Any:
        lists = (a if isinstance(a, (list, tuple)) else (a,) for a in args)
        arrays = [a for part in lists for a in part if type(a) in ARRAYS]
        if len({int(a.device.id) for a in arrays}) > 1:
            where = " and ".join(str(backend.device_of(a)) for a in arrays)
            raise backend.DeviceError(
                f"{name}: its arrays are on {where}. Move one with x.to_device(device)."
            )
        with backend.formulas_on(arrays[0]):
            return function(*args, **params)

    return on_one_gpu


# ---- rules ------------------------------------------------------------------------------

_GIVEN = ("xp", "g", "t", "i")  # what a rule gets that is not saved


@functools.cache
def _compiled(text: str, mode: str) -> Any:
    """Code of a generated text; many ops have the same text but for what its names mean."""
    return compile(text, "<gpugrad>", mode)


def _names(function: Rule) -> tuple[str, ...]:
    """Parameter names; inspect.signature takes ten times as long, at every import."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _reads(rule: Rule) -> list[str]:
    return [n for n in _names(rule) if n not in _GIVEN]


def _bind_rule(rule: Rule, op: Op) -> Rule:
    """``rule(xp, g, out, axis)`` as a function of (xp, g, saved, params) that looks them up."""
    given, args = ["xp", "g", "s", "k"], []
    for name in _names(rule):
        if name in ("xp", "g", "t"):
            args.append("g" if name == "t" else name)
        elif name == "i":
            given.append("i")
            args.append("i")
        elif name in op.saves:
            args.append(f"s[{op.saves.index(name)}]")
        elif name in op.params:
            args.append(f"k[{name!r}]")
        else:
            raise TypeError(
                f"{op.name}: a rule reads {name!r}, which is no argument of the op. It may read "
                f"{[*op.arrays, *op.params, 'out']}, and NAME_shape or NAME_dtype of an array."
            )
    text = f"lambda {', '.join(given)}: rule({', '.join(args)})"
    return eval(_compiled(text, "eval"), {"rule": rule})  # type: ignore[no-any-return]


def _missing_rule(name: str) -> Rule:
    def missing(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        raise NoGradientError(
            f"{name} has no derivative rule for this input. Stop the gradient before it with "
            "gg.stop_gradient(x), or give it one with gg.custom_gradient."
        )

    missing.is_missing = True  # type: ignore[attr-defined]  # for no_gradient
    return missing


def _conjugate(xp: Any, d: Any) -> Any:
    if type(d) in SCALARS:
        return d.conjugate()
    return xp.conj(d) if d.dtype.kind == "c" else d


def _rule_of_partial(partial: Any, singular: bool) -> Rule:
    """The VJP g * conj(d) of a partial derivative: a number, or a function of what it names.

    `singular`: where d can be infinite and the gradient g is exactly 0, their product is 0.
    """
    if not callable(partial):
        return (lambda g: g) if partial == 1 else (lambda g: g * partial)
    names = ", ".join(n for n in _names(partial) if n != "xp")
    body = "xp.masked_multiply(g, conj(xp, d))" if singular else "g * conj(xp, d)"
    text = f"def rule(xp, g, {names}):\n    d = partial(xp, {names})\n    return {body}\n"
    made: dict[str, Any] = {"partial": partial, "conj": _conjugate}
    exec(_compiled(text, "exec"), made)
    return made["rule"]  # type: ignore[no-any-return]


# ---- the eager function -----------------------------------------------------------------


def _write_eager(op: Op) -> Callable[..., Any]:
    """Write out the function that users call, for exactly this op's signature.

    As namedtuple does: a generic ``apply(op, *args, **kw)`` costs more than the ufunc that it
    calls. The text is kept as ``function.__source__``; for ``tanh(x)`` it is::

        def tanh(x, /):
            try:
                if type(x) is Tensor: x_ = x._data; xi = x._id
                else: x = tensor(x); x_ = x._data; xi = x._id
                kind = type(x_)
                r_ = impl[kind](x_)
            except Exception as e: reraise(e, 'tanh', {'x': x}, {})
            if type(r_) not in ARRAYS: r_ = asarray(r_, kind)
            out = new(Tensor); out._data = r_; out._id = 0
            if recorders:
                if graphs: xi = number(x)
                if xi:
                    record(op, out, (xi,), (None,), (r_,), None)
            return out
    """
    lines = _read_list(op) if op.variadic else _read_arguments(op)
    names = op.arrays
    passed = ", ".join(f"{k}={k}" for k in op.params)
    inputs = ", ".join(f"{n}_" for n in names)
    shown = "{" + ", ".join(f"{n!r}: {n}" for n in names) + "}"
    params = "{" + ", ".join(f"{k!r}: {k}" for k in op.params) + "}"
    any_id = "any(ids)" if op.variadic else " or ".join(f"{n}i" for n in names)
    ids = "ids" if op.variadic else "(" + " ".join(f"{n}i," for n in names) + ")"
    renumber = (
        f"ids = [number(x) for x in {names[0]}]" if op.variadic
        else "; ".join(f"{n}i = number({n})" for n in names)
    )  # fmt: skip
    call = f"{inputs}{', ' + passed if passed else ''}"
    if op.kind == "composite" and op.differentiable:
        lines += [
            f"if recorders and (graphs or {any_id}):",
            f"    return forward(TENSOR, {', '.join(names)}{', ' + passed if passed else ''})",
        ]
    run = f"impl[kind]({call})"
    if not isinstance(op.forward, _LibraryFunction) and not (op.variadic or op.optional):
        # straight into the forward: a partial and a wrapper would cost 0.5 us a call
        plain = " and ".join(
            ["kind is ndarray", *([] if op.keeps_half else
             [f"{n}_.dtype.char not in 'eE'" if op.kind == "primitive" or len(names) == 1 else
              f"type({n}_) is ndarray and {n}_.dtype.char not in 'eE'" for n in names])]
        )  # fmt: skip
        if op.kind != "elementwise" or len(names) == 1:
            run = f"forward(NUMPY, {call}) if {plain} else {run}"
    lines = [
        f"def _op{_plain(op.signature)}:",
        "try:",
        *(f"    {line}" for line in (*lines, f"r_ = {run}")),
        f"except Exception as e: reraise(e, NAME, {shown}, {params})",
    ]
    if op.outputs == 1:
        lines += [
            "if type(r_) not in ARRAYS: r_ = asarray(r_, kind)",
            "out = new(Tensor); out._data = r_; out._id = 0",
        ]
    else:
        lines.append("out = tuple([wrap(asarray(r, kind)) for r in r_])")
    if op.kind != "composite" or not op.differentiable:
        lines += [
            "if recorders:",
            f"    if graphs: {renumber}",
            f"    if {any_id}:",
            *_recording(op, ids, params),
        ]
    lines.append("return out")
    text = "\n    ".join(lines) + "\n"
    scope = {
        "ARRAYS": ARRAYS, "NAME": op.name, "NUMPY": NUMPY, "SCALARS": SCALARS, "TENSOR": TENSOR, "Tensor": Tensor,
        "asarray": _asarray, "block": block, "reraise": reraise, "forward": op.forward,
        "graphs": graphs, "impl": op.impl, "meet": meet, "meet_arrays": meet_arrays, "ndarray": np.ndarray, "new": new, "number": number, "op": op,
        "record": record, "record_many": record_many, "recorders": recorders, "tensor": tensor,
        "tensors": _tensors, "wrap": wrap, **_defaults(op.signature),
    }  # fmt: skip
    exec(_compiled(text, "exec"), scope)
    function = scope["_op"]
    function.__code__ = function.__code__.replace(co_name=op.name, co_qualname=op.name)
    function.__name__ = function.__qualname__ = op.name
    function.__source__ = text.replace("def _op(", f"def {op.name}(").replace("NAME", repr(op.name))
    function.op, function.__doc__, function.__module__ = op, op.doc, "gpugrad"
    return function  # type: ignore[no-any-return]


def _plain(signature: inspect.Signature) -> str:
    """A signature as text, without types; defaults that are objects by the name _d_NAME."""
    ps = [
        p.replace(annotation=p.empty, default=p.default if p.default is p.empty else _Named(p.name))
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=ps, return_annotation=signature.empty))


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"_d_{self.name}"


def _defaults(signature: inspect.Signature) -> dict[str, Any]:
    return {
        f"_d_{p.name}": p.default
        for p in signature.parameters.values()
        if p.default is not p.empty
    }


def _read_arguments(op: Op) -> list[str]:
    names, several = op.arrays, len(op.arrays) > 1
    lines = []
    for n in names:
        first = f"if type({n}) is Tensor: {n}_ = {n}._data; {n}i = {n}._id"
        lines.append(first)
        if n in op.optional:
            lines.append(f"elif {n} is None: {n}_ = None; {n}i = 0")
        if several:
            lines.append(f"elif type({n}) in SCALARS: {n}_ = {n}; {n}i = 0")
        lines.append(f"else: {n} = tensor({n}); {n}_ = {n}._data; {n}i = {n}._id")
    lines.append(f"kind = type({names[0]}_)")
    if several:
        same = " or ".join(f"type({n}_) is not kind" for n in names[1:])
        rest = ", ".join(f"{n}_" for n in names)
        how = "meet_arrays" if op.kind == "primitive" else "meet"
        meeting = f"{rest}, kind = {how}(NAME, {rest})"
        if op.kind == "elementwise" and len(names) == 2:  # a number beside an array: no call
            x, y = names
            lines += [
                f"if {same}:",
                f"    if type({y}_) in SCALARS and kind in ARRAYS and {x}_.dtype.char != 'E': pass",
                f"    elif kind in SCALARS and type({y}_) in ARRAYS and {y}_.dtype.char != 'E': "
                f"kind = type({y}_)",
                f"    else: {meeting}",
            ]
        else:
            lines.append(f"if {same}: {meeting}")
    return lines


def _read_list(op: Op) -> list[str]:
    (n,) = op.arrays
    return [
        f"{n} = tensors(NAME, {n})",
        f"ids = [x._id for x in {n}]",
        f"*{n}_, kind = meet(NAME, *[x._data for x in {n}])",
    ]


def _tensors(name: str, values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        values = list(values)
    if not isinstance(values, (list, tuple)) or not values:
        raise ArgumentError(f"{name}: a list of at least one array is needed, got {values!r:.60}.")
    return [tensor(v) for v in values]


def _asarray(value: Any, kind: type) -> Any:
    return value if type(value) in ARRAYS else NAMESPACES.get(kind, NUMPY).lib.asarray(value)


def _recording(op: Op, ids: str, params: str) -> list[str]:
    """The lines that record one execution."""
    if not op.differentiable:
        return [
            f"        block(NAME, out, {ids})" if op.outputs == 1
            else f"        for o in out: block(NAME, o, {ids})"
        ]  # fmt: skip
    saved = []
    for name in op.saves:
        if name == "out":
            saved.append("r_" if op.outputs == 1 else "tuple([o._data for o in out])")
        elif not name.endswith(("_shape", "_dtype")):
            readers = op.readers[name]
            every = not readers or len(readers) == len(op.arrays)
            wanted = " or ".join(f"{r}i" for r in readers)
            saved.append(f"{name}_" if every else f"{name}_ if {wanted} else None")
        else:
            array, _, what = name.rpartition("_")
            saved.append(
                f"[x.{what} for x in {array}_]" if op.variadic else
                f"None if {array}_ is None else {array}_.{what}" if array in op.optional else
                f"{array}_.{what}"
            )  # fmt: skip
    lines = []
    if op.outputs > 1 or len(op.arrays) == 1 and not op.variadic:
        fits = "None, " * len(op.arrays)
    elif op.variadic:
        lines = [
            f"        fits = [None if x.dtype == r_.dtype else (x.shape, x.dtype) "
            f"for x in {op.arrays[0]}_]"
        ]
        fits = "*fits,"
    elif op.kind == "elementwise":
        lines = ["        shape = r_.shape; dtype = r_.dtype"]
        fits = "".join(
            f"None if not {n}i or {n}_.shape == shape and {n}_.dtype is dtype "
            f"else ({n}_.shape, {n}_.dtype), "
            for n in op.arrays
        )
    else:  # rules give the shape; arrays of several dtypes still need a cast
        fits = "".join(
            f"None if not {n}i or {n}_.dtype is r_.dtype else ({n}_.shape, {n}_.dtype), "
            for n in op.arrays
        )
    kept = "".join(f"{s}, " for s in saved)
    call = "record" if op.outputs == 1 else "record_many"
    params = params if op.params else "None"
    return [*lines, f"        {call}(op, out, {ids}, ({fits}), ({kept}), {params})"]


# ---- declaring --------------------------------------------------------------------------


def _register(op: Op) -> Callable[..., Any]:
    if op.name in OPS:
        raise ArgumentError(f"op: there is an op named {op.name!r} already.")
    OPS[op.name] = op
    return op.eager


def elementwise(
    signature: str,
    *,
    d: Sequence[Any] | None = None,
    vjp: Sequence[Any] | None = None,
    jvp: Sequence[Any] | None = None,
    forward: Callable[..., Any] | str | None = None,
    singular: bool = False,
    linear: bool | str = False,
    differentiable: bool = True,
    kinds: str = "f",
    domain: Any = (-2.0, 2.0),
    samples: Any = None,
    ref: Any = None,
    errors: Sequence[Any] = (),
    doc: str,
    example: tuple[str, str],
) -> Callable[..., Tensor]:
    """Declare an elementwise op; return its eager function.

    Args:
        signature: ``"name(x, y)"``.
        d: one partial derivative for each input: a number, or a function
            ``(xp, names...)`` of what it needs, by name.
        vjp, jvp: rules instead, where g * d would lose accuracy or is no derivative in the
            complex sense: one for each input, ``(xp, g, names...)`` and ``(xp, t, names...)``.
        forward: the library's name for it if that is another, or a formula ``(xp, x, y)``.
        singular: partials can be infinite; a gradient of exactly 0 then stays 0.
        linear, differentiable: as for `op`.
        domain: interval of the samples' values, or one for each array.
        kinds, samples, ref, errors: see `Op`. `ref` is the library's function of that name if
            None.
        doc: what it computes; the docstring adds what all elementwise ops have in common.
        example: arguments, and what printing the result gives.
    """
    name, _, rest = signature.partition("(")
    arrays = [n.strip() for n in rest.rstrip(")").split(",")]
    ps = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in arrays]
    function = forward if callable(forward) else _LibraryFunction(forward or name)
    if d is not None:
        vjp = [_rule_of_partial(p, singular) for p in d]
    if differentiable and (vjp is None or len(vjp) != len(arrays)):
        raise TypeError(f"{name}: one partial or rule for each of {arrays} is needed.")
    return _register(
        Op(
            name, function, kind="elementwise", signature=inspect.Signature(ps), vjp=vjp, jvp=jvp,
            partials=d, linear=linear, differentiable=differentiable, kinds=kinds,
            samples=samples or grid(len(arrays), domain),
            ref=ref or (None if callable(forward) else f"numpy.{forward or name}"),
            errors=errors or _elementwise_errors(len(arrays), kinds), doc=_elementwise_doc(name, arrays, doc, example),
        )
    )  # fmt: skip


def _elementwise_doc(name: str, arrays: list[str], doc: str, example: tuple[str, str]) -> str:
    each = f"{', '.join(arrays)}: array{'s, broadcast against each other' * (len(arrays) > 1)}"
    return (
        f"{doc}\n\nArgs:\n    {each}, of any shape; or a number.\n\n"
        "Returns:\n    Tensor of the (broadcast) shape; its dtype follows NumPy's promotion.\n\n"
        "Raises:\n    ShapeError, DTypeError, DeviceError: arguments that do not go together.\n\n"
        f">>> import gpugrad as gg\n>>> print(gg.{name}({example[0]}))\n{example[1]}\n"
    )


def _elementwise_errors(n: int, kinds: str) -> list[Any]:
    if n == 1:
        return [(["text"], {}, DTypeError, "number")]
    dtype = np.float64 if "f" in kinds else np.int64
    given = [np.ones(length, dtype) for length in (2, 3, 3)]
    return [(given[:n], {}, ShapeError, r"\(2,\).*\(3,\)")]


def op(
    vjp: Sequence[Any] | Rule | None = None,
    *,
    name: str | None = None,
    arrays: Sequence[str] | None = None,
    jvp: Sequence[Any] | None = None,
    linear: bool | str = False,
    differentiable: bool = True,
    outputs: int = 1,
    variadic: bool = False,
    keeps_half: bool = False,
    kinds: str = "f",
    samples: Any = None,
    ref: Any = None,
    errors: Sequence[Any] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive (with `vjp`) or composite op from its forward; a decorator.

    Args:
        vjp: one rule ``(xp, g, names...)`` for each array argument; None where there is no
            gradient, ``...`` where the rule is not known (then asking for it raises). For a
            variadic op one rule for all, which is told the input's position ``i``.
        name: of the op, if the function's own would shadow a builtin that its module needs.
        arrays: names of the array arguments, where not all of them stand before ``/``. One
            whose default is None may be left out.
        jvp: rules ``(xp, t, names...)``, whose results add up; made by transposing if None.
        linear: True if the op is linear in its arrays taken together: its JVP is itself.
            ``"each"`` if it is linear in each array alone (a product).
        differentiable: False says that the gradient is None.
        outputs: number of results; more than 1 makes a tuple, and ``g`` is one too.
        variadic: the one array argument is a list of arrays.
        keeps_half: the forward gets 16-bit floats as they are.
        kinds, samples, ref, errors: see `Op`.
    """

    def declare(forward: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(forward)
        ps = [p for p in signature.parameters.values() if p.name != "xp"]
        return _register(
            Op(
                name or forward.__name__, forward,
                kind="primitive" if vjp is not None else "composite",
                signature=signature.replace(parameters=ps), arrays=arrays, vjp=vjp, jvp=jvp,
                linear=linear, differentiable=differentiable, outputs=outputs, variadic=variadic,
                keeps_half=keeps_half, kinds=kinds, samples=samples, ref=ref, errors=errors,
                doc=inspect.cleandoc(forward.__doc__ or ""),
            )
        )  # fmt: skip

    return declare


def no_gradient(name: str) -> None:
    """Say that an op declared with unknown rules (``...``) has no gradient there: it is None.

    Raises:
        ArgumentError: there is no such op, or it has all its gradients.
    """
    if name not in OPS:
        raise ArgumentError(f"no_gradient: there is no op named {name!r}; see gg.OPS.")
    op = OPS[name]
    if not any(getattr(r, "is_missing", False) for r in op.rules):
        raise ArgumentError(f"no_gradient: {name} has all its gradients, or is declared without.")
    op.rules = tuple(None if getattr(r, "is_missing", False) else r for r in op.rules)
