"""Module: an object that finds the Variables in its attributes."""

from __future__ import annotations

import contextlib
import functools
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from gpugrad.core.arguments import FLAG, INITIALIZER, optional, takes
from gpugrad.core.backend import HALF, TENSOR
from gpugrad.core.format import format_html
from gpugrad.core.known_as import MissingNameError, about, hint
from gpugrad.core.tensor import Tensor, argument, tensor
from gpugrad.core.user_code import layer_calls
from gpugrad.core.variable import Variable
from gpugrad.errors import (
    ArgumentError,
    DTypeError,
    GpugradError,
    StructureError,
    reraise,
    saying_where,
)
from gpugrad.nn.summary import summary
from gpugrad.nn.tree import by_path, named_parts, parts_of, replaced

M = TypeVar("M", bound="Module")

_PLACE = "a module"


class LoadReport(NamedTuple):
    """The names that `Module.load_state` could not match."""

    missing: list[str]
    """Variables without a value."""
    unexpected: list[str]
    """Values without a Variable."""


class HookHandle:
    """A hook of a Module; `remove` takes it off."""

    def __init__(self, hooks: list[HookHandle], hook: Any) -> None:
        self._hooks, self.hook = hooks, hook
        hooks.append(self)

    def remove(self) -> None:
        """Take the hook off; a second time does nothing."""
        with contextlib.suppress(ValueError):
            self._hooks.remove(self)


def _naming_parts(init: Callable[..., None]) -> Callable[..., None]:
    """An ``__init__`` after which Variables and Modules are named by their paths.

    The Modules inside were constructed before, so a name ends as the path from the outermost. The
    ``__init__`` of a dataclass is written after its class, but ends with ``__post_init__``.
    """

    @functools.wraps(init)
    def named(self: Module, *args: Any, **keywords: Any) -> None:
        init(self, *args, **keywords)
        if getattr(type(self), init.__name__) is not named:  # a subclass goes on
            return
        _name_parts(self, "")

    return named


def _name_parts(module: Module, prefix: str) -> None:
    for path, part in by_path(module, named_parts(module, Module)).items():
        path = f"{prefix}.{path}".strip(".")
        if isinstance(part, Variable):
            part.name = path
        else:
            part.__dict__["_path"] = path


def _explaining_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """The ``__init__`` of a layer, whose errors name the layer."""

    @functools.wraps(init)
    def checked(self: Module, *args: Any, **keywords: Any) -> None:
        for what in keywords:
            if what.endswith("initializer"):
                optional(INITIALIZER)(type(self).__name__, what, keywords[what])
        try:
            init(self, *args, **keywords)
        except TypeError as error:
            if "__init__() " not in str(error):
                raise
            text = re.sub(r"^\w+\.__init__\(\)", f"{type(self).__name__}:", str(error))
            raise TypeError(f"{text.rstrip('.')}.") from None

    return checked


class Module:
    """Base class of layers and models.

    A subclass implements `forward` and assigns Variables and Modules as attributes.

    Nothing is registered. Variables are found in attributes, in lists, tuples and dicts in
    attributes, and in the Modules among these, in the order in which the attributes were first
    assigned. A Variable that is reachable twice counts once, under its first name. When a Module
    has been constructed, its Variables are named by their paths, such as ``layers.0.kernel``, and
    errors in the `forward` of a layer begin with the layer's path. A Module that is assigned later,
    such as a new head, is named in the same way; one that is put into a list later is not.

    >>> class Scale(gg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = gg.Variable(2.0)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> print(model(3.0), list(model.state()))
    6.0 ['factor']
    """

    _without_result: ClassVar[str] = "not called"
    """The output in the summary of a Module that was not called."""
    _shown: ClassVar[tuple[str, ...]] = ()
    """The attributes in the repr; if there are none, the number of numbers stands there."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        ours = cls.__module__.startswith("gpugrad.")
        for name in ("__init__", "__post_init__"):
            if (init := vars(cls).get(name)) is not None:
                if ours:
                    init = _explaining_arguments(saying_where(init))
                setattr(cls, name, _naming_parts(init))

    @_naming_parts
    def __post_init__(self) -> None:
        """A dataclass calls this at the end of its ``__init__``."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign; a Module that comes after the construction, such as a new head, gets its path."""
        object.__setattr__(self, name, value)
        path = self.__dict__.get("_path")
        if path is None or not isinstance(value, Module) or value.__dict__.get("_path") != "":
            return
        if all(part is not self for _, part in named_parts(value, Module)):  # no parent of this
            _name_parts(value, f"{path}.{name}".strip("."))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The result of `forward`, between the hooks."""
        try:
            if "_hooks" in self.__dict__:
                return self._call_with_hooks(args, keywords)
            return self.forward(*args, **keywords)
        except GpugradError as error:
            _name_layer(error, self)
            raise
        except TypeError as error:
            if "training" not in keywords or "'training'" not in str(error):
                raise
            raise TypeError(f"{error}.{hint(_PLACE, 'train')}") from error

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Compute the result; a subclass must implement it."""
        way_out = " Rename its method call." if hasattr(type(self), "call") else ""
        raise NotImplementedError(f"{type(self).__name__} does not implement forward.{way_out}")

    # ---- parts

    def named_variables(self) -> Iterator[tuple[str, Variable]]:
        """Pairs of a dotted name, such as ``layers.0.kernel``, and a Variable."""
        return ((path, v) for path, v in named_parts(self, Module) if isinstance(v, Variable))

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Pairs of a dotted name and a Module; the first is "" and this Module."""
        return ((path, m) for path, m in named_parts(self, Module) if isinstance(m, Module))

    @property
    def variables(self) -> list[Variable]:
        """All Variables."""
        return [variable for _, variable in self.named_variables()]

    @property
    def trainable_variables(self) -> list[Variable]:
        """All trainable Variables."""
        return [variable for variable in self.variables if variable.trainable]

    def freeze(self: M) -> M:
        """Make all Variables not trainable, and return the Module.

        >>> layer = gg.nn.Dense(2, 3).freeze()
        >>> layer.trainable_variables
        []
        >>> len(layer.unfreeze().trainable_variables)
        2
        """
        for variable in self.variables:
            variable.trainable = False
        return self

    def unfreeze(self: M) -> M:
        """Make Variables that were created trainable so again, and return the Module.

        Others, such as the running statistics of `BatchNorm`, stay as they are.
        """
        for variable in self.variables:
            if variable.created_trainable:
                variable.trainable = True
        return self

    @property
    def trainable(self) -> bool:
        """Whether any Variable is trainable; False freezes all of them, True unfreezes."""
        return bool(self.trainable_variables)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        if value:
            self.unfreeze()
        else:
            self.freeze()

    # ---- state

    def state(self) -> dict[str, Variable]:
        """The Variables themselves, by dotted name; `gg.checkpoint.save` takes this dict.

        Training changes them. For values to come back to, read each one:

        >>> model = gg.nn.Dense(2, 1)
        >>> best = {name: v.value() for name, v in model.state().items()}
        >>> model.load_state(best)
        LoadReport(missing=[], unexpected=[])
        """
        return by_path(self, self.named_variables())

    @saying_where
    @takes(strict=FLAG)
    def load_state(self, values: Mapping[str, Any], *, strict: bool = True) -> LoadReport:
        """Assign values to the Variables, by dotted name; on an error to none.

        Args:
            values: arrays by name, as `state` returns them.
            strict: whether every Variable must have a value, and every value a Variable.

        Returns:
            The names that did not match: with `strict`, none.

        Raises:
            StructureError: `strict`, and names are missing or unexpected.
            ShapeError, DTypeError, DeviceError: a value does not fit its Variable, or `values` is
                no dict.

        >>> layer = gg.nn.Dense(1, 1)
        >>> layer.load_state({"kernel": [[2.0]], "scale": 1.0}, strict=False)
        LoadReport(missing=['bias'], unexpected=['scale'])
        """
        if not isinstance(values, Mapping):
            raise DTypeError(
                f"load_state: values must be a dict of arrays by name, got a "
                f"{type(values).__name__}."
            )
        mine = self.state()
        report = LoadReport(sorted(set(mine) - set(values)), sorted(set(values) - set(mine)))
        if strict and any(report):
            raise StructureError(
                f"load_state: missing {report.missing}, unexpected {report.unexpected}. With "
                "strict=False, names that match are loaded."
            )
        loaded = {name: v for name, v in mine.items() if name in values}
        for name, variable in loaded.items():  # check first, by assigning to a copy
            try:
                variable.__deepcopy__({}).assign(values[name])
            except (GpugradError, RuntimeError) as error:  # torch raises it for a parameter
                reraise(error, f"load_state: {name}", {}, {})
        for name, variable in loaded.items():
            variable.assign(values[name])
        return report

    state_dict = state  # torch's names
    load_state_dict = load_state

    # ---- looking inside

    def register_forward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, args, result)`` after each `forward`; it may return another result.

        In `gg.function` hooks run while it is traced: add them before the first call.

        >>> layer, sizes = gg.nn.Dense(3, 2), []
        >>> handle = layer.register_forward_hook(lambda module, args, y: sizes.append(y.shape))
        >>> _ = layer(gg.ones((5, 3)))
        >>> handle.remove()
        >>> sizes
        [(5, 2)]
        """
        return self._add_hook("after", hook)

    def register_forward_pre_hook(self, hook: Callable[[Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, args)`` before each `forward`; a tuple replaces the arguments."""
        return self._add_hook("before", hook)

    def _add_hook(self, when: str, hook: Any) -> HookHandle:
        if not callable(hook):
            raise ArgumentError(f"{type(self).__name__}: the hook must be callable, got {hook!r}.")
        hooks = self.__dict__.setdefault("_hooks", {"before": [], "after": []})
        return HookHandle(hooks[when], hook)

    def _call_with_hooks(self, args: Any, keywords: Any) -> Any:
        hooks = self.__dict__["_hooks"]
        for hook in [handle.hook for handle in hooks["before"]]:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **keywords)
        for hook in [handle.hook for handle in hooks["after"]]:
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def summary(self, *inputs: Any) -> str:
        """A table of the Modules inside: results' shapes, numbers of parameters, memory.

        Args:
            inputs: arguments of `forward`, which then runs once for the shapes. Without any, the
                table has no shapes.

        >>> model = gg.nn.Sequential(gg.nn.Dense(4, 3), gg.nn.Dense(3, 1))
        >>> print(model.summary(gg.ones((8, 4))))
        layer     type        result  parameters  memory
        ------------------------------------------------
                  Sequential  (8, 1)          19    76 B
        layers.0  Dense       (8, 3)          15    60 B
        layers.1  Dense       (8, 1)           4    16 B
        ------------------------------------------------
        19 parameters (76 B), 19 of them trainable
        """
        return summary(self, inputs)

    if not TYPE_CHECKING:  # type checkers find misspelt names themselves

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__} has no attribute {name!r}."
            raise MissingNameError(message, name, lambda: about(_PLACE, name, dir(self)))

    @reprlib.recursive_repr()  # a child may have a reference to its parent
    def __repr__(self) -> str:
        """The class, and a line ``name: part`` for each Module and Variable."""
        parts: list[str] = []
        for key, value in vars(self).items():
            for name, part in parts_of(key, value, Module):
                text = _describe(part) if isinstance(part, Variable) else repr(part)
                parts.append(f"  {name}: " + text.replace("\n", "\n  "))
        return "\n".join([f"{type(self).__name__}({self._repr_args()})", *parts])

    def _repr_html_(self) -> str:
        return format_html(type(self).__name__, self.summary())

    def _repr_args(self) -> str:
        if self._shown:
            return ", ".join(repr(getattr(self, name)) for name in self._shown)
        n = sum(v.size for v in self.variables)
        return f"{n:,} numbers" if n else ""

    # ---- for layers

    def _input(self, x: Any, weight: Tensor | None, what: str = "x") -> Tensor:
        """`x` as a Tensor that does not turn the results of a 32 or 16-bit layer into float64.

        Raises:
            DTypeError: `x`, which is called `what`, is 64-bit, the layer's weights are not.
        """
        x = argument(type(self).__name__, x)
        if weight is not None and x.dtype.char in "dDiIlLqQ" and weight.dtype.char not in "dD":
            raise DTypeError(
                f"{type(self).__name__}: {what} is {x.dtype} and the weights are {weight.dtype}, "
                f"so the result would be float64. Pass gg.astype({what}, '{weight.dtype}'), or "
                "create the layer with dtype='float64'."
            )
        return x


layer_calls.add(Module.__call__.__code__)


def beside(x: Tensor, *weights: Any) -> tuple[Any, ...]:
    """Weights in the 16-bit dtype of `x`, if it has one, so that the result has it, too."""
    if x.dtype not in HALF:
        return weights
    return tuple(w if w is None else TENSOR.astype(w, x.dtype) for w in weights)


@saying_where
def functional_call(module: M, state: Mapping[str, Any], *args: Any, **keywords: Any) -> Any:
    """Call a Module with other values in place of its Variables, which do not change.

    Args:
        module: the Module.
        state: arrays by dotted name; Variables without one keep their value.
        args, keywords: the arguments of the call.

    Returns:
        The result. Gradients, `vmap` and forward mode go through the arrays of `state`, so that
        `vmap` over stacked weights runs an ensemble.

    Raises:
        StructureError: `state` has a name that is no Variable of the Module.
        ShapeError: an array does not have the shape of its Variable.

    >>> model = gg.nn.Dense(2, 1, use_bias=False)
    >>> kernels = gg.constant([[[1.0], [0.0]], [[0.0], [1.0]]])  # of two models
    >>> ensemble = gg.vmap(lambda k, x: gg.nn.functional_call(model, {"kernel": k}, x), (0, None))
    >>> print(ensemble(kernels, gg.constant([3.0, 5.0])))
    [[3.]
     [5.]]
    """
    mine = require_module("functional_call", module).state()
    if unknown := sorted(set(state) - set(mine)):
        raise StructureError(f"functional_call: {unknown} are not among {sorted(mine)}.")
    values: dict[int, Any] = {}
    for name, value in state.items():
        value, variable = tensor(value), mine[name]
        try:
            variable._check_shape("functional_call", value.shape)
        except GpugradError as error:
            reraise(error, f"functional_call: {name}", {}, {})
        values[variable._id] = value
    copy = replaced(module, Module, lambda v: values.get(v._id, v))
    return copy(*args, **keywords)


def require_module(name: str, module: Any) -> Module:
    """The argument `module` of the function `name`; raises a DTypeError if it is none."""
    if not isinstance(module, Module):
        raise DTypeError(f"{name}: module must be a gg.nn.Module, got {module!r:.60}.")
    return module


def _name_layer(error: GpugradError, layer: Module) -> None:
    """Begin a message with the path of the innermost layer in whose `forward` the error came."""
    path = layer.__dict__.get("_path")
    if path and not hasattr(error, "layer") and error.args and isinstance(error.args[0], str):
        error.layer = path  # type: ignore[attr-defined]  # read here alone
        error.args = (f"{path}: {error.args[0]}", *error.args[1:])


def _describe(variable: Variable) -> str:
    frozen = "" if variable.trainable else ", not trainable"
    return f"{variable.dtype} {variable.shape}{frozen}"
