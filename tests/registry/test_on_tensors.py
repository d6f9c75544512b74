"""The text that is written out for an op, as a reader would see it."""

import inspect

import pytest

import gpugrad as gg
from gpugrad.registry.on_tensors import source

TANH = """\
def tanh(x, /):
    try:
        if type(x) is Tensor: x_ = x._data; xi = x._id
        else: x = tensor(x); x_ = x._data; xi = x._id
        kind = type(x_)
        r_ = impl[kind](x_)
    except Exception as e: reraise(e, 'tanh', {'x': x}, {})
    if type(r_) not in ARRAYS: r_ = asarray(r_, kind)
    out = new(Tensor); out._data = r_; out._id = 0
    if recorders:
        if graphs: xi = number(x)
        if xi:
            record(op, out, (xi,), (None, ), (r_, ), None)
    return out
"""

CONCAT = """\
def concat(arrays, /, axis=_d_axis):
    try:
        arrays = tensors('concat', arrays)
        if Batched in ARRAYS: arrays = meet_levels(*arrays)
        ids = [x._id for x in arrays]
        *arrays_, kind = meet('concat', *[x._data for x in arrays])
        if type(axis) is list: axis = tuple(axis)
        r_ = impl[kind](arrays_, axis=axis)
    except Exception as e: reraise(e, 'concat', {'arrays': arrays}, {'axis': axis})
    if type(r_) not in ARRAYS: r_ = asarray(r_, kind)
    out = new(Tensor); out._data = r_; out._id = 0
    if recorders:
        if graphs: ids = [number(x) for x in arrays]
        if any(ids):
            fits = [None if x.dtype == r_.dtype else (x.shape, x.dtype) for x in arrays_]
            record(op, out, ids, (*fits,), ([x.shape for x in arrays_], ), {'axis': axis})
    return out
"""


@pytest.mark.parametrize(
    ("op", "text"), [(gg.tanh, TANH), (gg.concat, CONCAT)], ids=["tanh", "concat"]
)
def test_source_of_an_op_is_this_text(op, text):
    assert source(op.op) == text


def test_eager_function_looks_like_a_function_of_its_own():
    assert gg.sum.__name__ == "sum"
    assert str(inspect.signature(gg.sum)) == "(x, /, axis=None, *, dtype=None, keepdims=False)"
    assert gg.sum.__doc__.startswith("Sum along axes")
    assert gg.sum.op is gg.OPS["sum"]


def test_factors_that_no_recorded_input_needs_are_not_kept():
    """Of `x * c` with a constant c the rule for c is never asked, so x is not saved."""
    x, c = gg.Variable([1.0, 2.0]), gg.constant([3.0, 4.0])
    with gg.GradientTape() as tape:
        x * c
    ((_, _, _, _, saved, _),) = tape.log
    assert [s is None for s in saved] == [False, True]
