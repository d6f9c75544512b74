"""The example charlm over ranks, against one process."""

import argparse
import zlib

import numpy as np
from checks_sharded import whole
from common import ON_GPUS, STEPS, W, parts

import gpugrad as gg
from gpugrad.examples import charlm

WAYS = {
    "eager": {},
    "function": {"traced": True},
    "accumulated": {"accumulate": 2},
    "accumulated function": {"accumulate": 2, "traced": True},
    "weighted": {"rows": 7, "traced": True},
    "weighted eager": {"rows": 7},
    "sharded": {"shard": "optimizer", "traced": True},
    "sharded eager": {"shard": "optimizer"},
    "parameters": {"shard": "parameters", "traced": True},
    "parameters eager": {"shard": "parameters"},
}


def trained(
    alone, traced=False, accumulate=1, rows=12, shard=None, precision="float64", losses=None
):
    """The averaged weights, and the number of collectives of each step; appends to `losses`."""
    model = charlm.GPT(16, 2, 2, gg.random.Generator(0), precision)
    about = {"warm_up": 5, "learning_rate": 0.01, "accumulate": accumulate, "precision": precision}
    optimizer = charlm.make_optimizer(argparse.Namespace(**about), model, STEPS // accumulate)
    if not alone:
        optimizer = gg.distributed.Optimizer(optimizer, model, bucket_bytes=4000, shard=shard)
    ema = gg.optim.EMA(model, 0.9)
    step = charlm.make_step(model, optimizer, ema)
    call, rng, counts = gg.function(step) if traced else step, np.random.default_rng(0), []
    for _ in range(STEPS):
        batch = rng.integers(0, 256, size=(rows, 9))
        batch = batch if alone else batch[slice(*parts(rows))]
        before = W.collectives
        loss = call(gg.constant(batch[:, :-1]), gg.constant(batch[:, 1:]))
        if losses is not None:
            losses.append(float(loss))
        counts.append(W.collectives - before)
    ema.assign()
    if shard != "parameters":
        own = zlib.crc32(b"".join(v.numpy().tobytes() for v in model.variables))
        assert len(set(W.gather(own))) == 1 or alone
    stepping = counts[accumulate - 1 :: accumulate]
    assert sum(counts) == sum(stepping)  # the others communicate nothing
    return whole(model), stepping


def check_charlm_is_that_of_one_process():
    right = {}
    for way, how in WAYS.items():
        if ON_GPUS and way not in ("function", "parameters"):
            continue
        key = how.get("accumulate"), how.get("rows")
        if key not in right:
            right[key] = trained(True, traced=True, accumulate=key[0] or 1, rows=key[1] or 12)[0]
        weights, counts = trained(False, **how)
        for name, value in weights.items():
            assert np.abs(value - right[key][name]).max() < 1e-10, (way, name)
        assert ON_GPUS or len(set(counts)) == 1, (way, counts)


def check_charlm_in_float32_has_the_losses_of_one_process():
    for traced in (False, True):
        right, own = [], []
        trained(True, traced, precision="float32", losses=right)
        trained(False, traced, precision="float32", losses=own)
        means = np.mean(W.gather(own), axis=0)  # the parts are equally large
        np.testing.assert_allclose(means, right, rtol=1e-5)
