"""Types of Python as autograd's programs name them: a box counts as its value."""

from __future__ import annotations

import builtins
from typing import Any

from gpugrad.compat.autograd.core import notrace_primitive
from gpugrad.compat.autograd.vector_spaces import VSpace
from gpugrad.compat.names import forwarding

isinstance_, type_ = builtins.isinstance, builtins.type
tuple_, list_, dict_ = builtins.tuple, builtins.list, builtins.dict
isinstance = notrace_primitive(builtins.isinstance)
type = notrace_primitive(builtins.type)
SequenceVSpace = ContainerVSpace = DictVSpace = NamedTupleVSpace = VSpace


class _Like(builtins.type):
    """The type of a class that makes, and recognizes, objects of the built-in `kind`."""

    kind: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance_(instance, cls.kind)

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return cls.kind(*args, **keywords)


tuple: Any = _Like("tuple", (tuple_,), {"kind": tuple_})
list: Any = _Like("list", (list_,), {"kind": list_})
dict: Any = _Like("dict", (dict_,), {"kind": dict_})
DictBox: Any = _Like("DictBox", (dict_,), {"kind": dict_})  # dicts of boxes stay dicts here
SequenceBox: Any = _Like("SequenceBox", (tuple_,), {"kind": tuple_})

__getattr__, __dir__ = forwarding(__name__, own=globals())
