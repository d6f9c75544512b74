"""From an operator on functions of one argument to one that takes ``argnum``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpugrad.compat.autograd.util import subvals
from gpugrad.compat.names import forwarding

Function = Callable[..., Any]


def get_name(f: Any) -> str:
    """The name of a function, if it has one."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> Any:
    """The docstring of a function."""
    return getattr(f, "__doc__", "")


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **names: Any) -> Function:
    """A decorator that gives a function a name and a docstring made from those of another."""

    def decorate(f: Any) -> Any:
        name, doc = get_name(fun), get_doc(fun)  # format takes a while, and mostly changes nothing
        f.__name__ = name if namestr == "{fun}" else namestr.format(fun=name, **names)
        f.__doc__ = doc if docstr == "{doc}" else docstr.format(fun=name, doc=doc, **names)
        return f

    return decorate


def unary_to_nary(unary_operator: Function) -> Function:
    """An operator on a function and ``argnum``, an argument's number or a tuple of them."""

    @wraps(unary_operator)
    def nary_operator(fun: Function, argnum: Any = 0, *more: Any, **keywords: Any) -> Function:
        assert type(argnum) in (int, tuple, list), argnum
        name, title = get_name(unary_operator), "{op}_of_{fun}_wrt_argnum_{argnum}"
        text = (
            "    {op} of function {fun} with respect to argument number {argnum}. Takes the\n"
            "    same arguments as {fun} but returns the {op}.\n    "
        )

        fun_name, fun_doc = get_name(fun), get_doc(fun)

        @wraps(fun, title, text, op=name, argnum=argnum)
        def nary_f(*args: Any, **kwargs: Any) -> Any:
            def unary_f(x: Any) -> Any:
                values = [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True)
                return fun(*subvals(args, values), **kwargs)

            unary_f.__name__, unary_f.__doc__ = fun_name, fun_doc
            x = args[argnum] if isinstance(argnum, int) else tuple(args[i] for i in argnum)
            return unary_operator(unary_f, x, *more, **keywords)

        return nary_f

    return nary_operator


__getattr__, __dir__ = forwarding(__name__, own=globals())
