"""Hints in messages: the names here for names of other libraries, and the errors with them.

The tables are data (`foreign_names`, `foreign_sentences`), which only an error loads.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from gpugrad.core import foreign_attributes

T = TypeVar("T")

_PARTS = """
    nn linalg special random fft optim optim.schedules nn.initializers data train checkpoint cuda
    debug distributed numpy
"""
NAMESPACES = ("gg", *(f"gg.{part}" for part in _PARTS.split()))
"""Where a name may be that another namespace lacks, in this order."""

_OTHERS = tuple(
    f"gpugrad.compat.{name}"
    for name in ("tf", "tf.nn", "tf.math", "tf.linalg", "tf.random", "cupy")
)
"""Modules with names of other libraries, which a program may import."""


class MissingNameError(AttributeError):
    """A namespace or an object lacks a name; the message has a hint, or the nearest names.

    These are looked for only if somebody reads the message: that may load other namespaces, and
    libraries ask by ``hasattr`` what a namespace has.

    Args:
        message: what lacks the name.
        name: the name.
        way_out: returns the sentence about it, with a space before it.
    """

    def __init__(self, message: str, name: str, way_out: Callable[[], str]) -> None:
        super().__init__(message, name=name)
        self._way_out = way_out

    def __str__(self) -> str:
        return f"{self.args[0]}{self._way_out()}"

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return AttributeError, (str(self),)


def missing(module: str, name: str, also: Iterable[str] = ()) -> MissingNameError:
    """The error about a name that a module ``gpugrad.x`` lacks.

    Args:
        module: its name.
        name: the name.
        also: names that it has besides those in its ``__all__``.
    """
    place = module.replace("gpugrad", "gg", 1)
    known = sys.modules[module].__all__
    message = f"module {module!r} has no attribute {name!r}."
    return MissingNameError(message, name, lambda: about(place, name, {*known, *also}))


def answer_missing(module: str) -> None:
    """Give a module a ``__getattr__`` that raises `missing`; type checkers do not know of it."""

    def look_up(name: str) -> Any:
        raise missing(module, name)

    vars(sys.modules[module])["__getattr__"] = look_up


def about(place: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name that a place lacks: a hint, or the nearest names; or ""."""
    known = sorted(known)
    return hint(place, name, known) or nearest(name, known)


def nearest(name: str, known: Iterable[str], likeness: float = 0.7) -> str:
    """A sentence with the names that differ least, with a space before it; or ""."""
    difflib = importlib.import_module("difflib")
    near = difflib.get_close_matches(name, list(known), 3, likeness)
    return f" The nearest names are {', '.join(near)}." if near else ""


def hint(place: str, name: str, known: Iterable[str] = ()) -> str:
    """A sentence about a name that a place lacks, with a space before it; or "".

    Args:
        place: a key of the tables.
        name: the name.
        known: the names that the place has, which may differ only in case.
    """
    if answer := _answer(place, name) or _alike(name, known):
        return _sentence(place, answer)
    if not place.startswith("gg"):
        return ""
    for other in NAMESPACES:
        if name in names_of(other):
            return _sentence(other, name)
    for other in NAMESPACES:
        if answer := _answer(other, name):
            return _sentence(other, answer)
    if misspelt := nearest(name, known, 0.92):
        return misspelt
    for pattern, sentence in _entries("patterns", ""):
        if re.fullmatch(pattern, name):
            return f" {sentence}"
    for other in NAMESPACES:
        if answer := _alike(name, names_of(other)):
            return _sentence(other, answer)
    for module in _OTHERS:
        value = getattr(importlib.import_module(module), name, None)
        if callable(value) and getattr(value, "__module__", "").startswith("gpugrad"):
            return f" {module} has it."
    return ""


def _answer(place: str, name: str) -> str:
    """The entry of a name in the table of a place; "" without one."""
    axes = re.search(r"([123])[dD]", name)
    answer = table(place).get(re.sub(r"[123][dD]", "2d", name), "")
    return answer.replace("2d", f"{axes[1]}d") if axes else answer


def _alike(name: str, known: Iterable[str]) -> str:
    """The name among `known` that differs only in what libraries write otherwise; or ""."""
    return next((k for k in known if _squeezed(k) == _squeezed(name)), "")


def _squeezed(name: str) -> str:
    """A name without what differs between a class and a function, and between libraries."""
    return name.lower().replace("_", "").removesuffix("loss")


def _sentence(place: str, answer: str) -> str:
    if answer[-1] in ".:":
        return f" {answer}"
    return f" It is called {f'{place}.' if place.startswith('gg') else ''}{answer} here."


def names_of(place: str) -> list[str]:
    """The public names of a namespace."""
    module = importlib.import_module(place.replace("gg", "gpugrad", 1))
    names = dir(module) if "__dir__" in vars(module) else module.__all__
    return [name for name in names if not name.startswith("_")]


@functools.cache
def table(place: str) -> dict[str, str]:
    """The name here, or the sentence, by the name in another library."""
    rows: dict[str, str] = {}
    for names, sentence in _entries("sentences", place):
        rows.update((name, sentence.replace("{name}", name)) for name in names.split())
    for here, theirs in names_elsewhere(place).items():
        rows.update(dict.fromkeys(theirs, here))
    return rows


def _entries(what: str, place: str) -> Iterator[tuple[str, str]]:
    """The entries of a table of sentences: names, or a pattern, and the sentence."""
    data: Any = importlib.import_module("gpugrad.core.foreign_sentences")
    text = data.PATTERNS if what == "patterns" else data.SENTENCES.get(place, "")
    return entries(text)


def entries(text: str) -> Iterator[tuple[str, str]]:
    """The entries of a text: names, a colon and a sentence. Lines that go on are indented more."""
    joined, first = list[str](), 0
    for line in text.strip("\n").split("\n"):
        margin = len(line) - len(line.lstrip())
        if joined and margin > first:
            joined[-1] += f" {line.strip()}"
        else:
            first = margin
            joined.append(line.strip())
    for entry in joined:
        names, _, sentence = entry.partition(": ")
        if names:
            yield names, sentence


@functools.cache
def names_elsewhere(place: str) -> dict[str, list[str]]:
    """The names in other libraries, by the name here."""
    data: Any = importlib.import_module("gpugrad.core.foreign_names")
    theirs: dict[str, list[str]] = {}
    for entry in re.split(r"[;\n]", data.NAMES.get(place, "")):
        here, _, names = entry.partition("=")
        if here.strip():
            theirs.setdefault(here.strip(), []).extend(names.split())
    return theirs


# ---- keywords


def keyword_error(
    title: str, parameters: Iterable[str], keywords: Iterable[str]
) -> TypeError | None:
    """The error of a call with keywords that there are not, with what they are called here.

    Args:
        title: the name of the callable.
        parameters: the names of its parameters.
        keywords: those of the call.

    Returns:
        None if there are all of them.
    """
    names = list(parameters)
    if not (unknown := [k for k in keywords if k not in names]):
        return None
    hints = "".join(_about_keyword(k, names) for k in unknown)
    hints = hints or f" Its arguments are {', '.join(names)}."
    return TypeError(f"{title}: got an unexpected keyword argument {unknown[0]!r}.{hints}")


def _about_keyword(keyword: str, parameters: list[str]) -> str:
    theirs = names_elsewhere("a keyword")
    here = next((p for p in parameters if keyword in theirs.get(p, ())), None)
    if here is not None:
        return f" {keyword} is called {here} here."
    answer = table("a keyword").get(keyword, "")
    return f" {answer}" if answer[-1:] == "." else nearest(keyword, parameters)


def wrong_keywords(function: Any, title: str, keywords: Iterable[str]) -> TypeError | None:
    """The `keyword_error` of a call of a function, from its signature."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # it wraps a built-in
        return None
    names = [p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD]
    if len(names) < len(parameters):  # others may be allowed
        theirs = names_elsewhere("a keyword")
        keywords = [k for k in keywords if k in names or any(k in theirs.get(n, ()) for n in names)]
    return keyword_error(title, (name for name in names if name != "self"), keywords)


F = TypeVar("F", bound=Callable[..., Any])


def answering(function: F) -> F:
    """Decorate a function whose errors about keywords say what these are called here.

    For those that are not decorated with `saying_where`, which does it, too.
    """

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            if (error := wrong_keywords(function, function.__name__, keywords)) is not None:
                raise error from None
            raise

    return cast(F, call)


# ---- attributes


class _Elsewhere:
    """An attribute that objects have in other libraries: reading or setting it says what to write.

    A ``__getattr__`` of Tensor would say so, too, but makes every read of an attribute slower.
    """

    __slots__ = ("_name", "_place")

    def __init__(self, name: str, place: str) -> None:
        self._name, self._place = name, place

    def __get__(self, x: Any, kind: type) -> Any:
        with contextlib.suppress(AttributeError, KeyError):  # of a subclass that has set it
            return x.__dict__[self._name]
        message = f"{kind.__name__} has no attribute {self._name!r}. "
        way_out = functools.partial(about_attribute, self._place, self._name)
        raise MissingNameError(message, self._name, way_out)

    def __set__(self, x: Any, value: Any) -> None:
        if not hasattr(x, "__dict__"):
            self.__get__(x, type(x))
        x.__dict__[self._name] = value


def with_names_elsewhere(place: str) -> Callable[[type[T]], type[T]]:
    """Give an empty class the attributes of a place in the tables; reading one raises."""
    lacking = dict.fromkeys(attributes(place))

    def own_dir(self: Any) -> list[str]:
        """The attributes that there are."""
        return [n for n in object.__dir__(self) if n not in lacking or hasattr(self, n)]

    def decorate(cls: type[T]) -> type[T]:
        members: dict[str, Any] = {name: _Elsewhere(name, place) for name in lacking}
        made: Any = type(cls.__name__, cls.__bases__, vars(cls) | members | {"__dir__": own_dir})
        return cast(type[T], made)

    return decorate


def about_attribute(place: str, name: str) -> str:
    """The sentence about an attribute that Tensors or tapes have in another library."""
    if (sentence := _sentences(place).get(name)) is not None:
        return sentence
    if name.endswith("_"):
        return f"{about_attribute(place, name[:-1])} Write the result with x[...] = y."
    for namespace in NAMESPACES:
        if name in names_of(namespace):
            op = sys.modules["gpugrad"].OPS.get(name)
            second = ", y" if op is not None and len(op.arrays) - len(op.optional) > 1 else ""
            return f"Call {namespace}.{name}(x{second})."
    found = hint("gg", name).strip()
    return re.sub(r"^It is called ([\w.]+) here\.$", r"Call \1(x).", found) or "It is not there."


@functools.cache
def _sentences(place: str) -> dict[str, str]:
    pairs = entries(foreign_attributes.SENTENCES[place])
    return {n: s.replace("{name}", n) for names, s in pairs for n in names.split()}


def attributes(place: str) -> list[str]:
    """The names of such attributes."""
    others = foreign_attributes.OTHERS.split() if place == "a Tensor" else []
    return [*_sentences(place), *others]


@with_names_elsewhere("a Tensor")
class NamesElsewhere:
    """The base of Tensor, with attributes that it lacks and that other libraries have."""

    __slots__ = ()


@with_names_elsewhere("a tape")
class TapeNamesElsewhere:
    """The same of GradientTape."""
