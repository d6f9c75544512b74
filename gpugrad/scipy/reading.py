"""SciPy's own formulas, read on Tensors.

SciPy writes most functions of `scipy.signal` in Python over an array namespace. A `Reader` executes
the source of such a module once more, with other imports: `numpy` is `gpugrad.numpy`, `scipy.fft`,
`scipy.special` and `scipy.linalg` are gpugrad's, and compiled helpers are ops. So signatures,
defaults and errors are SciPy's, and each function is a composite of ops.

A few lines of SciPy are replaced first. They were there in each SciPy of `TRIED`; if one is not
found, the import fails and says so, because the formula might have changed with it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy

import gpugrad.fft
import gpugrad.linalg
import gpugrad.numpy
import gpugrad.special
from gpugrad.array_api import numpy_calls
from gpugrad.array_api.numpy_calls import as_tensors
from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import SCALARS, TENSOR
from gpugrad.core.devices import device
from gpugrad.core.forking import new_rlock
from gpugrad.core.listening import threads
from gpugrad.core.tensor import Tensor
from gpugrad.errors import GpugradError
from gpugrad.numpy.creation import empty
from gpugrad.numpy.random import seeded_rng
from gpugrad.trace.array import pause_trace

TRIED = ("1.17.0", "1.17.1", "1.18.1")


class Names(types.ModuleType):
    """A module with the names of `given`, and else those of the first source that has one."""

    def __init__(self, name: str, given: Mapping[str, Any], *sources: Any) -> None:
        super().__init__(name)
        self.__dict__.update(given, _sources=sources)

    def __getattr__(self, name: str) -> Any:
        for source in self._sources:
            value = getattr(source, name, self)
            if value is not self:
                self.__dict__[name] = value
                return value
        raise AttributeError(f"{self.__name__} has no {name!r}.")


def _of_numbers(name: str) -> Callable[..., Any]:
    """A function of `math` that runs the op on Tensors."""
    function = getattr(math, name)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if any(isinstance(x, Tensor) for x in args):
            return getattr(gpugrad.numpy, name)(*args)
        return function(*args)

    return call


_MATH = [
    "acosh",
    "asinh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "hypot",
    "log",
    "log10",
    "log2",
    "sin",
    "sinh",
    "sqrt",
    "tan",
]


class _FloatType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.float)


class Float(metaclass=_FloatType):
    """`float` in SciPy's formulas: keeps a Tensor, whose gradient a Python number would cut."""

    dtype = np.dtype(np.float64)

    def __new__(cls, value: Any = 0.0) -> Any:
        """The number, or the Tensor with no axes and a floating-point dtype."""
        if not isinstance(value, Tensor):
            return builtins.float(value)
        if value.size != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        value = TENSOR.reshape(value, ())
        return value if value.dtype.kind in "fc" else TENSOR.astype(value, "float64")


def holds(condition: Any) -> bool:
    """A check of values; true if they are not known, in a trace or under `vmap`."""
    try:
        return bool(condition)
    except GpugradError:
        return True


def known(condition: Callable[[], Any]) -> bool:
    """A condition on values; false if they are not known, in a trace or under `vmap`."""
    try:
        return bool(condition())
    except GpugradError:
        return False


class _Checks(ast.NodeTransformer):
    """Makes ``if known(lambda: condition)`` of each ``if condition`` whose block raises."""

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        names = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))
        if isinstance(node.body[-1], ast.Raise) and not names:
            test = ast.parse("known(lambda: 0)", mode="eval").body
            test.args[0].body = node.test  # type: ignore[attr-defined]  # a call of a lambda
            node.test = ast.fix_missing_locations(ast.copy_location(test, node.test))
        return node


T = TypeVar("T")


def made_once(make: Callable[[], T]) -> Callable[[], T]:
    """A function that returns one object, which the first thread that asks for it makes."""
    lock, made = new_rlock(awaited=2), functools.cache(make)

    @functools.wraps(make)
    def get() -> T:
        with lock:
            return made()

    return get


class Reader:
    """Executes modules of SciPy with other imports. Checks of unknown values raise nothing.

    A thread waits for a module that another one executes. No tape, trace or device of the caller
    follows a module's constants.

    Args:
        package: the modules to execute, a prefix of their names.
        given: for a module's name, the module that an import gets instead.
        edits: for a module's name, lines to replace because no Tensor can do what they ask.
        replaced: for a module's name, what stands for its functions, and for methods as in
            ``"BSpline.__call__"``.
        names: functions that the new lines call.
    """

    def __init__(
        self,
        package: str,
        given: Mapping[str, Any],
        edits: Mapping[str, Mapping[Any, str]],
        replaced: Mapping[str, Mapping[str, Any]] | None = None,
        **names: Any,
    ) -> None:
        self.package, self.given, self.edits = package, {**MODULES, **given}, edits
        self.replaced = {**_REPLACED, **(replaced or {})}
        self.modules: dict[str, Any] = {}
        self._lock = new_rlock(awaited=2)
        self.builtins = {
            **vars(builtins),
            "__import__": self._import,
            "float": Float,
            "holds": holds,
            "known": known,
            **names,
        }

    def read(self, name: str) -> Any:
        """The module of that name, executed with gpugrad's namespaces."""
        if name in self.given:
            return self.given[name]
        if name.startswith("numpy."):
            found: Any = NUMPY
            for part in name.split(".")[1:]:
                found = getattr(found, part, None)
            return found or importlib.import_module(name)
        if not (name in (self.package, _HELPERS) or name.startswith(f"{self.package}.")):
            return importlib.import_module(name)
        with self._lock:
            if name not in self.modules:
                try:
                    with recording_stopped(), pause_trace(), device("cpu"):
                        self._execute(name)
                except BaseException:  # Ctrl-C, too: the next who asks tries again
                    self.modules.pop(name, None)
                    raise
        return self.modules[name]

    def _execute(self, name: str) -> None:
        spec: Any = importlib.util.find_spec(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
            raise ModuleNotFoundError(name)
        source = spec.loader.get_source(name)  # None for a compiled module
        module = self.modules[name] = Names(name, {"__builtins__": self.builtins})
        module.__dict__["__package__"] = spec.parent
        if source is None:
            compiled = vars(importlib.import_module(name))
            module.__dict__.update((k, on_values(compiled[k])) for k in compiled if k[:2] != "__")
        elif name != self.package:  # the package itself only leads to its modules
            source = edited(name, source, self.edits.get(name, {}))
            tree = _Checks().visit(ast.parse(source, spec.origin or name))
            exec(compile(tree, spec.origin or name, "exec"), module.__dict__)
            for title, value in self.replaced.get(name, {}).items():
                *owner, attribute = title.split(".")
                setattr(functools.reduce(getattr, owner, module), attribute, value)

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """`__import__` of the modules that are executed."""
        if level:
            parents = globals["__package__"].split(".")
            package = ".".join(parents[: len(parents) + 1 - level])
            name = f"{package}.{name}" if name else package
        if not name.startswith(("numpy", "scipy", "math")):
            return builtins.__import__(name, globals, locals, fromlist, 0)
        module = self.read(name)
        if not fromlist:  # `import scipy.fft as x` asks the package for `fft`
            for part in reversed(name.split(".")[1:]):
                name = name.rpartition(".")[0]
                module = Names(name, {part: module}, self.read(name))
            return module
        parts = {  # never set on the module itself, which may be SciPy's own
            part: self.read(f"{name}.{part}")
            for part in fromlist
            if part != "*" and (f"{name}.{part}" in self.given or not hasattr(module, part))
        }
        return Names(name, parts, module) if parts else module


def edited(name: str, source: str, edits: Mapping[Any, str]) -> str:
    """The source of a module of SciPy with other lines; raises if one of the lines is not there.

    A tuple of lines means one of them, as versions of SciPy differ; "" in it means none.
    """
    for lines, new in edits.items():
        choices = lines if isinstance(lines, tuple) else (lines,)
        old = next((line for line in choices if line in source), None)
        if old == "":
            continue
        if old is None:
            raise ImportError(
                f"gpugrad.scipy reads SciPy's own formulas, and SciPy {scipy.__version__} has no "
                f"line {choices[0]!r} in {name}. Install one of the versions {', '.join(TRIED)}, "
                "or call SciPy with x.numpy(), without gradients."
            )
        source = source.replace(old, new)
    return source


@functools.cache
def _signature_of(thing: Any) -> inspect.Signature | None:
    """The signature of a function of SciPy's that draws random numbers; None of all others."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):  # a compiled function
        return None
    return signature if set(_RNG) & set(signature.parameters) else None


_RNG = ("rng", "random_state")


def _seeded(thing: Any, args: Any, keywords: Any) -> tuple[Any, Any]:
    """The arguments of a function of SciPy's, with a seeded generator where it would choose one."""
    signature = _signature_of(thing)
    if signature is None:
        return args, keywords
    bound = signature.bind_partial(*args, **keywords)
    if any(bound.arguments.get(name) is not None for name in _RNG):
        return args, keywords
    for name in _RNG:
        bound.arguments.pop(name, None)
    bound.arguments[next(n for n in _RNG if n in signature.parameters)] = seeded_rng()
    return bound.args, bound.kwargs


def on_values(thing: Any) -> Any:
    """A compiled function that gets the values of Tensors; raises if that cuts a gradient."""
    if isinstance(thing, type) or not callable(thing):
        return thing

    @functools.wraps(thing)
    def call(*args: Any, **keywords: Any) -> Any:
        args, keywords = _seeded(thing, args, keywords)
        title = f"{getattr(thing, '__module__', 'scipy')}.{thing.__name__}"
        return _tensors(numpy_calls.on_values(title, thing, args, keywords))

    call.passes_through = True  # type: ignore[attr-defined]  # ci/scipy_page asks
    return call


def from_gpu(x: Any) -> Any:
    """A Tensor on the host, for SciPy's compiled functions; others as they are."""
    return x.to_device("cpu") if isinstance(x, Tensor) and x.device.kind != "cpu" else x


def _tensors(result: Any, given: Sequence[Any] = ()) -> Any:
    """A result with Tensors for arrays, also in dictionaries; copies of the `given` ones."""
    if isinstance(result, dict):
        return type(result)({key: _tensors(value, given) for key, value in result.items()})
    if type(result) is tuple:
        return tuple(_tensors(value, given) for value in result)
    return as_tensors(result, given)


class _ArrayType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class _Array(metaclass=_ArrayType):
    """`numpy.ndarray` in SciPy's formulas."""

    def __new__(cls, shape: Any) -> Any:
        return empty(shape)


class _Polynomial:
    """`numpy.polynomial.Polynomial` in SciPy's formulas: products and sums of Tensors."""

    def __init__(self, coef: Any) -> None:
        self.coef = NUMPY.asarray(coef)

    def __mul__(self, other: Any) -> _Polynomial:
        if isinstance(other, _Polynomial):
            return _Polynomial(NUMPY.convolve(self.coef, other.coef))
        return _Polynomial(self.coef * other)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> _Polynomial:
        return _Polynomial(self.coef / number)

    def __pow__(self, n: int) -> _Polynomial:
        return functools.reduce(_Polynomial.__mul__, [self] * n, _Polynomial([1.0]))

    def __radd__(self, other: Any) -> _Polynomial:
        if not isinstance(other, _Polynomial):  # the 0 that a sum begins with
            return self
        return _Polynomial(self.coef + other.coef)

    __add__ = __radd__


def _windows(x: Any, window_shape: Any, axis: Any = None, writeable: bool = False) -> Any:
    return TENSOR.sliding_window_view(x, window_shape, axis=axis)


_STRIDE_TRICKS = {  # SciPy asks for strides of 0 alone
    "as_strided": lambda x, shape, strides: TENSOR.broadcast_to(x, shape),
    "sliding_window_view": _windows,
}


def _is_scalar(x: Any) -> bool:
    return np.isscalar(x) or (isinstance(x, Tensor) and not x.ndim)


NUMPY = Names(
    "numpy",
    {
        "ndarray": _Array,
        "isscalar": _is_scalar,
        "iterable": lambda x: bool(x.ndim) if isinstance(x, Tensor) else np.iterable(x),
        "lib": Names("lib", {"stride_tricks": Names("stride_tricks", _STRIDE_TRICKS)}),
        "polynomial": Names("polynomial", {"Polynomial": _Polynomial}, gpugrad.numpy.polynomial),
    },
    gpugrad.numpy,
    np,
)


def _without(function: Any, *names: str) -> Callable[..., Any]:
    """A function that ignores keywords about SciPy's own algorithms."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        return function(*args, **{k: v for k, v in keywords.items() if k not in names})

    return call


def _either(ours: Any, theirs: Any) -> Callable[..., Any]:
    """Our function of Tensors, and SciPy's of Python's numbers, which are float64 there."""

    @functools.wraps(theirs)
    def call(*args: Any, **keywords: Any) -> Any:
        function = ours if any(isinstance(x, Tensor) for x in args) else theirs
        return function(*args, **keywords)

    return call


def _companion(a: Any) -> Tensor:
    """`scipy.linalg.companion`."""
    a = NUMPY.asarray(a)
    below = NUMPY.eye(a.size - 2, a.size - 1, dtype=a.dtype)
    return NUMPY.concatenate([(-a[1:] / a[0])[None], below])


def _modules() -> dict[str, Any]:
    """The modules that imports in SciPy's modules get."""
    from scipy import fft, linalg, special
    from scipy._lib import _array_api_override

    try:
        compat: Any = importlib.import_module("scipy._external.array_api_compat")
    except ModuleNotFoundError:  # before SciPy 1.18
        compat = importlib.import_module("scipy._lib.array_api_compat")
    transforms = {
        name: _without(getattr(gpugrad.numpy.fft, name), "workers", "overwrite_x", "plan")
        for name in gpugrad.numpy.fft.__all__
    }
    functions = {
        name: _either(getattr(gpugrad.special, name), getattr(special, name))
        for name in gpugrad.special.__all__
        if hasattr(special, name)
    }
    options = ("assume_a", "check_finite", "cond", "lapack_driver", "overwrite_a", "overwrite_b")
    solvers = {
        name: _without(getattr(gpugrad.numpy.linalg, name), *options)
        for name in ("inv", "lstsq", "solve")
    }
    solvers |= {"companion": _companion, "expm": gpugrad.linalg.expm}
    values = {name: on_values(getattr(linalg, name)) for name in linalg.__all__}
    others = {name: on_values(getattr(special, name)) for name in special.__all__}
    override = {"array_namespace": lambda *arrays, **options: NUMPY}
    return {
        "numpy": NUMPY,
        "math": Names("math", {name: _of_numbers(name) for name in _MATH}, math),
        compat.__name__: Names("compat", {"numpy": NUMPY}, compat),
        "scipy._lib._array_api_override": Names("override", override, _array_api_override),
        "scipy.fft": Names("fft", transforms, fft),
        "scipy.special": Names("special", {**others, **functions}, special),
        "scipy.linalg": Names("linalg", {**values, **solvers}, linalg),
    }


_HELPERS = "scipy._lib._array_api"
_REPLACED = {
    _HELPERS: {
        "xp_device": lambda x: None,  # `public` sets the default device
        "xp_capabilities": lambda **options: lambda function: function,  # only a table in docs
    }
}
MODULES = _modules()


_PLAIN = (*SCALARS, str, bytes, type(None), np.ndarray, np.generic)


def _values(x: Any) -> Any:
    """An argument of SciPy's own functions; raises TypeError for what they must not get."""
    if isinstance(x, Tensor):
        array = x._read()._data
        if threads.stack or type(array) is not np.ndarray or array.dtype.kind not in "biufc":
            raise TypeError
        return array if array.ndim else array[()]  # SciPy asks np.isscalar
    if isinstance(x, (list, tuple)):
        return type(x)(map(_values, x))
    if not isinstance(x, _PLAIN):
        raise TypeError
    return x


def plain_values(*args: Any) -> list[Any] | None:
    """The NumPy arrays of arguments that no tape, trace or vmap follows; else None."""
    try:
        return [_values(x) for x in args]
    except TypeError:
        return None


def public(function: Any, scipys: Any) -> Any:
    """A function of Tensors that creates its constants on the device of its arguments.

    SciPy's own runs on numbers, and on NumPy arrays where no tape, trace or vmap follows: it takes
    less time.
    """
    if isinstance(function, type) or not callable(function):
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        values = (*args, *keywords.values())
        if (plain := plain_values(*values)) is not None:
            named = dict(zip(keywords, plain[len(args) :], strict=True))
            return _tensors(scipys(*plain[: len(args)], **named), plain)
        for x in values:
            if isinstance(x, Tensor):
                with device(x.device):
                    return _tensors(function(*args, **keywords))
        return _tensors(function(*args, **keywords))

    call.__module__ = function.__module__.replace("scipy.", "gpugrad.scipy.", 1)
    return call
