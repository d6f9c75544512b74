"""Kinds of arguments: which values they take, how they refuse others, and who declares them."""

import inspect
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import known_as
from gpugrad.core.arguments import (
    ABOVE_0,
    BELOW_1,
    CALLABLE,
    COUNT,
    FLAG,
    FRACTION,
    FUNCTION,
    NOT_NEGATIVE,
    NUMBER,
    PATH,
    POSITIVE,
    TEXT,
    WHOLE,
    check_op_flag,
    list_of,
    one_of,
    optional,
    takes,
    whole,
)
from gpugrad.errors import ArgumentError, DTypeError

SIDE = one_of("left", "right", None)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (WHOLE, 0, 0), (COUNT, np.int8(3), 3), (whole(-2, 2), -2, -2),
        (NUMBER, Fraction(1, 2), 0.5), (NUMBER, -math.inf, -math.inf),
        (NUMBER, gg.constant(0.5), 0.5), (NUMBER, np.float32(2.0), 2.0),
        (ABOVE_0, 1, 1.0), (BELOW_1, 0, 0.0), (NOT_NEGATIVE, 0, 0.0), (FRACTION, 1, 1.0),
        (POSITIVE, math.inf, math.inf),
        (FLAG, 1, True), (FLAG, np.False_, False), (FLAG, np.int64(0), False),
        (TEXT, "a", "a"), (PATH, "a/b", Path("a/b")), (FUNCTION, len, len),
        (SIDE, "left", "left"), (SIDE, None, None),
        (list_of(int, str), (1, "a"), [1, "a"]),
        (optional(COUNT), None, None), (optional(COUNT), 2, 2),
    ],
)  # fmt: skip
def test_kind_reads_what_it_takes(kind, value, read):
    result = kind("f", "x", value)
    assert result == read
    assert type(result) is type(read)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (WHOLE, (-1, 1.0, True, "1", None, 1j, 10**30), "a whole number of at least 0"),
        (COUNT, (0, 2.5, np.array([1]), gg.constant(0)), "a whole number above 0"),
        (whole(1, 9), (0, 10), "a whole number from 1 to 9"),
        (NUMBER, ("1", b"1", np.timedelta64(1, "s"), None, 1j, [1.0], gg.ones(2)), "a number"),
        (ABOVE_0, (0, -1, math.inf, math.nan), "above 0 and finite"),
        (ABOVE_0, ("1", np.timedelta64(1, "s"), [0.5]), "a number"),
        (BELOW_1, (1, -0.1, math.nan), "at least 0 and below 1"),
        (NOT_NEGATIVE, (-0.1, math.inf, math.nan), "0 or above, and finite"),
        (FRACTION, (1.1, -0.1, math.nan), "from 0 to 1"),
        (POSITIVE, (0, math.nan), "above 0"),
        (FLAG, ("no", 2, None, 1.0, [], np.array(True), np.int64(2)), "True or False"),
        (TEXT, ("", None, 3), "text"),
        (PATH, (3, None, b"a"), "a path"),
        (FUNCTION, (3, None), "a function"),
        (SIDE, ("up", 3, [], np.array(1)), '"left" or "right" or None'),
        (list_of(int, str), (3, [1.0], None), "a list of int or str"),
        (optional(COUNT), (0, "1"), "a whole number above 0 or None"),
        (optional(ABOVE_0), (0, "1"), "above 0 and finite or None"),
    ],
)  # fmt: skip
def test_kind_refuses_all_else_by_name(kind, values, words):
    for value in values:
        with pytest.raises(ArgumentError) as caught:
            kind("Some", "thing", value)
        assert str(caught.value) == f"Some: thing must be {words}, got {value!r:.60}."


def test_kind_may_raise_another_class():
    with pytest.raises(DTypeError, match=r"^vjp: f must be a function, got 3\.$"):
        CALLABLE("vjp", "f", 3)


@pytest.mark.parametrize("value", [True, 0, np.True_, None, np.array(True), gg.constant(True)])
def test_flag_of_an_op_may_be_none_or_an_array(value):
    assert check_op_flag("sum", "keepdims", value) is value


@pytest.mark.parametrize("value", ["no", 2, 0.0, [], object()])
def test_flag_of_an_op_refuses_other_values(value):
    with pytest.raises(DTypeError, match="sum: keepdims must be True or False"):
        gg.sum(gg.ones(2), keepdims=value)


@takes(n=COUNT, flag=FLAG)
def decorated(n, x=None, *, flag=False):
    """Return the arguments."""
    return n, x, flag


def test_takes_checks_arguments_by_position_and_by_name():
    assert decorated(np.int8(2), "x", flag=1) == (2, "x", True)
    assert decorated(n=3) == (3, None, False)
    with pytest.raises(ArgumentError, match=r"^decorated: n must be a whole number above 0, got 0"):
        decorated(0)
    with pytest.raises(ArgumentError, match=r"^decorated: flag must be True or False, got 'no'"):
        decorated(1, flag="no")


def test_takes_keeps_signature_and_the_errors_of_calls_that_do_not_fit():
    assert str(inspect.signature(decorated)) == "(n, x=None, *, flag=False)"
    assert decorated.__doc__ == "Return the arguments."
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        decorated()
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        decorated(1, m=2)


def test_takes_names_the_class_of_the_object_and_checks_what_the_base_class_declares():
    class Base:
        @takes(n=COUNT)
        def __init__(self, n):
            self.n = n

    class Derived(Base):
        @takes(flag=FLAG)
        def __init__(self, n, flag):
            super().__init__(n)

    assert Derived(np.int16(2), flag=True).n == 2
    with pytest.raises(ArgumentError, match=r"^Derived: n must be"):
        Derived(-1, True)


def test_takes_refuses_a_kind_of_no_parameter():
    with pytest.raises(KeyError, match="'m'"):
        takes(m=COUNT)(lambda n: n)


VALUES = {
    "units": 2, "units_in": 2, "units_in1": 2, "units_in2": 2, "units_out": 2, "rows": 2,
    "width": 4, "heads": 2, "channels": 2, "channels_in": 2, "channels_out": 2, "size": 2,
    "shape": 2, "groups": 1, "classes": 2, "k": 1, "dataset": [1, 2], "tokens": [1, 2, 3],
    "length": 1, "f": len, "inner_optimizer": gg.optim.SGD(0.1),
}  # fmt: skip
"""Valid arguments in the place of those without a default."""


def _arguments(*kinds):
    """Each public class and parameter of some annotations, and valid arguments for the others."""
    for space in (gg.nn, gg.data, gg.train, gg.optim):
        for name in space.__all__:
            cls = getattr(space, name)
            if not isinstance(cls, type) or "__init__" not in vars(cls):
                continue
            parameters = inspect.signature(cls.__init__).parameters
            needed = {k: VALUES.get(k) for k, p in parameters.items() if p.default is p.empty}
            for k, p in parameters.items():
                if p.annotation in kinds:
                    others = {n: v for n, v in needed.items() if n in VALUES and n != k}
                    yield pytest.param(cls, k, others, id=f"{name}-{k}")


@pytest.mark.parametrize(("cls", "what", "others"), [*_arguments("bool")])
@pytest.mark.parametrize("value", ["no", 2, [], None])
def test_every_flag_of_a_constructor_is_true_or_false(cls, what, others, value):
    with pytest.raises(
        ArgumentError, match=rf"{cls.__name__}: (\w+: )?{what} must be True or False, got"
    ):
        cls(**others, **{what: value})


COUNTS = [
    row
    for row in _arguments("int", "int | None")
    if row.values[1] not in ("axis", "padding_idx")  # which count from the end, too
]


@pytest.mark.parametrize(("cls", "what", "others"), COUNTS)
@pytest.mark.parametrize("value", ["2", 2.0, True, -1, 10**30])
def test_every_number_of_things_is_a_whole_number(cls, what, others, value):
    with pytest.raises(
        ArgumentError, match=rf"{cls.__name__}: (\w+: )?{what} must be a whole number"
    ):
        cls(**others, **{what: value})


def test_hint_about_a_name_that_nobody_knows_is_empty():
    assert known_as.hint("gg", "nothing") == known_as.hint("no place", "cat") == ""
