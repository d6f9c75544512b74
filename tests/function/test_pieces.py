"""The `write_pieces_in_place` pass: gradients of slices are written into one array."""

import pytest
from comparing import near
from needs import needs_shim
from test_fuse import assert_right, normal, program_of

import gpugrad as gg
from gpugrad.function.passes.fuse import launches
from gpugrad.function.passes.pieces import Pieces, write_all_pieces, write_pieces_in_place
from gpugrad.trace.program import Step

inputs = Step.inputs.fget

WEIGHTS = (1.5, -2.0, 0.25)


def gradient_of(split):
    """The gradient of a weighted sum over the pieces that `split` takes from an array."""

    def gradient(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            parts = split(x)
            y = sum(gg.sum(gg.exp(p) * w) for p, w in zip(parts, WEIGHTS, strict=False))
        return tape.gradient(y, x)

    return gradient


def pieces_of(f, *args):
    return [s for s in write_pieces_in_place(program_of(f, *args)).steps if isinstance(s, Pieces)]


SPLITS = {
    "unstack": lambda x: gg.unstack(x),
    "unstack the last axis": lambda x: gg.unstack(x, axis=-1),
    "equal slices": lambda x: gg.split(x, 3, axis=2),
    "unequal slices": lambda x: gg.split(x, [1, 4], axis=2),
    "strided slices": lambda x: (x[..., ::2], x[..., 1::2]),
    "a corner, a side and the rest": lambda x: (x[0, 0], x[0, 1:], x[1:]),
    "negative indices": lambda x: (x[-1], x[:-1, ..., ::-1]),
}
SHAPE = (3, 2, 6)


@needs_shim
@pytest.mark.parametrize("name", SPLITS)
def test_gradients_of_pieces_are_right_and_written_once(name, rng):
    x = normal(rng, *((3, 2, 3) if "last" in name else SHAPE))
    f = gradient_of(SPLITS[name])
    assert_right(f, x)
    for in_place in (write_pieces_in_place, write_all_pieces):
        steps = in_place(program_of(f, x)).steps
        (pieces,) = (s for s in steps if isinstance(s, Pieces))
        assert pieces.outs[0].shape == x.shape
        assert len(pieces.args) == len(SPLITS[name](x))
        assert not [s for s in steps if s.name in ("add", "scatter_at")]


@needs_shim
def test_nested_pieces_are_written_in_two_steps(rng):
    x, f = normal(rng, *SHAPE), gradient_of(lambda x: (x[0], *gg.unstack(x[1:])))
    assert_right(f, x)
    assert [s.outs[0].shape for s in pieces_of(f, x)] == [(2, 2, 6), SHAPE]


@pytest.mark.parametrize(
    "split",
    [lambda x: (x[0], x[1]), lambda x: (x[:2], x[1:]), lambda x: (x[[0, 1]], x[2]),
     lambda x: (x[0], x[1:] * gg.sum(x)), lambda x: (x[None, 0], x[1:])],
    ids=["missing piece", "overlapping pieces", "array index", "another gradient", "new axis"],
)  # fmt: skip
def test_other_sums_are_unchanged(split, rng):
    x, f = normal(rng, *SHAPE), gradient_of(split)
    assert not pieces_of(f, x)


@needs_shim
def test_attention_gradients_are_written_in_the_layout_of_the_projection(rng):
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
    names = launches(write_pieces_in_place(program_of(f, x)))
    assert not {"permute_dims", "reshape"} & {*names}, names


def test_a_gradient_with_another_reader_keeps_its_axes(rng):
    def f(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.permute_dims(x, (1, 0, 2))
            parts = gg.unstack(y)
            z = gg.sum(gg.exp(parts[0]) * parts[1])
        by_y, by_x = tape.gradient(z, [y, x])
        return by_y * 2, by_x

    x = normal(rng, 3, 2, 4)
    (pieces,) = pieces_of(f, x)
    assert pieces.outs[0].shape == (2, 3, 4)
    near(gg.function(f)(x)[1], f(x)[1], 1e-6)


def test_a_long_chain_of_additions_is_traced_in_linear_time(monkeypatch):
    reads = []
    monkeypatch.setattr(Step, "inputs", property(lambda step: reads.append(1) or inputs(step)))

    def chain(n):
        def f(x):
            total = x
            for _ in range(n):
                total = total * 0.5 + x
            return total * 0.0 + x

        reads.clear()
        assert gg.function(f)(gg.ones(3)).tolist() == [1.0] * 3
        return len(reads)

    assert chain(1200) < 3 * chain(600)  # a recursion would be too deep
