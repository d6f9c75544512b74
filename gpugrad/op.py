"""The op record, and the eager function that is written out for each op.

An op is one record, complete when it is created. Three kinds:

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
import sys
from collections.abc import Callable, Iterator, Sequence
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
)
from gpugrad.eager import compiled, eager_function
from gpugrad.errors import ArgumentError, DeviceError, DTypeError, NoGradientError, ShapeError
from gpugrad.kernels import generated
from gpugrad.samples import grid
from gpugrad.tensor import IndexedSlices, Tensor

__all__ = ["OPS", "Op", "conjugate", "elementwise", "no_gradient", "op", "through_float32"]

Rule = Callable[..., Any]


OPS: dict[str, Op] = {}
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
        home: the module that declares it.
    """

    def __init__(
        self,
        name: str,
        forward: Any,
        *,
        kind: str,
        signature: inspect.Signature,
        arrays: Sequence[str] | None = None,
        vjp: Sequence[Any] | Rule | None = None,
        jvp: Sequence[Any] | None = None,
        masked: Sequence[Any] | None = None,
        partials: Sequence[Any] | None = None,
        singular: bool = False,
        linear: bool | str = False,
        differentiable: bool = True,
        outputs: int = 1,
        variadic: bool = False,
        keeps_half: bool = False,
        batch: Any = None,
        cuda: Callable[..., Any] | None = None,
        kinds: str = "f",
        samples: Any = None,
        ref: Any = None,
        errors: Sequence[Any] = (),
        doc: str = "",
        home: str = "",
    ) -> None:
        self.name, self.forward, self.kind = name, forward, kind
        self.linear, self.differentiable, self.singular = linear, differentiable, singular
        self.outputs, self.variadic, self.keeps_half = outputs, variadic, keeps_half
        self.batch, self.cuda, self.home = batch, cuda, home
        self.is_library_function = isinstance(forward, _LibraryFunction)
        self.kinds = kinds
        self.samples, self.ref, self.errors, self.doc = samples, ref, tuple(errors), doc
        self.signature = signature
        ps = signature.parameters
        self.arrays = tuple(arrays or (n for n, p in ps.items() if p.kind is p.POSITIONAL_ONLY))
        self.optional = frozenset(n for n in self.arrays if ps[n].default is None)
        self.params = {n: p.default for n, p in ps.items() if n not in self.arrays}
        if taken := {"kind", "out", "type"} & set(self.params):
            raise TypeError(f"{name}: its function has names {taken} of its own; use others.")
        self.impl = _Readings(name)
        self.opened = forward  # a composite's body, as it runs on recorded Tensors
        if kind == "composite":
            opened = functools.partial(forward, TENSOR)
            self.opened = opened if keeps_half else through_float32(opened)
        self._bind(vjp, jvp, partials)
        self._masked = tuple(_bind_rule(r, self) for r in masked or ())
        self.eager = eager_function(self)

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
        if callable(vjp) and self.variadic:
            self._each = bind(vjp)
        elif callable(vjp):
            self.rules = _Joint(bind(vjp), len(self.arrays))
        elif partials is not None:
            self.rules = tuple(_bind_partial(p, self) for p in partials)
        else:
            self.rules = tuple(
                _missing_rule(self.name) if r is ... else bind(r) if r else None for r in rules
            )

    @functools.cached_property
    def masked(self) -> tuple[Any, ...]:
        """The rules for a pass in which a gradient of exactly 0 meets something infinite."""
        if self._masked:
            return self._masked
        if type(self.rules) is _Joint:
            return _Joint(_sheltered(self.rules.rule), len(self.rules))
        if self.partials is None:
            return tuple(r and _sheltered(r) for r in self.rules)
        if self.singular:
            return self.rules
        return tuple(
            _masked_rule(p) if callable(p) else r
            for p, r in zip(self.partials, self.rules, strict=True)
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
        if self.is_library_function:
            function: Callable[..., Any] = getattr(xp.lib, self.forward.name)
        else:
            function = functools.partial(self.forward, xp)
            function = function if self.keeps_half else through_float32(function)
        if self.kind == "elementwise" and xp is not NUMPY:
            function = generated.first(self, function)
        if self.cuda is not None and xp is not NUMPY:
            function = _kernel_first(functools.partial(self.cuda, xp), function)
        if xp is not NUMPY and backend.gpu_count() > 1:
            function = _on_one_gpu(self.name, function)
        return function

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}{self.signature}>"


def _read(xp: Namespace, name: str) -> Callable[..., Any]:
    op = OPS.get(name)
    if op is None:
        raise AttributeError(f"xp.{name}: not a registered op, so a formula may not call it.")
    if xp.wraps and op.kind == "composite" and op.differentiable:
        function = functools.partial(op.forward, xp)
        return function if op.keeps_half else through_float32(function)
    if xp.wraps:
        return xp.of(op)
    return op.eager if xp is TENSOR else op.bare(xp)


Namespace.read = staticmethod(_read)


class _LibraryFunction:
    """The forward of an op that the array library has under a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


def _kernel_first(kernel: Callable[..., Any], formula: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel's launcher; where it declines, the formula."""

    def kernel_first(*args: Any, **params: Any) -> Any:
        made = kernel(*args, **params)
        return formula(*args, **params) if made is NotImplemented else made

    return kernel_first


def through_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute with 16-bit floats as a GPU kernel does: in float32, rounded once at the end.

    What ops do that do not say ``keeps_half``.
    """

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

    def rounded_once(*args: Any, **params: Any) -> Any:
        for a in args:
            if (type(a) is np.ndarray and a.dtype.char not in "eE") or not half(a):
                continue
            break
        else:
            return function(*args, **params)
        floats = {d for d in dtypes(args) if d is not None and d.kind in "fcV"}
        result = function(*(widen(a) for a in args), **params)
        return narrow(result, floats.pop()) if len(floats) == 1 else result

    return rounded_once


def _on_one_gpu(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Where there are several GPUs: run on that of the arrays, and refuse arrays of two."""

    def on_one_gpu(*args: Any, **params: Any) -> Any:
        lists = (a if isinstance(a, (list, tuple)) else (a,) for a in args)
        arrays = [a for part in lists for a in part if type(a) in ARRAYS]
        if len({int(a.device.id) for a in arrays}) > 1:
            where = " and ".join(str(backend.device_of(a)) for a in arrays)
            raise DeviceError(
                f"{name}: its arrays are on {where}. Move one with x.to_device(device)."
            )
        with backend.formulas_on(arrays[0]):
            return function(*args, **params)

    return on_one_gpu


# ---- rules ------------------------------------------------------------------------------

_GIVEN = ("xp", "g", "t", "i")  # what a rule gets that is not saved


def _names(function: Rule) -> tuple[str, ...]:
    """Parameter names; inspect.signature takes ten times as long, at every import."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _reads(rule: Rule) -> list[str]:
    return [n for n in _names(rule) if n not in _GIVEN]


def _bind_rule(rule: Rule, op: Op, body: str = "{}") -> Rule:
    """``rule(xp, g, out, axis)`` as a function of (xp, g, saved, params) that looks them up.

    `body` is what to make of the call: one expression, so that no frame is added to it.
    """
    given, args = ["xp", "g", "s", "k"], []
    if _names(rule)[:1] != ("xp",):
        raise TypeError(f"{op.name}: the first parameter of a rule is xp, this has {_names(rule)}.")
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
    text = f"lambda {', '.join(given)}: " + body.format(f"rule({', '.join(args)})")
    return eval(compiled(text, "eval"), {"rule": rule, "conj": conjugate})


class _Joint(tuple[Rule, ...]):
    """The rules of inputs whose gradients one rule computes together.

    Whoever goes through them gets rules that share one call of it, made when the first is asked.
    """

    rule: Rule

    def __new__(cls, rule: Rule, n: int) -> _Joint:
        made = super().__new__(cls, _parts(rule, n))
        made.rule = rule
        return made

    def __iter__(self) -> Iterator[Rule]:
        return iter(_parts(self.rule, len(self)))


def _parts(rule: Rule, n: int) -> list[Rule]:
    made: list[Any] = []

    def part(i: int) -> Rule:
        def one(xp: Any, g: Any, saved: Any, params: Any) -> Any:
            if not made:
                made.extend(rule(xp, g, saved, params))
            return made[i]

        return one

    return [part(i) for i in range(n)]


def _missing_rule(name: str) -> Rule:
    def missing(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        raise NoGradientError(
            f"{name} has no derivative rule for this input. Stop the gradient before it with "
            "gg.stop_gradient(x), or give it one with gg.custom_gradient."
        )

    missing.is_missing = True  # type: ignore[attr-defined]  # for no_gradient
    return missing


def conjugate(xp: Any, d: Any) -> Any:
    """The complex conjugate; a real array itself, where `xp.conj` would copy it."""
    if type(d) in SCALARS:
        return d.conjugate()
    return xp.conj(d) if d.dtype.kind == "c" else d


def _bind_partial(partial: Any, op: Op) -> Rule:
    """The VJP g * conj(d) of a partial derivative: a number, or a function of what it names.

    Where d can be infinite and g is exactly 0 (`op.singular`), their product is 0.
    """
    if not callable(partial):
        if partial == 1:
            return generated.identity
        return eval(compiled("lambda xp, g, s, k: g * d", "eval"), {"d": partial})
    if op.singular:
        return _bind_rule(partial, op, "xp.masked_multiply(g, conj(xp, {}))")
    return _bind_rule(partial, op, "g * {0} if g.dtype.kind != 'c' else g * conj(xp, {0})")


def _sheltered(rule: Rule) -> Rule:
    """A rule that gives 0 where the whole cotangent is 0, whatever it would make of that."""
    if getattr(rule, "is_missing", False):
        return rule

    def sheltered(xp: Any, g: Any, saved: Any, params: Any) -> Any:
        found = rule(xp, g, saved, params)
        if found is None or isinstance(found, IndexedSlices):
            return found
        parts = [xp.any(xp.not_equal(part, 0)) for part in (g if type(g) is tuple else (g,))]
        some = functools.reduce(xp.logical_or, parts)
        if type(found) is tuple:
            return tuple(f if f is None else xp.where(some, f, 0) for f in found)
        return xp.where(some, found, 0)

    return sheltered


def _masked_rule(partial: Rule) -> Rule:
    return lambda xp, g, s, k: xp.masked_multiply(g, conjugate(xp, partial(xp, g, s, k)))


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
    cuda: Callable[..., Any] | None = None,
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
        cuda: as for `op`.
        doc: what it computes; the docstring adds what all elementwise ops have in common.
        example: arguments, and what printing the result gives.

    Raises:
        ArgumentError: there is an op of that name already.

    >>> import gpugrad as gg
    >>> cube = gg.elementwise(
    ...     "cube(x)", forward=lambda xp, x: x * x * x, d=[lambda xp, x: 3 * x * x],
    ...     ref=lambda x: x**3, doc="Third power.", example=("2.0", "8.0"),
    ... )
    >>> gg.testing.check_op("cube")
    >>> gg.grad(cube)(2.0).item()
    12.0
    >>> forgotten = gg.OPS.pop("cube")
    """
    name, _, rest = signature.partition("(")
    if not rest.endswith(")"):
        raise TypeError(f"elementwise: {signature!r} is no signature; write 'name(x, y)'.")
    arrays = [n.strip() for n in rest.rstrip(")").split(",")]
    ps = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in arrays]
    function = forward if callable(forward) else _LibraryFunction(forward or name)
    if differentiable and len(d or vjp or ()) != len(arrays):
        raise TypeError(f"{name}: one partial or rule for each of {arrays} is needed.")
    return _register(
        Op(
            name, function, kind="elementwise", signature=inspect.Signature(ps), vjp=vjp, jvp=jvp,
            partials=d, singular=singular, linear=linear, differentiable=differentiable,
            cuda=cuda, kinds=kinds, samples=samples or grid(len(arrays), domain),
            ref=ref or (None if callable(forward) else f"numpy.{forward or name}"),
            errors=errors or _elementwise_errors(len(arrays), kinds),
            home=sys._getframe(1).f_globals["__name__"],
            doc=_elementwise_doc(name, arrays, doc, example),
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
    masked: Sequence[Any] | None = None,
    linear: bool | str = False,
    differentiable: bool = True,
    outputs: int = 1,
    variadic: bool = False,
    keeps_half: bool = False,
    batch: Any = None,
    cuda: Callable[..., Any] | None = None,
    kinds: str = "f",
    samples: Any = None,
    ref: Any = None,
    errors: Sequence[Any] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive (with `vjp`) or composite op from its forward; a decorator.

    Args:
        vjp: one rule ``(xp, g, names...)`` for each array argument; None where there is no
            gradient, ``...`` where the rule is not known (then asking for it raises). Or one
            rule for all, which gives a tuple of all gradients where one pass over the arrays
            finds them together; that of a variadic op is told the input's position ``i`` instead.
        name: of the op, if the function's own would shadow a builtin that its module needs.
        arrays: names of the array arguments, where not all of them stand before ``/``; they
            come first in the forward. One whose default is None may be left out.
        jvp: rules ``(xp, t, names...)``, whose results add up; made by transposing if None.
        masked: rules to take instead where a gradient has come out NaN: of a cotangent of 0
            they give 0, also beside an infinite factor. `vjp` if None.
        linear: True if the op is linear in its arrays taken together: its JVP is itself.
            ``"each"`` if it is linear in each array alone (a product).
        differentiable: False says that the gradient is None.
        outputs: number of results; more than 1 makes a tuple, and ``g`` is one too.
        variadic: the one array argument is a list of arrays.
        keeps_half: the forward gets 16-bit floats as they are.
        batch: how `gg.vmap` runs a primitive, where every array may have a batch axis in front:
            ``"stack"`` (the op takes stacks: axes in front of those that it works on, broadcast
            against each other), ``"axis"`` (it works along its argument ``axis``), ``"loop"``
            (one example at a time), or a formula ``(xp, batched, *arrays, **params)`` that
            gets arrays whose axis 0 is the batch where `batched` (a tuple of bools) says so,
            and gives results with it. None is ``"loop"``. Composites need none.
        cuda: the launcher of a kernel for it, ``(xp, *arrays, **params)`` of bare arrays, which
            returns what the forward does, or NotImplemented for what the kernel does not do. It
            runs first on CuPy arrays.
        kinds, samples, ref, errors: see `Op`.

    Raises:
        ArgumentError: there is an op of that name already.

    >>> import numpy as np
    >>> import gpugrad as gg
    >>> def samples(rng):  # (arguments, keywords): all tests of the op are made from them
    ...     yield [rng.normal(size=4)], {}
    ...     yield [rng.normal(size=5)], {"n": 2}
    >>> @gg.op(
    ...     vjp=[lambda xp, g, n: xp.roll(g, -n)], linear=True, samples=samples,
    ...     ref=lambda x, n=1: np.roll(x, n), errors=[(["text"], {}, TypeError, "number")],
    ... )
    ... def turned(xp, x, /, *, n=1):
    ...     '''The elements of an array x, n places on; the last come first.
    ...
    ...     >>> import gpugrad as gg
    ...     >>> print(gg.turned([1.0, 2.0, 3.0]))
    ...     [3. 1. 2.]
    ...     '''
    ...     return xp.lib.roll(x, n)
    >>> gg.testing.check_op("turned")
    >>> forgotten = gg.OPS.pop("turned")
    """

    def declare(forward: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(forward)
        ps = [p for p in signature.parameters.values() if p.name != "xp"]
        return _register(
            Op(
                name or forward.__name__, forward,
                kind="primitive" if vjp is not None else "composite",
                signature=signature.replace(parameters=ps), arrays=arrays, vjp=vjp, jvp=jvp,
                masked=masked, linear=linear, differentiable=differentiable, outputs=outputs,
                variadic=variadic, keeps_half=keeps_half, batch=batch, cuda=cuda, kinds=kinds,
                samples=samples, ref=ref, errors=errors, home=forward.__module__,
                doc=inspect.cleandoc(forward.__doc__ or ""),
            )
        )  # fmt: skip

    return declare


def no_gradient(name: str) -> None:
    """Say that an op declared with unknown rules (``...``) has no gradient there: it is None.

    Raises:
        ArgumentError: there is no such op, or it has all its gradients.

    >>> import gpugrad as gg
    >>> @gg.op(vjp=[...])  # asking for this gradient raises NoGradientError
    ... def rounded_up(xp, x, /):
    ...     return xp.lib.ceil(x)
    >>> gg.no_gradient("rounded_up")  # now it is None
    >>> forgotten = gg.OPS.pop("rounded_up")
    """
    if name not in OPS:
        raise ArgumentError(f"no_gradient: there is no op named {name!r}; see gg.OPS.")
    op = OPS[name]
    if not any(getattr(r, "is_missing", False) for r in op.rules):
        raise ArgumentError(f"no_gradient: {name} has all its gradients, or is declared without.")
    op.rules = tuple(None if getattr(r, "is_missing", False) else r for r in op.rules)
