"""The text of the function that users call, for exactly an op's signature."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from gpugrad.core.settings import mixed_modes
from gpugrad.kernels.cpu.large import LARGE
from gpugrad.registry.numpys_form import UFUNCS, numpys_form


def source(op: Any, has_small: bool = False) -> str:
    """The text of an op's function, for a process in which C runs small arrays or none.

    As namedtuple does: a generic ``apply(op, *args, **kw)`` costs more than the ufunc that it
    calls. For ``tanh(x)`` it is::

        def tanh(x, /, out=None, where=None, dtype=None):
            if out is not None or where is not None or dtype is not None: return by_numpy(...)
            try:
                if type(x) is Tensor: x_ = x._data; xi = x._id
                elif type(x) is View and x.root._data is x._seen: x_ = x._array; xi = x._number
                else: x = operand(x); x_ = x._data; xi = x._id
                kind = type(x_)
                if kind is ndarray and x_.size < 131072: _r = ufunc(x_)
                elif kind is ndarray: _r = large(x_)
                else: _r = impl[kind](x_)
            except Exception as _e: reraise(_e, 'tanh', {'x': x}, {})
            if type(_r) is not kind and type(_r) not in ARRAYS: _r = asarray(_r, kind)
            out = new(Tensor); out._data = _r; out._id = 0
            if recorders:
                if graphs: xi = number(x)
                if xi:
                    record(op, out, (xi,), (None,), (_r,), None)
                if checks: check_op(op, out, {'x': x}, {})
            return out
    """
    return (
        text_of(op, has_small=has_small)
        .replace("def _op(", f"def {op.name}(")
        .replace("NAME", repr(op.name))
    )


def text_of(op: Any, keywords: Sequence[str] = UFUNCS, has_small: bool = False) -> str:
    """The text with names that ops of one form share, so that it is compiled once for them.

    Args:
        op: the record.
        keywords: those of NumPy's ufuncs that it takes.
        has_small: whether C runs small arrays, which returns None for others.
    """
    names = op.arrays
    lines = []
    if mixed_modes and (op.mixed or op.is_opened):
        listed = f"{', '.join(names)}, {', '.join(f'{k}={k}' for k in op.params)}"
        lines = [f"if mixed_dtype() is not None: return in_mixed_precision(op, {listed})"]
    lines += _read_list(op) if op.variadic else _read_arguments(op)
    lines += _check_parameters(op)
    passed = ", ".join(f"{k}={k}" for k in op.params)
    inputs = ", ".join(f"{n}_" for n in names)
    shown = "{" + ", ".join(f"{n!r}: {n}" for n in names) + "}"
    params = "{" + ", ".join(f"{k!r}: {k}" for k in op.params) + "}"
    any_id = "any(ids)" if op.variadic else " or ".join(f"{n}i" for n in names)
    ids = "ids" if op.variadic else f"({' '.join(f'{n}i,' for n in names)})"
    renumber = (
        f"ids = [number(x) for x in {names[0]}]" if op.variadic
        else "; ".join(f"{n}i = number({n})" for n in names)
    )  # fmt: skip
    call = f"{inputs}{', ' + passed if passed else ''}"
    if op.is_opened:
        lines += _opening(op, any_id, shown, params, passed)
    compares = has_small or bool(op.cpu)  # 20 ns more, where kernels gain most
    lines += _run(op, call, compares)
    if len(names) == 2 and (op.ufunc is not None or _is_loop(op)):
        lines = _at_once(op, lines, call, compares)
    parameters, others = numpys_form(op, keywords)
    small = [f"out = small({', '.join(names)})", "if out is not None: return out"]
    lines = [
        f"def _op{parameters}:",
        *others,
        *(small if has_small and not (mixed_modes and op.mixed) else ()),
        "try:",
        *(f"    {line}" for line in lines),
        f"except Exception as _e: reraise(_e, NAME, {shown}, {params})",
    ]
    lines += _result(op, params)
    if not op.is_opened:
        refusal = [
            f"    if {_unusual(op)}:",
            f"        if watched_in({', '.join(op.params)}): refuse_parameters(NAME, {params})",
        ] * (bool(op.params) and op.differentiable)
        lines += [
            "if recorders:",
            *refusal,
            f"    if graphs: {renumber}",
            f"    if {any_id}:",
            *_recording(op, ids, params),
            f"    if checks: check_op(op, out, {shown}, {params})",
        ]
    lines.append("return out")
    return "\n    ".join(lines) + "\n"


def _check_parameters(op: Any) -> list[str]:
    """The lines that look at parameters of unusual types; a parameter left out costs nothing.

    An op of a user may take objects of any type, except as its `axis`.
    """
    lines, ours = [], op.home.startswith("gpugrad.")
    for k, default in op.params.items():
        if not ours and k != "axis":
            continue
        if type(default) is bool:
            lines.append(
                f"if {k} is not {default} and {k} is not {not default}: "
                f"{k} = check_flag(NAME, {k!r}, {k})"
            )
        elif k not in ("index", "dtype"):  # which have checks of their own
            unset = None if default is None else f"_d_{k}"
            passed = "" if default is inspect.Parameter.empty else f"{k} is not {unset} and "
            lines.append(
                f"if {passed}type({k}) not in {_usual(op, k, default)}: "
                f"{k} = check_unusual(op, {k!r}, {k})"
            )
    return lines


def _usual(op: Any, parameter: str, default: Any) -> str:
    """The name, in `on_tensors`, of the types that a parameter may have without a check."""
    if parameter == "axis":
        return "AXES"
    if type(default) is float:
        return "REAL"
    return "USUAL_COMPLEX" if "c" in op.kinds else "USUAL"


def _result(op: Any, params: str) -> list[str]:
    """The lines that wrap a result, in a View where NumPy returns one."""
    if op.outputs > 1:
        return ["out = tuple([wrap(asarray(r, kind)) for r in _r])"]
    other = "type(_r) is not kind and type(_r) not in ARRAYS"  # the first test is the faster one
    lines = [f"if {other}: _r = asarray(_r, kind)"]
    if op.params and op.differentiable:  # a Tensor in a parameter makes a Tensor of the result
        lines = [
            f"if {other}:",
            f"    if type(_r) is Tensor: refuse_parameters(NAME, {params})",
            "    _r = asarray(_r, kind)",
        ]
    wrapped = "out = new(Tensor); out._data = _r; out._id = 0"
    if not op.writes:
        return [*lines, wrapped]
    (n,), values = op.arrays, "(" + "".join(f"{k}, " for k in op.params) + ")"
    unless = has_axes = ""
    if op.name == "getitem":  # the others say by their parameters whether NumPy's is a view
        lines += [
            f"if _r.base is None and _r is not {n}_:",
            "    out = new(Tensor if _r.ndim else Element); out._data = _r; out._id = 0",
            "    if recorders and not _r.ndim and type(parent) is View: out.of = parent, index",
        ]
        unless, has_axes = "el", " and (kind is ndarray or _r.ndim)"  # CuPy has views of elements
    return [
        *lines,
        f"{unless}if _r.base is {n}_ and type(parent) is Tensor{has_axes}:",
        f"    out = new(View); out._array = _r; out._number = 0; out._seen = {n}_",
        f"    out.root = out.parent = parent; out.op = op; out.params = {values}",
        f"else: out = view_or_copy(_r, {n}_, parent, op, {values})",
    ]


def _opening(op: Any, any_id: str, shown: str, params: str, passed: str) -> list[str]:
    """The lines that run a composite's body on Tensors, if they are recorded."""
    names = op.arrays
    returned = (
        f"any([out is x for x in {names[0]}])" if op.variadic
        else " or ".join(f"out is {n}" for n in names)
    )  # fmt: skip
    body = "body" if len(names) > 1 else "opened"
    own, result = ("own(out)", "out") if op.writes else ("no_view(own(out))", "no_view(out)")
    lines = [
        "if recorders:",
        *[f"    {names[0]} = parent"] * bool(op.writes),  # for a View of it, not of a copy
        f"    if checks and numerics(): return checked_composite(op, {shown}, {params})",
    ]
    if op.params:
        listed = f"({', '.join(names)},)"
        lines += [
            f"    if {_unusual(op)} and watched_in({', '.join(op.params)}):",
            f"        return open_with_parameters(NAME, opened, {listed}, {params})",
        ]
    return [
        *lines,
        f"    if graphs or {any_id}:",
        f"        out = {body}({', '.join(names)}{', ' + passed if passed else ''})",
        f"        return {own} if {returned} else {result}",
    ]


def _unusual(op: Any) -> str:
    """The test whether a parameter has a type that may be, or hold, a Tensor."""
    tests = [
        f"{k} is {default} or " * (default is None or type(default) is bool)
        + f"type({k}) in PLAIN or type({k}) is tuple and PLAIN.issuperset(map(type, {k}))"
        for k, default in op.params.items()
    ]
    return f"not ({tests[0]})" if len(tests) == 1 else f"not (({') and ('.join(tests)}))"


def _run(op: Any, call: str, compares: bool) -> list[str]:
    """The lines that call the op's reading; for a small NumPy array the forward, or NumPy's ufunc.

    A partial and the check for 16-bit floats would cost 0.5 us more. With `compares`, `large`
    decides about two arrays, since their result may be larger than they are.
    """
    run = f"_r = impl[kind]({call})"
    first, large = op.arrays[0], op.large or LARGE
    if op.ufunc is not None and len(op.arrays) > 1:
        one = f"type({op.arrays[0]}_) is not type({op.arrays[1]}_) and " * compares
        function = f"(ufunc if {one}sized.size < {large} else large)"
        return [f"if kind is ndarray: _r = {function}({call})", f"else: {run}"]
    if op.ufunc is not None:
        return [
            f"if kind is ndarray and {first}_.size < {large}: _r = ufunc({call})",
            f"elif kind is ndarray: _r = large({call})",
            f"else: {run}",
        ]
    if op.is_library_function or op.variadic or first in op.optional or (op.cpu and not op.large):
        return [run]
    if op.kind == "elementwise" and len(op.arrays) > 1:
        return [run]
    tests = ["kind is ndarray"]
    for n in op.arrays:
        narrow = "" if op.native_half else _is_not(n, "eE")
        if narrow and op.widens:
            narrow = f"{n}_.dtype.char in 'fdFDlqi?'"
        others = [f"{n}_ is None"] * (n in op.optional)
        others += [f"type({n}_) in SCALARS"] * (n != first and op.kind == "composite")
        if n == first and len(op.arrays) > 1 and op.kind == "composite":  # it may be a number
            tests.append(f"type({n}_) is ndarray")
        if others:
            array = f"type({n}_) is ndarray" + (f" and {narrow}" if narrow else "")
            tests.append(f"({' or '.join([array, *others])})")
        elif narrow:
            tests.append(narrow)
    if op.cpu:
        tests.append(f"{first}_.size < {large}")
    return [f"if {' and '.join(tests)}: _r = forward(NUMPY, {_placed(op)})", f"else: {run}"]


def _is_not(name: str, chars: str) -> str:
    """The test that NumPy's array is of no such 16-bit floats; one attribute tells most."""
    return f"({name}_.itemsize > 2 or {name}_.dtype.char not in {chars!r})"


def runs_formula(op: Any) -> bool:
    """Whether the function calls the op's formula on small NumPy arrays, without its reading."""
    if op.is_library_function or op.variadic or op.optional:
        return False
    if op.kind == "elementwise" and len(op.arrays) > 1:
        return _is_loop(op)  # in `_at_once`
    return not op.cpu or bool(op.large)


def _placed(op: Any) -> str:
    """The arguments of the op's formula: metadata without keywords where it can, 10 ns faster."""
    code, first = getattr(op.forward, "__code__", None), len(op.arrays) + 1
    places = code.co_varnames[first : code.co_argcount] if code else ()
    names = tuple(op.params)
    passed = [k if places[:i] == names[:i] else f"{k}={k}" for i, k in enumerate(names, 1)]
    return ", ".join([*(f"{n}_" for n in op.arrays), *passed])


def _is_loop(op: Any) -> bool:
    """Whether it has a loop in C for large arrays, and its formula takes 16-bit floats."""
    return op.kind == "elementwise" and op.cpu is True and op.native_half


def _at_once(op: Any, lines: list[str], call: str, compares: bool) -> list[str]:
    """The lines of an op of two arrays; a small NumPy array need not meet another, or a number.

    Two are broadcast to at most the product of their sizes: with `compares`, that must be small, or
    their shapes must be equal.
    """
    x, y = op.arrays
    start = lines.index(f"kind = type({x}_)") + 1
    run = "_r = " + (f"ufunc({call})" if op.ufunc is not None else f"forward(NUMPY, {call})")
    size, number = f"size < {op.large or LARGE}", f"type({y}_) in SCALARS and {_is_not(x, 'E')}"
    fits = f"(type({y}_) is ndarray or {number}) and {x}_.{size}"
    if compares:
        both = f"{x}_.size * {y}_.{size} or {x}_.{size} and {x}_.shape == {y}_.shape"
        fits = f"({both} if type({y}_) is ndarray else {number} and {x}_.{size})"
    return [
        *lines[:start],
        f"if kind is ndarray and {fits}: {run}",
        f"elif type({y}_) is ndarray and type({x}_) in SCALARS and {_is_not(y, 'E')} "
        f"and {y}_.{size}: {run}; kind = ndarray",
        "else:",
        *(f"    {line}" for line in lines[start:]),
    ]


def _read_arguments(op: Any) -> list[str]:
    names, several = op.arrays, len(op.arrays) > 1
    lines = [f"parent = {names[0]}"] if op.writes else []
    read = "promoted" if several and op.ufunc is not None else "operand"
    read = "glance" if op.writes else read
    for n in names:
        beside = n if op.writes else ", ".join(sorted(names, key=n.__ne__))
        first = f"if type({n}) is Tensor: {n}_ = {n}._data; {n}i = {n}._id"
        lines.append(first)
        if n in op.optional:
            lines.append(f"elif {n} is None: {n}_ = None; {n}i = 0")
        if several:
            lines.append(f"elif type({n}) in SCALARS: {n}_ = {n}; {n}i = 0")
        lines += [
            f"elif type({n}) is View and {n}.root._data is {n}._seen: "
            f"{n}_ = {n}._array; {n}i = {n}._number",
            f"else: {n} = {read}({beside}); {n}_ = {n}._data; {n}i = {n}._id",
        ]
    if "index" in op.params:
        n = names[0]
        lines.append(f"if len(READINGS) > 1: {n} = beside({n}, index); {n}_, {n}i = split({n})")
    lines.append(f"kind = type({names[0]}_)")
    if several:
        same = " or ".join(f"type({n}_) is not kind" for n in names[1:])
        if op.kind != "composite":
            same += " or kind is Batched"  # of several levels, perhaps
        rest = ", ".join(f"{n}_" for n in names)
        how, others = _meeting(op)
        meeting = [f"{rest}, kind = {how}(NAME, {rest}{others})"]
        if op.kind != "composite":  # whose own ops see to it
            listed, again = ", ".join(names), "; ".join(f"{n}_, {n}i = split({n})" for n in names)
            meeting.insert(0, f"if Batched in ARRAYS: {listed} = meet_levels({listed}); {again}")
        if op.kind == "elementwise" and len(names) == 2:  # a number beside an array: no call
            x, y = names
            sized = ""
            if op.ufunc is not None:
                lines.append(f"sized = {x}_")
                sized = f"; sized = {y}_"
                meeting.append(f"sized = {y}_ if type({x}_) in SCALARS else {x}_")
            lines += [
                f"if {same}:",
                f"    if type({y}_) in SCALARS and kind in ARRAYS and {x}_.dtype.char != 'E': pass",
                f"    elif kind in SCALARS and type({y}_) in ARRAYS and {y}_.dtype.char != 'E': "
                f"kind = type({y}_){sized}",
                "    else:",
                *(f"        {line}" for line in meeting),
            ]
        else:
            if op.is_opened:
                lines.append("body = opened")
                meeting.append(f"if recorders: body = beside_numbers(opened, {rest})")
            lines += [f"if {same}:", *(f"    {line}" for line in meeting)]
    return lines


def _meeting(op: Any) -> tuple[str, str]:
    """The function that brings an op's arguments together, and its further arguments."""
    fixed = f", fixed={op.indices}" if op.indices else ""
    if op.kind == "elementwise":
        return "meet", fixed
    if op.is_opened:  # the ops of its body convert numbers
        return "meet", ", rounded=False"
    return "meet_arrays", fixed


def _read_list(op: Any) -> list[str]:
    (n,) = op.arrays
    return [
        f"{n} = tensors(NAME, {n})",
        f"if Batched in ARRAYS: {n} = meet_levels(*{n})",
        f"ids = [x._id for x in {n}]",
        f"*{n}_, kind = meet(NAME, *[x._data for x in {n}])",
    ]


def _recording(op: Any, ids: str, params: str) -> list[str]:
    """The lines that record one execution."""
    if not op.differentiable:
        return [
            f"        block(NAME, out, {ids})" if op.outputs == 1
            else f"        for o in out: block(NAME, o, {ids})"
        ]  # fmt: skip
    saved = []
    for name in op.saves:
        if name == "out":
            saved.append("_r" if op.outputs == 1 else "tuple([o._data for o in out])")
        elif not name.endswith(("_shape", "_dtype")):
            readers = op.readers[name]
            every = not readers or len(readers) == len(op.arrays)
            wanted = " or ".join(f"{r}i" for r in readers)
            saved.append(f"{name}_" if every else f"{name}_ if {wanted} else None")
        else:
            array, _, what = name.rpartition("_")
            saved.append(
                f"[x.{what} for x in {array}_]" if op.variadic else
                f"None if {array}_ is None else {array}_.{what}" if array in op.optional else
                f"{array}_.{what}"
            )  # fmt: skip
    lines = []
    if op.outputs > 1 or (len(op.arrays) == 1 and not op.variadic):
        fits = "None, " * len(op.arrays)
    elif op.variadic:
        lines = [
            f"        fits = [None if x.dtype == _r.dtype else (x.shape, x.dtype) "
            f"for x in {op.arrays[0]}_]"
        ]
        fits = "*fits,"
    elif op.kind == "elementwise":
        lines = ["        _shape = _r.shape; _dtype = _r.dtype"]
        fits = "".join(
            f"None if not {n}i or {n}_.shape == _shape and {n}_.dtype is _dtype "
            f"else ({n}_.shape, {n}_.dtype), "
            for n in op.arrays
        )
    else:  # rules give the shape; arrays of several dtypes still need a cast
        lines = ["        _dtype = _r.dtype"]
        fits = "".join(
            f"None if not {n}i or {n}_.dtype is _dtype else ({n}_.shape, {n}_.dtype), "
            for n in op.arrays
        )
    if "c" not in op.kinds and op.linear is not True:
        lines.insert(0, _refusing_complex(op, ids))
    kept = "".join(f"{s}, " for s in saved)
    call = "record" if op.outputs == 1 else "record_many"
    params = params if op.params else "None"
    line = f"        {call}(op, out, {ids}, ({fits}), ({kept}), {params})"
    if "dtype" in op.params:  # a cast to integers ends the gradient
        lines.append(f"        if _r.dtype.kind not in 'fcV': block(NAME, out, {ids})")
        line = f"        else: {line.strip()}"
    return [*lines, line]


def _refusing_complex(op: Any, ids: str) -> str:
    """The line that refuses complex arguments, by which the op's rules give no gradient."""
    if op.variadic:
        (xs,) = op.arrays
        test, arguments = f"any([a.dtype.kind == 'c' for a in {xs}_])", f"*{xs}_"
    else:
        one = "{0}_.dtype.kind == 'c'"
        if len(op.arrays) > 1 and op.kind == "elementwise":
            one = "({0}_.dtype.kind == 'c' if type({0}_) not in SCALARS else type({0}_) is complex)"
        tests = [
            f"{n}_ is not None and {one.format(n)}" if n in op.optional else one.format(n)
            for n in op.arrays
        ]
        test, arguments = " or ".join(tests), ", ".join(f"{n}_" for n in op.arrays)
    return f"        if {test}: refuse_complex(NAME, {ids}, {arguments})"
