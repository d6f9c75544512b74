"""Values that are differentiated, and nests of them.

A box holds a Tensor. Functions of `autograd.numpy` give boxes for boxes, and NumPy's results for
plain values, so a program computes with NumPy wherever nothing is differentiated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np

import gpugrad
import gpugrad.numpy
from gpugrad.core.devices import adopt, default_device
from gpugrad.core.listening import recorders
from gpugrad.core.tensor import wrap

gg: Any = gpugrad
Tensor = gpugrad.Tensor


in_rule: ContextVar[bool] = ContextVar("in a rule", default=False)
"""Whether the rule of a primitive is running, in the backward pass of one derivative."""


class Box:
    """A value that is differentiated; `register` is for libraries that have arrays of their own."""

    type_mappings: ClassVar[dict[Any, Any]] = {}
    types: ClassVar[set[Any]] = set()
    __slots__ = ("_is_outer", "_tensor")

    def __init__(self, value: Any, trace: Any = None, node: Any = None) -> None:
        self._tensor = value if isinstance(value, Tensor) else gg.asarray(np.asarray(value))
        self._is_outer = False

    @classmethod
    def register(cls, value_type: Any) -> None:
        """Note a type of values; subclasses of NumPy's array need no more than that."""
        Box.types.add(cls)
        Box.type_mappings[value_type] = Box.type_mappings[cls] = cls

    def __gpugrad_tensor__(self, dtype: Any = None) -> Tensor:
        return self._tensor if dtype is None else gg.astype(self._tensor, dtype)

    @property
    def _value(self) -> Any:
        """The value; within a primitive's rule a box, if an outer derivative needs it."""
        if not in_rule.get() or self._is_outer:
            return getval(self)
        value = lowered(self)
        if isinstance(value, Box):
            value._is_outer = True
        return value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return f"Autograd {type(self).__name__} with value {self._value}"


class ArrayBox(Box):
    """An array or a number that is differentiated; its methods are NumPy's functions."""

    __slots__ = ()
    __array_priority__ = 100.0
    __array_ufunc__ = None  # so that NumPy's arrays leave ``array * box`` to the box

    shape = property(lambda self: self._tensor.shape)
    ndim = property(lambda self: self._tensor.ndim)
    size = property(lambda self: self._tensor.size)
    dtype = property(lambda self: self._tensor.dtype)
    T = property(lambda self: self.transpose())
    real = property(lambda self: apply("real", self))
    imag = property(lambda self: apply("imag", self))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return importlib.import_module("gpugrad.compat.autograd.numpy")

    def __getitem__(self, index: Any) -> Any:
        return box(self._tensor[unbox(index)])

    def __len__(self) -> int:
        return len(self._tensor)

    def __iter__(self) -> Iterator[Any]:  # without it, each loop would end by an IndexError
        return (self[k] for k in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        """The elements in another shape, a tuple or several numbers."""
        return apply("reshape", self, shape[0] if len(shape) == 1 else shape, **keywords)

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order, a tuple or several numbers; reversed without any."""
        return apply("transpose", self, axes[0] if len(axes) == 1 else axes or None)


def apply(name: str, *args: Any, **keywords: Any) -> Any:
    """NumPy's function of that name: of boxes by `gpugrad.numpy`, else by NumPy."""
    if holds_box(args) or holds_box(keywords):
        return box(getattr(gg.numpy, name)(*unbox(args), **unbox(keywords)))
    return getattr(np, name)(*args, **keywords)


def _method(name: str) -> Any:
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        keywords = unbox(keywords) if keywords else keywords
        return box(getattr(gg.numpy, name)(self._tensor, *unbox(args), **keywords))

    return method


def _operator(name: str, reflected: bool = False) -> Any:
    function = getattr(gg.numpy, name)

    def method(self: Any, other: Any) -> Any:
        other = unbox(other)
        return _boxed(function(other, self._tensor) if reflected else function(self._tensor, other))

    return method


_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide"}
_OPERATORS |= {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_OPERATORS |= {"pow": "power", "mod": "mod", "floordiv": "floor_divide", "matmul": "matmul"}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"}
_COMPARISONS |= {"lt": "less", "le": "less_equal", "neg": "negative", "abs": "abs"}
_COMPARISONS |= {"invert": "invert"}
_METHODS = """all any argmax argmin argpartition argsort astype clip compress conj conjugate cumprod
cumsum diagonal dot max mean min nonzero prod ptp ravel repeat round searchsorted squeeze std sum
swapaxes take trace var"""

for short, name in _OPERATORS.items():
    setattr(ArrayBox, f"__{short}__", _operator(name))
    setattr(ArrayBox, f"__r{short}__", _operator(name, reflected=True))
for short, name in _COMPARISONS.items():
    setattr(ArrayBox, f"__{short}__", _method(name))
for name in _METHODS.split():
    setattr(ArrayBox, name, _method(name))
ArrayBox.flatten = _method("ravel")  # type: ignore[attr-defined]
ArrayBox.__module__ = "autograd.numpy.numpy_boxes"  # libraries dispatch by the module of a class
for kind in (np.ndarray, float, complex, *(np.dtype(c).type for c in "efdgFDG")):
    ArrayBox.register(kind)


_NO_NESTS = frozenset((float, int, bool, complex, str, type(None), np.float64))


LEAVES = {*_NO_NESTS, np.ndarray, ArrayBox, Tensor}
"""The classes of most leaves, to which a look-up leads faster than questions about containers."""


def isbox(x: Any) -> bool:
    """Whether a value is differentiated."""
    return isinstance(x, Box)


def getval(x: Any) -> Any:
    """The value of a box, as an array or a number; anything else as it is."""
    return x._tensor.numpy()[()] if isinstance(x, Box) else x


def value_for_rules(x: Any) -> Any:
    """The value of a box for a function with rules of its own: no tape needs to know of it."""
    if not isinstance(x, Box):
        return x
    tensor = x._tensor
    array = tensor._data
    if type(tensor) is Tensor and type(array) is np.ndarray:
        return array.copy()[()]
    return tensor.numpy()[()]


def map_leaves(f: Callable[..., Any], nest: Any, *others: Any) -> Any:
    """Apply `f` to the leaves of nested lists, tuples and dicts, and of `others` beside them."""
    kind = type(nest)
    if kind in LEAVES:
        return f(nest, *others)
    if (kind is tuple or kind is list) and len(others) < 2:  # most nests
        if others:
            pairs = zip(nest, others[0], strict=True)
            found = [f(x, o) if type(x) in LEAVES else map_leaves(f, x, o) for x, o in pairs]
        else:
            found = [f(x) if type(x) in LEAVES else map_leaves(f, x) for x in nest]
        return found if kind is list else tuple(found)
    if isinstance(nest, dict):
        return kind((k, map_leaves(f, v, *(o[k] for o in others))) for k, v in nest.items())
    if isinstance(nest, (list, tuple)):
        values = [map_leaves(f, *each) for each in zip(nest, *others, strict=True)]
        return kind(*values) if hasattr(nest, "_fields") else kind(values)
    return f(nest, *others)


def leaves_of(nest: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts."""
    if type(nest) in LEAVES:
        return [nest]
    found: list[Any] = []
    map_leaves(found.append, nest)
    return found


def pack(nest: Any, leaves: Iterable[Any]) -> Any:
    """The nest with other leaves, in order."""
    left = iter(leaves)
    if type(nest) in LEAVES:
        return next(left)
    return map_leaves(lambda _: next(left), nest)


def holds_box(nest: Any) -> bool:
    """Whether nested lists, tuples, dicts or arrays of objects hold a box."""
    kind = type(nest)
    if kind in _NO_NESTS:
        return False
    if kind is np.ndarray:
        return nest.dtype.kind == "O" and any(map(holds_box, nest.flat))
    if isinstance(nest, Box):
        return True
    if isinstance(nest, dict):
        nest = nest.values()
    elif not isinstance(nest, (list, tuple)):
        return isinstance(nest, np.ndarray) and holds_box(np.asarray(nest))
    for x in nest:  # noqa: SIM110  # `any` would take twice as long
        if type(x) not in _NO_NESTS and holds_box(x):
            return True
    return False


def box(nest: Any) -> Any:
    """The nest with a box for each Tensor; without a gradient it is NumPy's, as in autograd."""
    return _boxed(nest) if isinstance(nest, Tensor) else map_leaves(_boxed, nest)


def _boxed(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    # a mask beside arrays on a GPU has to stay there
    return ArrayBox(x) if x.dtype.kind in "fc" or x.device.kind != "cpu" else x.numpy()[()]


def unbox(nest: Any) -> Any:
    """The nest with the Tensor of each box; arrays of objects become lists of them."""
    kind = type(nest)
    if kind in _NO_NESTS:
        return nest
    if isinstance(nest, Box):
        return nest._tensor
    if kind is tuple:
        return tuple([unbox(x) for x in nest])
    if isinstance(nest, (list, tuple, dict)):
        return map_leaves(unbox, nest)
    if isinstance(nest, np.ndarray):
        is_nest = nest.dtype.kind == "O" and holds_box(nest)
        return unbox(nest.tolist()) if is_nest else nest
    if kind is slice:
        return slice(*map(getval, (nest.start, nest.stop, nest.step)))
    return nest


def lowered(nest: Any) -> Any:
    """The nest with values for its boxes and Tensors, but for those that are still differentiated.

    A value is an array that the caller may write to, or a number of NumPy's.
    """
    return map_leaves(_lower, nest)


def _lower(x: Any) -> Any:
    if not isinstance(x, (Box, Tensor)):
        return x
    tensor = x._tensor if isinstance(x, Box) else x
    if not recorders and type(tensor) is Tensor and type(tensor._data) is np.ndarray:
        return tensor._data.copy()[()]
    try:
        return np.array(tensor)[()]
    except gg.errors.DTypeError:  # it would cut a gradient
        return ArrayBox(tensor)


def in_classes_of(nest: Any, like: Any) -> Any:
    """The arrays of a nest as those of a library's own class that are in their places in `like`."""

    def as_class(leaf: Any, array: Any) -> Any:
        kind = type(leaf)
        if kind in LEAVES or kind not in Box.type_mappings or not isinstance(leaf, np.ndarray):
            return array
        return array if isinstance(array, Box) else np.asarray(array).view(kind)

    return nest if type(like) in LEAVES else map_leaves(as_class, like, nest)


def as_tensor(leaf: Any) -> Tensor:
    """A floating Tensor of a box, an array or a number that is differentiated.

    Raises:
        TypeError: it is no number, or an integer, as autograd refuses it.
    """
    kind = type(leaf)
    if kind is ArrayBox or kind is Tensor:
        return leaf if kind is Tensor else leaf._tensor
    if kind is np.ndarray and leaf.dtype.kind in "fc":
        return gg.asarray(leaf)
    if kind is float or kind is np.float64:
        return wrap(adopt(np.array(leaf), default_device()))
    maker = Box.type_mappings.get(kind)
    if maker is not None and not isinstance(maker, type):  # a library's own function
        leaf = maker(leaf, None, None)
    if isinstance(leaf, (Box, Tensor)):
        return leaf._tensor if isinstance(leaf, Box) else leaf
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        leaf = gg.numpy.array(unbox(leaf.tolist())) if holds_box(leaf) else leaf.astype(float)
        return leaf if isinstance(leaf, Tensor) else gg.asarray(leaf)
    if isinstance(leaf, np.ndarray):
        array = leaf.astype(float) if leaf.dtype.kind in "biu" else leaf
    else:
        array = np.asarray(leaf)
    if array.dtype.kind not in "fc":
        raise TypeError(f"Can't differentiate w.r.t. type {type(leaf)}")
    return gg.asarray(array)


def conj(x: Any) -> Any:
    """The conjugate of a complex Tensor, or a real Tensor itself."""
    return gg.conj(x) if x.dtype.kind == "c" else x
