"""SciPy's own formulas, read on Tensors.

SciPy writes most functions of `scipy.signal` in Python over an array namespace. A `Reader` executes
the source of such a module once more, with other imports: `numpy` is `gpugrad.numpy`, `scipy.fft`,
`scipy.special` and `scipy.linalg` are gpugrad's, and compiled helpers are ops. So signatures,
defaults and errors are SciPy's, and each function is a composite of ops.

A few lines of SciPy are replaced first. They were there in each SciPy of `TRIED`. If one is not
found, the formula might have changed with it: calls of that function raise and say so.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import scipy

from gpugrad.autodiff.recorder import recording_stopped
from gpugrad.core.backend import TENSOR
from gpugrad.core.devices import device
from gpugrad.core.forking import new_rlock
from gpugrad.core.tensor import Tensor
from gpugrad.errors import GpugradWarning
from gpugrad.scipy.calling import holds, known, on_values
from gpugrad.scipy.namespaces import MODULES, NUMPY, Float, Names
from gpugrad.trace.array import pause_trace

TRIED = ("1.17.1", "1.18.1")


def is_newer(version: str) -> bool:
    """Whether a SciPy of that version has changes that no test has seen; not only a later patch."""
    minor, tried = (tuple(map(int, v.split(".")[:2])) for v in (version, TRIED[-1]))
    return minor > tried


@functools.cache
def _compare(version: str) -> None:
    """Warn, once, of a SciPy newer than those tried."""
    if is_newer(version):
        warnings.warn(
            f"gpugrad.scipy was tried with SciPy {' and '.join(TRIED)}, not {version}: functions "
            "whose formulas have changed raise when they are called.",
            GpugradWarning,
            stacklevel=3,
        )


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


_HELPERS = "scipy._lib._array_api"
_REPLACED = {
    _HELPERS: {
        "xp_device": lambda x: None,  # `public` sets the default device
        "xp_capabilities": lambda **options: lambda function: function,  # only a table in docs
    }
}


def _sum(values: Any, start: Any = 0) -> Any:
    """`sum` in SciPy's formulas: one op of a Tensor, not one for each element."""
    if isinstance(values, Tensor) and values.ndim and start == 0:
        return TENSOR.sum(values, axis=0)
    return sum(values, start)


def _all(values: Any) -> bool:
    """`all` in SciPy's formulas, likewise."""
    if isinstance(values, Tensor) and values.ndim == 1:
        return bool(TENSOR.all(values))
    return all(values)


def _any(values: Any) -> bool:
    """`any` in SciPy's formulas, likewise."""
    if isinstance(values, Tensor) and values.ndim == 1:
        return bool(TENSOR.any(values))
    return any(values)


_executing = new_rlock(awaited=3)  # made by an import, for which a fork waits, too


class Reader:
    """Executes modules of SciPy with other imports. Checks of unknown values raise nothing.

    A thread waits for a module that another one executes. No tape, trace or device of the caller
    follows a module's constants.

    Args:
        package: the modules to execute, a prefix of their names.
        given: for a module's name, the module that an import gets instead.
        edits: for a module's name, lines to replace because no Tensor can do what they ask; or for
            a function or class, such lines in it.
        replaced: for a module's name, what stands for its functions, and for methods as in
            ``"BSpline.__call__"``.
        names: functions that the new lines call.
    """

    def __init__(
        self,
        package: str,
        given: Mapping[str, Any],
        edits: Mapping[str, Mapping[Any, Any]],
        replaced: Mapping[str, Mapping[str, Any]] | None = None,
        **names: Any,
    ) -> None:
        _compare(scipy.__version__)
        self.package, self.given, self.edits = package, {**MODULES, **given}, edits
        self.replaced = {**_REPLACED, **(replaced or {})}
        self.modules: dict[str, Any] = {}
        self.builtins = {
            **vars(builtins),
            "__import__": self._import,
            "float": Float,
            "sum": _sum,
            "all": _all,
            "any": _any,
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
        with _executing:
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
        module.__dict__.update(__package__=spec.parent, __file__=spec.origin)
        if source is None:
            compiled = vars(importlib.import_module(name))
            module.__dict__.update((k, on_values(compiled[k])) for k in compiled if k[:2] != "__")
        elif name != self.package:  # the package itself only leads to its modules
            try:
                self._execute_source(module, source, spec.origin or name)
            except Exception as error:
                if not is_newer(scipy.__version__):
                    raise
                scipys = importlib.import_module(name)
                module.__dict__.update(vars(scipys), __builtins__=self.builtins)
                _refuse(module, scipys, None, _unread(name, f"has other imports there: {error}"))

    def _execute_source(self, module: Names, source: str, file: str) -> None:
        name = module.__name__
        source, missing = edited(source, self.edits.get(name, {}))
        exec(compile(_Checks().visit(ast.parse(source, file)), file, "exec"), module.__dict__)
        for title, value in self.replaced.get(name, {}).items():
            *owner, attribute = title.split(".")
            setattr(functools.reduce(getattr, owner, module), attribute, value)
        for owners, line in missing.items():
            _refuse(module, module, owners.split(), _unread(name, f"has no line {line!r} there"))

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


def edited(source: str, edits: Mapping[Any, Any], owners: str = "") -> tuple[str, dict[str, str]]:
    """The source of a module of SciPy with other lines.

    Args:
        source: the module's.
        edits: new lines by old ones. A tuple of lines means one of them, as versions of SciPy
            differ; "" in it means none. Or such dictionaries by the names that need the lines.
        owners: these names; "" if the whole module needs them.

    Returns:
        The new source, and for the owners of each line that is not there, the line.
    """
    missing: dict[str, str] = {}
    for lines, new in edits.items():
        if isinstance(new, Mapping):
            source, more = edited(source, new, lines)
            missing |= more
            continue
        choices = lines if isinstance(lines, tuple) else (lines,)
        old = next((line for line in choices if line in source), None)
        if old is None:
            missing[owners] = choices[0]
        elif old:
            source = source.replace(old, new)
    return source, missing


def _unread(name: str, why: str) -> str:
    return (
        f"gpugrad.scipy reads SciPy's own formulas in {name}, and SciPy {scipy.__version__} {why}. "
        f"Install one of the versions {', '.join(TRIED)}, or call SciPy with x.numpy(), without "
        "gradients."
    )


def _refuse(module: Names, source: Any, names: Any, message: str) -> None:
    """Make functions and classes of a module raise when they are called.

    Args:
        module: where they are set.
        source: the module that has them: `module`, or SciPy's own, which stays as it is.
        names: theirs; of all that the module defines if there are none.
        message: of the ImportError.
    """

    def refuse(*args: Any, **keywords: Any) -> Any:
        raise ImportError(message)

    for name, thing in list(vars(source).items()):
        if getattr(thing, "__module__", "") != module.__name__ or (names and name not in names):
            continue
        if isinstance(thing, types.FunctionType):
            module.__dict__[name] = functools.wraps(thing)(refuse)
        elif isinstance(thing, type):
            own = [k for k in vars(thing) if k[:2] != "__" and callable(getattr(thing, k))]
            methods = dict.fromkeys(["__init__", "__call__", *own], refuse)
            if source is not module:
                module.__dict__[name] = type(name, (), {**methods, "__module__": module.__name__})
                continue
            for k in methods:  # instances and subclasses raise, too
                setattr(thing, k, refuse)
