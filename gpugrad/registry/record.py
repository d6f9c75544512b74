"""The op record, and how ops are declared.

An op is one record, complete when it is created. Three kinds:

- *elementwise*: `elementwise(...)`; partial derivatives `d`, one for each input, give the
  VJP, the JVP and the unbroadcasting;
- *primitive*: ``@op(vjp=[...])``; one rule for each input, so unwanted gradients are never
  computed;
- *composite*: ``@op()``; no rule: on recorded Tensors the body runs on Tensors, and its ops
  are what is recorded.

A formula takes `xp` first and calls only registered ops through it. `xp` is the reading: bare
NumPy or CuPy arrays, Tensors that an outer tape records, batched arrays (`vmap`), logging arrays
(`gg.function`), or elements that write CUDA. The names of a rule's
parameters are the list of what the tape saves for it: ``out``, an input's name, an input's
name with ``_shape`` or ``_dtype``, or a metadata argument's name.

In a signature, what stands before ``/`` are arrays, what stands after it is metadata:
``def take(xp, x, indices, /, *, axis)`` (``arrays=`` names them where that cannot be).
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpugrad.core.backend import NAMESPACES, SCALARS, TENSOR, Namespace
from gpugrad.core.devices import meet
from gpugrad.core.samples import grid
from gpugrad.core.tensor import Tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError
from gpugrad.registry.docs import complete
from gpugrad.registry.fields import Replay
from gpugrad.registry.on_arrays import bare_function, through_float32
from gpugrad.registry.on_tensors import eager_function
from gpugrad.registry.rules import DeclaredRules, Rule

__all__ = ["OPS", "Op", "elementwise", "names_in", "no_gradient", "op"]

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


class Op(DeclaredRules, Replay):
    """One operation: its forward, its derivative rules, its samples and its documentation.

    Attributes:
        name: under which formulas call it (``xp.name``).
        kind: ``"elementwise"``, ``"primitive"`` or ``"composite"``.
        arrays: names of the array arguments.
        params: names and defaults of the metadata arguments.
        differentiable: False says that the gradient is None.
        kinds: of dtype that it takes: ``f`` float, ``c`` complex, ``i`` int, ``b`` bool. Without
            ``c`` complex arguments are refused under a tape, unless the op is linear.
        samples: function of a NumPy random generator that yields (arguments, keywords).
        ref: the function on NumPy arrays that the forward must equal, or its dotted name;
            NumPy's function of that name if None.
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
        unused: Sequence[int] = (),
        variadic: bool = False,
        keeps_half: bool = False,
        whole: bool | Callable[..., bool] = False,
        batch: Any = None,
        cuda: Callable[..., Any] | None = None,
        kinds: str = "f",
        samples: Any = None,
        ref: Any = None,
        errors: Sequence[Any] = (),
        doc: str = "",
        home: str = "",
        **replay: Any,
    ) -> None:
        ps = signature.parameters
        arrays = tuple(arrays or (n for n, p in ps.items() if p.kind is p.POSITIONAL_ONLY))
        params = {n: p.default for n, p in ps.items() if n not in arrays}
        if taken := {"kind", "out", "type"} & set(params):
            raise TypeError(f"{name}: its function has names {taken} of its own; use others.")
        super().__init__(
            name, arrays, params, vjp=vjp, jvp=jvp, masked=masked, partials=partials,
            singular=singular, variadic=variadic,
        )  # fmt: skip
        Replay.__init__(self, **replay)
        self.by_element = self.by_element or kind == "elementwise"
        self.forward, self.kind, self.signature = forward, kind, signature
        self.linear, self.differentiable = linear, differentiable
        self.outputs, self.unused = outputs, frozenset(unused)
        self.keeps_half, self.whole, self.batch = keeps_half, whole, batch
        self.cuda, self.home = cuda, home
        self.is_library_function = isinstance(forward, _LibraryFunction)
        self.kinds = kinds
        self.samples, self.errors = samples, tuple(errors)
        self.ref = f"numpy.{name}" if ref is None else ref
        ours = home.startswith("gpugrad.")  # whose claims about shapes the tests check
        self.doc = doc and complete(
            doc, arrays, params, self.errors, kind == "elementwise", keeps_shape=ours
        )
        self.optional = frozenset(n for n in arrays if ps[n].default is None)
        self.impl = _Readings(name)
        self.opened = forward  # a composite's body, as it runs on recorded Tensors
        if kind == "composite":
            opened = functools.partial(forward, TENSOR)
            self.opened = opened if keeps_half else through_float32(opened, self.values)
        self.eager = eager_function(self)

    @property
    def values(self) -> Sequence[int]:
        """Positions of the arrays whose dtypes say what the result's is: those of no indices."""
        if self.variadic:
            return (0,)
        if self.kind == "composite":  # one that takes ints takes them as numbers
            return range(len(self.arrays)) if "i" in self.kinds else ()
        return [i for i, rule in enumerate(self.rules) if rule is not None]

    def bare(self, xp: Namespace) -> Callable[..., Any]:
        """The op's function on bare arrays of one library."""
        return bare_function(self, xp)

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}{self.signature}>"


def _read(xp: Namespace, name: str) -> Callable[..., Any]:
    op = OPS.get(name)
    if op is None:
        raise AttributeError(f"xp.{name}: not a registered op, so a formula may not call it.")
    is_opened = op.kind == "composite" and op.differentiable
    if is_opened and xp.wraps > (op.whole is True):  # of 1: traced; of more: batched, all is opened
        function: Callable[..., Any] = functools.partial(op.forward, xp)
        function = function if op.keeps_half else through_float32(function, op.values)
        return _either(op.whole, xp.of(op), function) if op.whole and xp.wraps == 1 else function
    if xp.wraps:
        return xp.of(op)
    return op.eager if xp is TENSOR else op.bare(xp)


def _either(first: Any, one: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    def either(*args: Any, **params: Any) -> Any:
        return (one if first(*args, **params) else other)(*args, **params)

    return either


Namespace.read = staticmethod(_read)


class _LibraryFunction:
    """The forward of an op that the array library has under a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


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
    differentiable: bool = True,
    keeps_half: bool = False,
    kinds: str = "f",
    domain: Any = (-2.0, 2.0),
    samples: Any = None,
    ref: Any = None,
    errors: Sequence[Any] = (),
    cuda: Callable[..., Any] | None = None,
    doc: str,
    example: tuple[str, str],
    **replay: Any,
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
        differentiable, keeps_half: as for `op`.
        domain: interval of the samples' values, or one for each array.
        kinds, samples, ref, errors: see `Op`.
        cuda: as for `op`.
        replay: what `gg.function` asks, as for `op`; `by_element` is true.
        doc: what it computes; the docstring adds what all elementwise ops have in common.
        example: arguments, and what printing the result gives.

    Raises:
        ArgumentError: there is an op of that name already, or `signature` is none.

    >>> cube = gg.elementwise(
    ...     "cube(x)", forward=lambda xp, x: x * x * x, d=[lambda xp, x: 3 * x * x],
    ...     ref=lambda x: x**3, doc="Third power.", example=("2.0", "8.0"),
    ... )
    >>> gg.testing.check_op("cube")
    >>> gg.grad(cube)(2.0).item()
    12.0
    >>> forgotten = gg.OPS.pop("cube")
    """
    name, arrays = names_in(signature)
    ps = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in arrays]
    function = forward if callable(forward) else _LibraryFunction(forward or name)
    if differentiable and d is None:
        vjp = vjp or ()  # which are too few
    return _register(
        Op(
            name, function, kind="elementwise", signature=inspect.Signature(ps), vjp=vjp, jvp=jvp,
            partials=d, singular=singular, differentiable=differentiable,
            keeps_half=keeps_half, cuda=cuda, kinds=kinds,
            samples=samples or grid(len(arrays), domain),
            ref=f"numpy.{forward}" if ref is None and isinstance(forward, str) else ref,
            errors=errors or _elementwise_errors(len(arrays), kinds),
            home=sys._getframe(1).f_globals["__name__"],
            doc=f"{doc}\n\n>>> print(gg.{name}({example[0]}))\n{example[1]}\n", **replay,
        )
    )  # fmt: skip


def names_in(signature: str) -> tuple[str, tuple[str, ...]]:
    """The names of an elementwise op and of its arrays, as ``"name(x, y)"`` has them."""
    match = re.fullmatch(r"\s*(\w+)\s*\(\s*(\w+(?:\s*,\s*\w+)*)\s*\)\s*", signature)
    if match is None:
        raise ArgumentError(f"elementwise: {signature!r} is no signature; write 'name(x, y)'.")
    return match[1], tuple(n.strip() for n in match[2].split(","))


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
    unused: Sequence[int] = (),
    variadic: bool = False,
    keeps_half: bool = False,
    whole: bool | Callable[..., bool] = False,
    batch: Any = None,
    cuda: Callable[..., Any] | None = None,
    kinds: str = "f",
    samples: Any = None,
    ref: Any = None,
    errors: Sequence[Any] = (),
    **replay: Any,
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
        jvp: rules ``(xp, t, names...)``, whose results add up, for an op of one result; made by
            transposing if None.
        masked: rules to take instead where a gradient has come out NaN: of a cotangent of 0
            they give 0, also beside an infinite factor. `vjp` if None.
        linear: True if the op is linear in its arrays taken together: its JVP is itself.
            ``"each"`` if it is linear in each array alone (a product).
        differentiable: False says that the gradient is None.
        outputs: number of results; more than 1 makes a tuple, and ``g`` is one too.
        unused: positions in it where a rule takes None for a result that nothing was made of;
            at the others it gets zeros.
        variadic: the one array argument is a list of arrays.
        keeps_half: the forward gets 16-bit floats as they are.
        whole: a traced function keeps a composite as one step, for its kernel's sake, where others
            become the steps of their bodies; or a function of the arguments that says so.
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
        replay: what `gg.function` asks: ``captures=True`` says that a CUDA graph may hold the
            forward, where it is kernel launches only: it reads no values on the host and copies no
            array from there. That is known of an op with a `cuda` launcher. See
            `gpugrad.registry.fields.Replay` for ``view=``, ``by_element=`` and the others.

    Raises:
        ArgumentError: there is an op of that name already.

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
                unused=unused, variadic=variadic, keeps_half=keeps_half, whole=whole, batch=batch,
                cuda=cuda, kinds=kinds, samples=samples, ref=ref, errors=errors,
                home=forward.__module__,
                doc=inspect.cleandoc(forward.__doc__ or ""), **replay,
            )
        )  # fmt: skip

    return declare


def no_gradient(name: str) -> None:
    """Say that an op declared with unknown rules (``...``) has no gradient there: it is None.

    Raises:
        ArgumentError: there is no such op, or it has all its gradients.

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
    vars(op).pop("masked", None)  # it was made of the rules before
