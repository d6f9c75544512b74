"""The `join_tied` pass: gradients of a table that is an embedding and a product's kernel."""

import numpy as np
import pytest
from comparing import near_largest
from needs import needs_shim

import gpugrad as gg

pytestmark = needs_shim


def step(table, tokens, x):
    with gg.GradientTape() as tape:
        tape.watch(table)
        rows = gg.nn.embedding(tokens, table)
        scores = gg.astype(x, "float16") @ gg.matrix_transpose(gg.astype(table, "float16"))
        loss = gg.sum(gg.sin(rows)) + gg.sum(gg.cos(gg.astype(scores, "float32")))
    return tape.gradient(loss, table)


def steps_of(function):
    return [s.name for s in next(iter(function._plans.values())).replay.program.steps]


def arrays_for(rng, device):
    table = gg.constant(rng.normal(size=(11, 8)).astype(np.float32), device=device)
    tokens = gg.constant(np.array([3, 0, 3, 10, 3]), device=device)
    return table, tokens, gg.constant(rng.normal(size=(6, 8)).astype(np.float32), device=device)


@pytest.mark.parametrize("deterministic", [False, True])
def test_rows_are_added_to_the_gradient_of_the_product(deterministic, cuda, rng):
    function = gg.function(step)
    gg.set_deterministic(deterministic)
    try:
        for seed in range(3):
            here, there = (
                arrays_for(np.random.default_rng(seed), device) for device in ("cpu", cuda)
            )
            near_largest(function(*there).numpy(), step(*here).numpy(), 5e-3)
    finally:
        gg.set_deterministic(False)
    assert {"matmul to float32", "astype + scatter_rows"} <= {*steps_of(function)}
    assert not {"scatter_rows", "add"} & {*steps_of(function)}


def test_indices_out_of_bounds_still_spoil_the_gradient(cuda, rng):
    function = gg.function(step)
    table, tokens, x = arrays_for(rng, cuda)
    for _ in range(3):  # traces, compiles, captures
        assert np.isfinite(function(table, tokens, x).numpy()).all()
    wrong = gg.constant(np.array([3, 0, 99, 1, 2]), device=cuda)
    assert np.isnan(function(table, wrong, x).numpy()).any()


@pytest.mark.parametrize(
    ("order", "whole"),
    [(range(11), True), (range(10), False), ([1, 0, *range(2, 11)], False), (range(-11, 0), False)],
    ids=["all rows", "fewer rows", "other order", "from the end"],
)
def test_all_rows_in_order_are_the_table(order, whole, cuda, rng):
    def positions(table, wave):
        with gg.GradientTape() as tape:
            tape.watch(table)
            places = gg.constant([*order], device=table.device)
            rows = gg.take_rows(places, table) if min(order) >= 0 else gg.take(table, places, 0)
            loss = gg.sum(gg.sin(rows * wave))
        return rows, tape.gradient(loss, table)

    table, wave = rng.normal(size=(11, 8)).astype(np.float32), np.float32(3)
    for device in ("cpu", cuda):
        function = gg.function(positions)
        args = [gg.constant(a, device=device) for a in (table, wave)]
        for _ in range(3):
            rows, gradient = function(*args)
        expected = np.zeros_like(table)
        np.add.at(expected, [*order], np.cos(table[[*order]] * wave) * wave)
        np.testing.assert_array_equal(rows.numpy(), table[[*order]])
        np.testing.assert_allclose(gradient.numpy(), expected, 1e-4, 1e-5)
        text = str(function.lower(*args))
        assert ("= take" in text) == (not whole)
        if whole and device == cuda:
            assert "scatter_rows" not in text
