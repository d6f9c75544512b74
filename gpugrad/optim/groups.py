"""Settings of an optimizer: their ranges, and groups of Variables with settings of their own."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from gpugrad.core.arguments import Range
from gpugrad.core.variable import Variable
from gpugrad.errors import ArgumentError
from gpugrad.optim.clip import Limits


def ranges(**settings: Range) -> Mapping[str, Range]:
    """The ranges of an optimizer's settings, by name: its attribute `hyper`.

    >>> gg.optim.ranges(momentum=gg.optim.BELOW_1)["momentum"].words
    'at least 0 and below 1'
    """
    return settings


Selector = str | Callable[..., Any] | Iterable[Variable]  # a Module is callable, too
Groups = Sequence[tuple[Selector, Mapping[str, Any]]] | Mapping[str, Mapping[str, Any]]


class Options(Limits, total=False):
    """The options that all optimizers have; `Optimizer` describes them."""

    groups: Groups
    accumulate: int
    skip_nonfinite: bool


class Group:
    """Variables that share settings.

    Attributes:
        selector: a function of the name and the Variable, a pattern for names, a Module, or
            Variables; None for those that no other group selects.
        settings: the settings that differ from those of the optimizer.
    """

    def __init__(self, selector: Selector | None, settings: Mapping[str, Any]) -> None:
        selector = getattr(selector, "variables", selector)  # of a Module
        if not (selector is None or isinstance(selector, str) or callable(selector)):
            selector = list(selector)
        self.selector, self.settings = selector, dict(settings)

    def selects(self, name: str, variable: Variable) -> bool:
        """Whether a Variable of this name belongs to the group."""
        selector = self.selector
        if isinstance(selector, str):
            return fnmatch.fnmatchcase(name, selector)
        if callable(selector):
            return bool(selector(name, variable))
        return selector is None or any(v is variable for v in selector)

    def __repr__(self) -> str:
        selector: Any = self.selector
        if isinstance(selector, list):
            selector = [v.name for v in selector]
        shown = getattr(selector, "__name__", repr(selector))
        return f"Group({shown}, {self.settings})"


def make_groups(name: str, groups: Groups, known: Mapping[str, Range]) -> list[Group]:
    """The groups of the option `groups`, whose settings must be `known` and within their ranges."""
    items = groups.items() if isinstance(groups, Mapping) else groups
    made = []
    for item in items:
        is_pair = isinstance(item, (tuple, list)) and len(item) == 2
        if not is_pair or not isinstance(item[1], Mapping):
            raise ArgumentError(
                f"{name}: a group is a pair of a selector and a dict of settings, as "
                f'("*.bias", {{"weight_decay": 0.0}}), got {item!r:.60}.'
            )
        selector, settings = item
        are_variables = isinstance(selector, (list, tuple)) and all(
            isinstance(v, Variable) for v in selector
        )
        if not (isinstance(selector, str) or callable(selector) or are_variables):
            raise ArgumentError(
                f"{name}: a group is selected by a pattern for names, by a function of the name "
                f"and the Variable, by a Module, or by a list of Variables, got {selector!r:.60}."
            )
        for key, value in settings.items():
            if key != "learning_rate" and key not in known:
                names = ", ".join(("learning_rate", *known))
                raise ArgumentError(f"{name}: a group has no setting {key!r}; there are {names}.")
            if key != "learning_rate":
                known[key](name, f"{key} of a group", value)
        made.append(Group(selector, settings))
    return made


def settings_of(owner: Any, group: Group, known: Iterable[str]) -> Any:
    """The settings of a group, as attributes; those of `owner` where the group has none."""
    own = group.settings
    if not own:
        return owner
    return SimpleNamespace(**{k: own[k] if k in own else getattr(owner, k) for k in known})
