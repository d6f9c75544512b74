"""Gradients of what was taken apart: written to their places, and when."""

import numpy as np
import pytest
from needs import needs_shim
from test_fuse import assert_right, normal, program_of

import gpugrad as gg
from gpugrad.function.passes.fuse import launches
from gpugrad.function.passes.pieces import Pieces, write_pieces_in_place

WEIGHTS = (1.5, -2.0, 0.25)


def gradient_of(apart):
    """The gradient of a sum of products of what `apart` makes of an array."""

    def gradient(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            parts = apart(x)
            y = sum(gg.sum(gg.exp(p) * w) for p, w in zip(parts, WEIGHTS, strict=False))
        return tape.gradient(y, x)

    return gradient


def pieces_of(f, *args):
    return [s for s in write_pieces_in_place(program_of(f, *args)).steps if isinstance(s, Pieces)]


APART = {
    "numbers": lambda x: gg.unstack(x),
    "numbers of the last axis": lambda x: gg.unstack(x, axis=-1),
    "equal slices": lambda x: gg.split(x, 3, axis=2),
    "other slices": lambda x: gg.split(x, [1, 4], axis=2),
    "every other": lambda x: (x[..., ::2], x[..., 1::2]),
    "a corner, a side and the rest": lambda x: (x[0, 0], x[0, 1:], x[1:]),
    "from behind": lambda x: (x[-1], x[:-1, ..., ::-1]),
}
WHOLE = (3, 2, 6)


@needs_shim
@pytest.mark.parametrize("name", APART)
def test_gradients_of_pieces_are_right_and_written_once(name, rng):
    x = normal(rng, *((3, 2, 3) if "last" in name else WHOLE))
    f = gradient_of(APART[name])
    assert_right(f, x)
    (pieces,) = pieces_of(f, x)
    assert pieces.outs[0].shape == x.shape
    assert not [
        s for s in write_pieces_in_place(program_of(f, x)).steps if s.name in ("add", "scatter_at")
    ]


@needs_shim
def test_what_was_taken_apart_twice_is_put_together_twice(rng):
    x, f = normal(rng, *WHOLE), gradient_of(lambda x: (x[0], *gg.unstack(x[1:])))
    assert_right(f, x)
    assert [s.outs[0].shape for s in pieces_of(f, x)] == [(2, 2, 6), WHOLE]


@pytest.mark.parametrize(
    "apart",
    [lambda x: (x[0], x[1]), lambda x: (x[:2], x[1:]), lambda x: (x[[0, 1]], x[2]),
     lambda x: (x[0], x[1:] * gg.sum(x)), lambda x: (x[None, 0], x[1:])],
    ids=["one is missing", "one is in two", "an array of indices", "another sum", "a new axis"],
)  # fmt: skip
def test_other_sums_stay(apart, rng):
    x, f = normal(rng, *WHOLE), gradient_of(apart)
    assert not pieces_of(f, x)


@needs_shim
def test_queries_keys_and_values_are_written_as_the_product_before_them_had_them(rng):
    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            parts = gg.permute_dims(gg.reshape(x, (2, 5, 3, 2, 4)), (2, 0, 3, 1, 4))
            q, k, v = gg.unstack(parts)
            y = gg.sum(gg.exp(q) * k * gg.sin(v))
        return tape.gradient(y, x)

    x = normal(rng, 2, 5, 24)
    assert_right(f, x)
    (pieces,) = pieces_of(f, x)
    assert pieces.outs[0].shape == x.shape
    found = launches(write_pieces_in_place(program_of(f, x)))
    assert not {"permute_dims", "reshape"} & {*found}, found


def test_what_another_step_reads_too_keeps_its_axes(rng):
    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.permute_dims(x, (1, 0, 2))
            tape_of = gg.unstack(y)
            z = gg.sum(gg.exp(tape_of[0]) * tape_of[1])
        by_y, by_x = tape.gradient(z, [y, x])
        return by_y * 2, by_x

    x = normal(rng, 3, 2, 4)
    (pieces,) = pieces_of(f, x)
    assert pieces.outs[0].shape == (2, 3, 4)
    np.testing.assert_array_equal(gg.function(f)(x)[1], f(x)[1])
