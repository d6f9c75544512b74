"""CuPy's elementwise and reduction kernels on Tensors: CuPy's own on a GPU, else see `on_host`.

Each kernel is an op, so it is traced like one; with declared derivatives it has a gradient.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import gpugrad as gg
from gpugrad.array_api.writes import begin_write
from gpugrad.compat.cupy import on_host
from gpugrad.core.backend import cupy
from gpugrad.core.forking import cached_property
from gpugrad.errors import ArgumentError, DTypeError, NoGradientError, ShapeError


class Kernel:
    """A kernel as an op of a list of arrays.

    The op's argument `call` is a pair: all arguments with `...` for each array, and the options.
    """

    def __init__(self, name: str, definition: Any, options: Any, names: Any, d: Any, vjp: Any):
        self.name = self.__name__ = name
        self._definition, self._options = definition, options
        self._d, self._vjp = _by_name(name, names, d), _by_name(name, names, vjp)

    def _run(self, lib: Any, values: list[Any], options: dict[str, Any]) -> Sequence[Any]:
        """The results on bare arrays."""
        raise NotImplementedError

    def _gradient(self, xp: Any, g: Any, values: list[Any], out: Any, k: int, axis: Any) -> Any:
        """The gradient of the argument at position `k`."""
        raise NotImplementedError

    @cached_property
    def on_gpu(self) -> Any:
        """CuPy's own kernel."""
        return getattr(cupy(), type(self).__name__)(*self._definition, **self._options)

    def _op(self, outputs: int) -> Any:
        """The op's function."""
        text = type(self).__name__, repr((self._definition, self._options)), outputs
        key = (self, outputs) if self._d or self._vjp else text
        if key not in _ops or not gg.OPS.has(_ops[key].op.name):
            _ops[key] = _declare(self, outputs)
        return _ops[key]

    def _apply(self, args: Sequence[Any], options: dict[str, Any], outputs: int) -> list[Any]:
        """The results of the op on Tensors and numbers."""
        for x in args:
            if not isinstance(x, (gg.Tensor, bool, int, float, complex, np.generic)):
                raise DTypeError(
                    f"{self.name}: arguments are Tensors and numbers, got {type(x).__name__}. "
                    "Make it a Tensor by asarray."
                )
        arrays = [x for x in args if isinstance(x, gg.Tensor)] or [gg.zeros(0)]
        template = tuple(... if isinstance(x, gg.Tensor) else x for x in args)
        result = self._op(outputs)(arrays, call=(template, tuple(options.items())))
        return list(result) if outputs > 1 else [result]


_ops: dict[Any, Any] = {}
"""Ops of kernels; of those without derivatives by definition, as a loop may make one each time."""


def _by_name(kernel: str, names: Sequence[str], rules: Any) -> dict[str, Any]:
    """Derivatives by the names of inputs, from a dictionary or one for each."""
    if not rules:
        return {}
    if not isinstance(rules, dict) and len(rules) == len(names):
        rules = dict(zip(names, rules, strict=True))
    if not isinstance(rules, dict) or set(rules) - set(names):
        raise ArgumentError(f"{kernel}: derivatives are those by {list(names)}, got {rules}.")
    return rules


def _values(arrays: Sequence[Any], template: Sequence[Any]) -> list[Any]:
    rest = iter(arrays)
    return [next(rest) if x is ... else x for x in template]


def is_array(x: Any) -> bool:
    """Whether an argument is an array, not a number."""
    return hasattr(x, "dtype") and not isinstance(x, np.generic)


def _declare(kernel: Kernel, outputs: int) -> Any:
    """Declare the op of a kernel."""

    def forward(xp: Any, arrays: Any, /, *, call: Any) -> Any:
        results = kernel._run(xp.lib, _values(arrays, call[0]), dict(call[1]))
        return tuple(results) if outputs > 1 else results[0]

    def rule(xp: Any, g: Any, i: int, arrays: Any, out: Any, call: Any) -> Any:
        place = [k for k, x in enumerate(call[0]) if x is ...][i]
        axis = dict(call[1]).get("axis", ())
        gradient = kernel._gradient(xp, g, _values(arrays, call[0]), out, place, axis)
        same = gradient is None or gradient.dtype == arrays[i].dtype
        return gradient if same else xp.astype(gradient, arrays[i].dtype)

    ends = itertools.chain([""], (f"_{k}" for k in itertools.count(2)))
    name = next(n for end in ends if (n := f"cupy_{kernel.name}{end}") not in gg.OPS)
    has_rules = kernel._d or kernel._vjp
    fields: dict[str, Any] = {"vjp": rule} if has_rules else {"differentiable": False}
    fields |= {"variadic": True, "opens": None, "kinds": "fcib", "native_half": True}
    forward.__doc__ = f"The kernel {kernel.name!r}."
    return gg.op(name=name, outputs=outputs, **fields)(forward)


def evaluate(rule: Any, xp: Any, known: dict[str, Any]) -> Any:
    """A derivative rule of the values that its parameters name."""
    if not callable(rule):
        return rule
    is_kernel = isinstance(rule, _OfParameters)
    named = rule.in_params if is_kernel else [*inspect.signature(rule).parameters.values()][1:]
    names = [p.name for p in named]
    if missing := [n for n in names if n not in known]:
        raise ArgumentError(f"A derivative names {missing}; there are {sorted(known)}.")
    values = [known[n] for n in names]
    if not is_kernel:
        return rule(xp, *values)
    values.append(known["out"])  # as an output, of which the shape alone matters
    template = tuple(... if is_array(x) else x for x in values)
    return getattr(xp, rule._op(1).op.name)([x for x in values if is_array(x)], call=(template, ()))


class _Parameter(NamedTuple):
    name: str
    ctype: str  # a letter, or the name of a dtype
    is_out: bool
    raw: bool


def _parsed(text: str, is_out: bool) -> list[_Parameter]:
    found = []
    for part in text.split(",") if text.strip() else ():
        words = part.split()
        if len(words) < 2 or words[-1] == "i" or set(words[:-2]) - {"raw", "_non_const"}:
            raise ArgumentError(f"{part.strip()!r} is not a parameter: write 'T x' or 'raw T x'.")
        found.append(_Parameter(words[-1], words[-2], is_out, "raw" in words[:-2]))
    return found


class _OfParameters(Kernel):
    """Elementwise and reduction kernels: their parameters have types, and arrays broadcast."""

    _shaping = slice(None)  # the arguments that decide the shape of the loop

    def __init__(self, definition: Any, name: str, preamble: str, options: Any, d: Any, vjp: Any):
        self.in_params = _parsed(definition[0], False)
        self.out_params = _parsed(definition[1], True)
        self.params = [*self.in_params, *self.out_params]
        self.nin, self.nout, self.preamble = len(self.in_params), len(self.out_params), preamble
        super().__init__(name, definition, options, [p.name for p in self.in_params], d, vjp)

    def set_derivatives(self, *, d: Any = None, vjp: Any = None) -> None:
        """Declare the derivatives of a kernel that a program has made, with arguments of its class.

        >>> import gpugrad.compat.cupy as cp
        >>> cube = cp.ElementwiseKernel("T x", "T y", "y = x * x * x")
        >>> cube.set_derivatives(d=[cp.ElementwiseKernel("T x", "T y", "y = 3 * x * x")])
        >>> gg.grad(lambda x: cp.sum(cube(x)))(cp.arange(3.0)).tolist()
        [0.0, 3.0, 12.0]
        """
        names = [p.name for p in self.in_params]
        self._d, self._vjp = (_by_name(self.name, names, rules) for rules in (d, vjp))
        _ops.pop((self, self.nout), None)

    def _start(self, args: Sequence[Any], options: dict[str, Any]) -> list[Any]:
        """The outputs, new or those among the arguments."""
        outs = list(args[self.nin :])
        if len(args) != self.nin and len(outs) != self.nout:
            raise ArgumentError(
                f"{self.name}: {self.nin} inputs and 0 or {self.nout} outputs are needed, got "
                f"{len(args)} arguments."
            )
        if any(not isinstance(x, gg.Tensor) for x in outs):
            raise DTypeError(f"{self.name}: outputs must be Tensors, got {outs}.")
        for x in outs:
            begin_write(x)
        results = self._apply(args, options, self.nout)
        for x, result in zip(outs, results, strict=False):
            x[...] = result
        return outs or results

    def _run(self, lib: Any, values: list[Any], options: dict[str, Any]) -> Sequence[Any]:
        types, shape = self._types(values), self._shape(values, options.get("size"))
        outs = [lib.array(x, order="C") for x in values[self.nin :]]
        axes = _axes(options.get("axis", ()), len(shape))
        kept = _reduced(shape, axes, options.get("keepdims", False))
        for p, x in zip(self.out_params, outs, strict=False):
            if not p.raw and x.shape != kept:
                raise ShapeError(f"{self.name}: the output {p.name} is {x.shape}, not {kept}.")
        if lib is not np:
            results = self.on_gpu(*values[: self.nin], *outs, **options)
            return results if isinstance(results, tuple) else [results]
        inputs = [
            x if is_array(x) else types[p.ctype].type(x)
            for p, x in zip(self.in_params, values, strict=False)
        ]
        outs = outs or [np.zeros(kept, types[p.ctype]) for p in self.out_params]
        if math.prod(kept):
            on_host.run(self, types, shape, axes, [*inputs, *outs])
        return outs

    def _types(self, values: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """The dtypes of the parameters' types: letters are decided by arrays, outputs first."""
        types = {p.ctype: np.dtype(p.ctype) for p in self.params if len(p.ctype) > 1}
        pairs = list(zip(self.params, values, strict=False))
        for p, x in pairs[self.nin :] + pairs[: self.nin]:
            if is_array(x) and types.setdefault(p.ctype, x.dtype) != x.dtype:
                raise DTypeError(
                    f"{self.name}: the argument {p.name} is {x.dtype}, but the parameter "
                    f"'{p.ctype} {p.name}' is {types[p.ctype]}. Cast it with astype."
                )
        if unknown := sorted({p.ctype for p in self.params if p.ctype not in types}):
            raise DTypeError(
                f"{self.name}: no array decides the types {unknown}. Write dtypes, as 'int32 n'."
            )
        return types

    def _shape(self, values: Sequence[Any], size: int | None = None) -> tuple[int, ...]:
        """The shape of the loop."""
        shapes = [
            x.shape
            for p, x in list(zip(self.params, values, strict=False))[self._shaping]
            if not p.raw and is_array(x)
        ]
        if (size is None) == (not shapes):
            raise ArgumentError(
                f"{self.name}: size= is needed if all arrays are raw, and only then; got {size}, "
                f"and arrays of shapes {shapes} that are not raw."
            )
        try:
            return np.broadcast_shapes(*shapes) if size is None else (size,)
        except ValueError:
            raise ShapeError(f"{self.name}: shapes {shapes} do not broadcast.") from None

    def _gradient(self, xp: Any, g: Any, values: list[Any], out: Any, k: int, axis: Any) -> Any:
        p, outs = self.params[k], out if isinstance(out, tuple) else (out,)
        if p.is_out:  # its value before the call
            return None
        if axis != ():
            shape = self._shape(values)
            wide = _reduced(shape, _axes(axis, len(shape)), True)
            outs = tuple(xp.reshape(y, wide) for y in outs)
            g = tuple(xp.reshape(y, wide) for y in g) if type(g) is tuple else xp.reshape(g, wide)
        known = dict(zip((q.name for q in self.params), values, strict=False))
        known |= dict(zip((q.name for q in self.out_params), outs, strict=True))
        known["out"] = outs if self.nout > 1 else outs[0]
        result = self._product(xp, p, {**known, "g": g})
        if p.raw or result is None:
            return result
        return xp.sum_to(xp.broadcast_to(result, self._shape(values)), values[k].shape)

    def _product(self, xp: Any, p: _Parameter, known: dict[str, Any]) -> Any:
        """The gradient of an input before it is summed to its shape."""
        if p.name in self._vjp:
            return evaluate(self._vjp[p.name], xp, known)
        if p.name not in self._d or self.nout > 1:
            raise NoGradientError(
                f"{self.name}: no derivative by the input {p.name} was declared: add it to "
                f"{'d= or ' * (self.nout == 1)}vjp=, as None if it is 0."
            )
        d, g = evaluate(self._d[p.name], xp, known), known["g"]
        if d is None:
            return None
        return g * (xp.conj(d) if getattr(d, "dtype", g.dtype).kind == "c" else d)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    axes = tuple(range(ndim)) if axis is None else axis
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axes, ndim)))


def _reduced(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes)


class ElementwiseKernel(_OfParameters):
    """A kernel of each element, as CuPy's ``ElementwiseKernel``, with these arguments besides.

    Args:
        d: of a kernel with one output, partial derivatives by the inputs, in order or by name: a
            number, a function ``(xp, names...)`` of inputs and outputs, or an ElementwiseKernel,
            whose inputs have names of these and whose output has the shape of this kernel's.
        vjp: instead, functions ``(xp, g, names...)``, or kernels, that return the gradients.

    Raises:
        KernelError: at a call on the CPU, if there is no C++ compiler, or the kernel fails.

    >>> import gpugrad.compat.cupy as cp
    >>> square = cp.ElementwiseKernel("T x", "T y", "y = x * x", d=[lambda xp, x: 2 * x])
    >>> gg.grad(lambda x: cp.sum(square(x)))(cp.arange(3.0)).tolist()
    [0.0, 2.0, 4.0]
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        d: Any = None,
        vjp: Any = None,
        **options: Any,
    ) -> None:
        definition = in_params, out_params, operation, name, reduce_dims, preamble
        super().__init__(definition, name, preamble, options, d, vjp)
        self.operation, self.no_return, self.return_tuple = operation, no_return, return_tuple

    def __call__(self, *args: Any, size: int | None = None, **launch: Any) -> Any:
        """The outputs, new or those among the arguments; `size` if all arrays are raw."""
        results = self._start(args, {} if size is None else {"size": int(size)})
        if self.no_return:
            return None
        return results[0] if self.nout == 1 and not self.return_tuple else tuple(results)

    def loop(self, types: Any, inputs: str, outputs: str, reduced: int) -> tuple[str, str]:
        """The lines before the kernel, and its body."""
        prep, after = (self._options.get(key, "") for key in ("loop_prep", "after_loop"))
        return "", (
            f"{prep};\nfor (ptrdiff_t i = 0; i < _ind.size(); ++i) {{\n_ind.set(i);\n"
            f"const ptrdiff_t _i = i;\n{inputs}\n{outputs}\n{self.operation};\n}}\n{after};"
        )


class ReductionKernel(_OfParameters):
    """A reduction along axes, as CuPy's ``ReductionKernel``, with derivatives besides.

    Args:
        d: derivatives of the output by an element of each input, as for `ElementwiseKernel`;
            the output has length 1 along reduced axes there.
        vjp: instead, functions ``(xp, g, names...)``; `g` has these axes, too.

    >>> import gpugrad.compat.cupy as cp
    >>> rules = {"x": lambda xp, x, y: x / y}
    >>> l2 = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2", d=rules)
    >>> l2(cp.asarray([[3.0, 4.0], [0.0, 2.0]]), axis=1).tolist()
    [5.0, 2.0]
    >>> gg.grad(l2)(cp.asarray([3.0, 4.0])).tolist()
    [0.6, 0.8]
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
        *,
        d: Any = None,
        vjp: Any = None,
    ) -> None:
        texts = map_expr, reduce_expr, post_map_expr, identity
        definition = in_params, out_params, *texts, name, reduce_type, reduce_dims, preamble
        super().__init__((*definition, tuple(options)), name, preamble, {}, d, vjp)
        self._texts = [str("" if t is None else t).replace("\n", " ") for t in texts]
        self.reduce_type, self._shaping = reduce_type, slice(self.nin)

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, **launch: Any
    ) -> Any:
        """The reductions along an axis, several, or all (None)."""
        axis = tuple(axis) if isinstance(axis, (list, tuple)) else axis
        args = args if out is None else (*args, out)
        results = self._start(args, {"axis": axis, "keepdims": bool(keepdims)})
        return results[0] if self.nout == 1 else tuple(results)

    def loop(self, types: Any, inputs: str, outputs: str, reduced: int) -> tuple[str, str]:
        """The lines before the kernel, and its body."""
        mapped, joined, last, identity = self._texts
        kind = self.reduce_type or on_host.c_type(types[self.out_params[0].ctype])
        define = f"#define REDUCE(a, b) ({joined})\n#define POST_MAP(a) ({last})\n"
        return f"{define}typedef {kind} _type_reduce;", (
            "for (ptrdiff_t _i = 0; _i < _out_ind.size(); ++_i) {\n"
            f"_type_reduce _s = _type_reduce({identity});\n"
            f"for (ptrdiff_t _J = 0; _J < {reduced}; ++_J) {{\n"
            f"const ptrdiff_t i = _i * {reduced} + _J;\n_ind.set(i);\n{inputs}\n"
            f"_type_reduce _a = static_cast<_type_reduce>({mapped});\n_s = REDUCE(_s, _a);\n}}\n"
            f"_out_ind.set(_i);\n{outputs}\nPOST_MAP(_s);\n}}"
        )
