"""The source text that is generated for an op, and tracebacks through it."""

import inspect
import traceback

import pytest
from needs import needs_compiler, needs_thresholds

import gpugrad as gg
from gpugrad.errors import ShapeError, meaning
from gpugrad.registry.function_text import source
from gpugrad.registry.on_tensors import eager_function

TANH = """\
def tanh(x, /, out=None, where=None, dtype=None):
    if out is not None or where is not None or dtype is not None: \
return by_numpy((x, ), {}, {'out': out, 'where': where, 'dtype': dtype})
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
            record(op, out, (xi,), (None, ), (_r, x_, ), None)
        if checks: check_op(op, out, {'x': x}, {})
    return out
"""

CONCAT = """\
def concat(arrays, /, axis=_d_axis, out=None, *, dtype=None, casting=None, **_others):
    if out is not None or dtype is not None or casting is not None or _others: \
return by_numpy((arrays, ), {'axis': axis}, {'out': out, 'dtype': dtype, 'casting': casting}, \
_others)
    try:
        arrays = tensors('concat', arrays)
        if Batched in ARRAYS: arrays = meet_levels(*arrays)
        ids = [x._id for x in arrays]
        *arrays_, kind = meet('concat', *[x._data for x in arrays])
        if axis is not _d_axis and type(axis) not in AXES: axis = check_unusual(op, 'axis', axis)
        _r = impl[kind](arrays_, axis=axis)
    except Exception as _e: reraise(_e, 'concat', {'arrays': arrays}, {'axis': axis})
    if type(_r) is not kind and type(_r) not in ARRAYS:
        if type(_r) is Tensor: refuse_parameters('concat', {'axis': axis})
        _r = asarray(_r, kind)
    out = new(Tensor); out._data = _r; out._id = 0
    if recorders:
        if not (type(axis) in PLAIN or type(axis) is tuple and PLAIN.issuperset(map(type, axis))):
            if watched_in(axis): refuse_parameters('concat', {'axis': axis})
        if graphs: ids = [number(x) for x in arrays]
        if any(ids):
            fits = [None if x.dtype == _r.dtype else (x.shape, x.dtype) for x in arrays_]
            record(op, out, ids, (*fits,), ([x.shape for x in arrays_], ), {'axis': axis})
        if checks: check_op(op, out, {'arrays': arrays}, {'axis': axis})
    return out
"""


@pytest.mark.parametrize(
    ("op", "text"), [(gg.tanh, TANH), (gg.concat, CONCAT)], ids=["tanh", "concat"]
)
@needs_thresholds
def test_generated_source_of_an_op_is_this_text(op, text):
    assert source(op.op) == text


def test_eager_function_has_its_own_name_signature_and_docstring():
    assert gg.sum.__name__ == "sum"
    assert str(inspect.signature(gg.sum)) == "(x, /, axis=None, *, dtype=None, keepdims=False)"
    assert gg.sum.__doc__.startswith("Sum along axes")
    assert gg.sum.op is gg.OPS["sum"]


def test_factors_that_no_recorded_input_needs_are_not_saved():
    """In `x * c` with a constant c the rule for c never runs, so x is not saved."""
    x, c = gg.Variable([1.0, 2.0]), gg.constant([3.0, 4.0])
    with gg.GradientTape() as tape:
        x * c
    ((_, _, _, _, saved, _),) = tape.log
    assert [s is None for s in saved] == [False, True]


def frames(call, kind):
    """(file, function, line) of each frame of the raised error, and of its cause."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    return [
        [(f.filename, f.name, f.line) for f in traceback.extract_tb(e.__traceback__)]
        for e in (error, error.__cause__)
        if e is not None
    ]


@needs_compiler  # without small ops in C it compares no shapes
@needs_thresholds
def test_traceback_shows_the_generated_line_at_first_and_later_calls():
    add, x, y = eager_function(gg.add.op), gg.ones(3), gg.ones(4)
    of_calls = [frames(lambda: add(x, y), ShapeError) for _ in range(2)]
    assert of_calls[0] == of_calls[1]
    error, cause = of_calls[0]
    reraised = "except Exception as _e: reraise(_e, 'add', {'x': x, 'y': y}, {})"
    assert [f for f in error if f[0] != __file__] == [
        ("<gpugrad add>", "add", reraised),
        (meaning.__file__, "reraise", error[-1][2]),
    ]
    line = (
        "if kind is ndarray and (x_.size * y_.size < 131072 or x_.size < 131072 "
        "and x_.shape == y_.shape if type(y_) is ndarray else type(y_) in SCALARS "
        "and (x_.itemsize > 2 or x_.dtype.char not in 'E') and x_.size < 131072): "
        "_r = ufunc(x_, y_)"
    )
    assert cause[0] == ("<gpugrad add>", "add", line)


def test_call_with_wrong_arguments_has_no_gpugrad_frame():
    tanh = eager_function(gg.tanh.op)
    (first,), (second,) = (frames(lambda: tanh(1, nothing=2), TypeError) for _ in range(2))
    assert first == second
    assert [name for _, name, _ in first] == ["frames", "<lambda>"]


def test_traceback_shows_the_generated_wrapper_of_a_rule():
    @gg.op(vjp=[lambda xp, g, x: g.no_such_attribute], samples=[], ref=None)
    def copied(xp, x, /):
        """A copy."""
        return x + 0

    ((*_, around, rule),) = frames(
        lambda: gg.grad(lambda x: gg.sum(copied(x)))(gg.ones(2)), Exception
    )
    assert around[0].startswith("<gpugrad rule ")
    assert around[2] == "lambda xp, g, s, k: rule(xp, g, s[0])"
    assert "no_such_attribute" in rule[2]
