"""Module: an object that finds the Variables in its attributes."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from gpugrad.core.variable import Variable
from gpugrad.errors import GpugradError, StructureError, reraise, saying_where

__all__ = ["Module"]

_TRAINING = "Set training mode for a block: with gg.nn.training():"
_HINTS = {  # for names of torch and Keras
    "train": _TRAINING,
    "eval": _TRAINING,
    "parameters": "It has trainable_variables.",
    "trainable_weights": "It has trainable_variables.",
    "weights": "It has variables.",
    "named_parameters": "It has named_variables().",
    "zero_grad": "Gradients are not stored: tape.gradient returns them.",
    "to": "Its Variables stay on their device; create it inside with gg.device(device):",
}


class Module:
    """Base class of layers and models.

    A subclass implements `forward` and assigns Variables and Modules as attributes.

    Nothing is registered. Variables are found in attributes, in lists, tuples and dicts in
    attributes, and in the Modules among these, in the order in which the attributes were first
    assigned. A Variable that is reachable twice counts once, under its first name.

    >>> class Scale(gg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = gg.Variable(2.0)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scale()
    >>> print(model(3.0), list(model.state_dict()))
    6.0 ['factor']
    """

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The result of `forward`."""
        return self.forward(*args, **keywords)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Compute the result; a subclass must implement it."""
        raise NotImplementedError(f"{type(self).__name__} does not implement forward.")

    def named_variables(self) -> Iterator[tuple[str, Variable]]:
        """Pairs of a dotted name, such as ``layers.0.kernel``, and a Variable."""
        return _variables_in("", self, set())

    @property
    def variables(self) -> list[Variable]:
        """All Variables."""
        return [variable for _, variable in self.named_variables()]

    @property
    def trainable_variables(self) -> list[Variable]:
        """All trainable Variables."""
        return [variable for variable in self.variables if variable.trainable]

    def state_dict(self) -> dict[str, Variable]:
        """The Variables themselves, by dotted name; `gg.checkpoint.save` takes this dict."""
        return dict(self.named_variables())

    @saying_where
    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Assign a value to every Variable, by dotted name; on an error to none.

        Raises:
            StructureError: names are missing or unexpected.
            ShapeError, DTypeError, DeviceError: a value does not fit its Variable.
        """
        mine = self.state_dict()
        if set(mine) != set(values):
            raise StructureError(
                f"load_state_dict: missing {sorted(set(mine) - set(values))}, unexpected "
                f"{sorted(set(values) - set(mine))}."
            )
        for name, variable in mine.items():  # check first, by assigning to a copy
            try:
                variable.__deepcopy__({}).assign(values[name])
            except (GpugradError, RuntimeError) as error:  # torch raises it for a parameter
                reraise(error, f"load_state_dict: {name}", {}, {})
        for name, variable in mine.items():
            variable.assign(values[name])

    def __getattr__(self, name: str) -> Any:
        hint = f" {_HINTS[name]}" if name in _HINTS else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{hint}")

    @reprlib.recursive_repr()  # a child may have a reference to its parent
    def __repr__(self) -> str:
        """The class, and a line ``name: part`` for each Module and Variable."""
        parts: list[str] = []
        for key, value in vars(self).items():
            for name, part in _parts(key, value):
                text = _describe(part) if isinstance(part, Variable) else repr(part)
                parts.append(f"  {name}: " + text.replace("\n", "\n  "))
        return "\n".join([f"{type(self).__name__}({self._repr_args()})", *parts])

    def _repr_args(self) -> str:
        """The text in the parentheses of the repr."""
        n = sum(v.size for v in self.variables)
        return f"{n:,} numbers" if n else ""


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Module):
        return list(vars(value).items())
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return [(str(k), v) for k, v in value.items()]
    return []


def _variables_in(name: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Variable]]:
    if id(value) in seen:
        return
    if isinstance(value, Variable):
        seen.add(id(value))
        yield name, value
    elif isinstance(value, (Module, list, tuple, dict)):
        seen.add(id(value))
        for key, child in _children(value):
            yield from _variables_in(f"{name}.{key}" if name else key, child, seen)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The Modules and Variables in an attribute, also inside containers."""
    if isinstance(value, (Module, Variable)):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for key, child in _children(value):
            yield from _parts(f"{name}.{key}", child)


def _describe(variable: Variable) -> str:
    frozen = "" if variable.trainable else ", not trainable"
    return f"{variable.dtype} {variable.shape}{frozen}"
