"""Checks of optimizers and models of which each rank has a part."""

import os
import tempfile

import numpy as np
import pytest
from common import D, W, like_one_process, parts, several

import gpugrad as gg
from gpugrad.core.ranks import Shard, join_shards, ranks


def check_sharded_steps_and_states_are_those_of_one_process():
    groups = [(lambda name, v: v.ndim > 1, {"weight_decay": 0.1})]
    for make in (
        lambda: gg.optim.AdamW(1e-2, groups=groups, global_clipnorm=0.5, skip_nonfinite=True),
        lambda: gg.optim.LAMB(1e-2),
        lambda: gg.optim.Muon(1e-2),
    ):
        for traced in (False, True):
            like_one_process(make, traced=traced, shard="optimizer")


def check_ranks_without_a_part_count_steps():
    kinds = (
        (gg.optim.Adam, "optimizer"),
        (gg.optim.Muon, "optimizer"),
        (gg.optim.Adam, "parameters"),
    )
    for make, shard in kinds:
        for traced in (False, True):
            model = gg.nn.Dense(1, 1, use_bias=False, dtype="float64")  # one element
            optimizer = D.Optimizer(make(0.1, skip_nonfinite=True), model, shard=shard)
            step = step_of(model, optimizer, traced, lambda y: y)
            for x in (1.0, np.nan, 1.0):
                step(gg.constant([[x]], "float64"))
            assert W.gather((optimizer.iterations, optimizer.skipped)) == [(2, 1)] * W.size
            states = W.gather({k: t.numpy().tobytes() for k, t in optimizer.state_dict().items()})
            assert all(state == states[0] for state in states)


def check_sharded_states_load_at_any_number_of_ranks():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((5, 3), (4,), (7,))]
    grads = [[gg.constant(rng.normal(size=v.shape)) for v in values] for _ in range(4)]

    def run(first, second):
        variables = [gg.Variable(v, name=f"v{k}") for k, v in enumerate(values)]
        state = None
        for wrapped, part in ((first, grads[:2]), (second, grads[2:])):
            optimizer = gg.optim.AdamW(0.1)
            if wrapped:
                optimizer = D.Optimizer(optimizer, variables, shard=wrapped[0])
            names = {v.name: v for v in variables}
            if state is not None:
                optimizer.load_state_dict(state, names)
            for gs in part:
                optimizer.apply_gradients(zip(gs, variables, strict=True))
            state = optimizer.state_dict(names)
        return [v.numpy() for v in variables], state

    one, state = run(None, None)
    for ways in ((["optimizer"], None), (None, ["optimizer"]), (["optimizer"], ["optimizer"])):
        got, other = run(*ways)
        assert max(np.abs(a - b).max() for a, b in zip(one, got, strict=True)) < 1e-12
        assert state.keys() == other.keys()
        for key, value in state.items():
            assert np.allclose(value.numpy(), other[key].numpy(), atol=1e-12), key


class Net(gg.nn.Module):
    """Blocks with sizes that no number of ranks divides, a tied Variable and one of its own."""

    def __init__(self):
        rng = gg.random.Generator(3)
        how = {"dtype": "float64", "generator": rng}
        self.embedding = gg.nn.Embedding(20, 6, **how)
        self.blocks = [gg.nn.Dense(6, 6, activation=gg.tanh, **how) for _ in range(2)]
        self.tail = gg.nn.Sequential(gg.nn.LayerNorm(6, dtype="float64"), gg.nn.Dense(6, 20, **how))
        self.blocks[1].kernel = self.blocks[0].kernel
        self.scale = gg.Variable(np.ones(6), name="scale")

    def forward(self, x):
        h = self.embedding(x) * self.scale
        for block in self.blocks:
            h = h + block(h)
        return self.tail(h)


def trained_net(shard, traced=False, steps=6, alone=False, **options):
    """The model and its optimizer after some steps, of one process or of all ranks."""
    net = Net()
    groups = [(lambda name, v: v.ndim > 1, {"weight_decay": 0.1})]
    optimizer = gg.optim.AdamW(1e-2, groups=groups, global_clipnorm=0.5, **options)
    optimizer.build(net)
    if not alone:
        optimizer = D.Optimizer(optimizer, net, shard=shard)
    step_net(net, optimizer, traced, range(steps), alone)
    return net, optimizer


def step_net(net, optimizer, traced, steps, alone=False):
    call = step_of(net, optimizer, traced, gg.sparse_softmax_cross_entropy)
    for k in steps:
        batch = np.random.default_rng(k).integers(0, 20, size=(2, 12))
        if not alone:
            batch = batch[:, slice(*parts(12))]
        call(*map(gg.constant, batch))


def step_of(net, optimizer, traced, loss_of):
    def step(x, *labels):
        with gg.GradientTape() as tape:
            loss = gg.mean(loss_of(net(x), *labels))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    return gg.function(step) if traced else step


def whole(net):
    """The whole values of a model's Variables, by name."""
    own = {}
    for name, v in net.state().items():
        start, shape = ranks.parts.get(v._id, (0, v.shape))
        own[name] = Shard(v.numpy().reshape(-1), start, shape)
    return join_shards(W.gather(own))


def check_sharded_parameters_are_those_of_one_process():
    one = whole(trained_net(None, alone=True, skip_nonfinite=True)[0])
    total = sum(a.size for a in one.values())
    for traced in (False, True):
        net, optimizer = trained_net("parameters", traced, skip_nonfinite=True)
        for name, value in whole(net).items():
            assert np.abs(value - one[name]).max() < 1e-10, (name, traced)
        held = sum(v.size for v in net.trainable_variables)
        state = sum(a.size for s in optimizer.inner._states.values() for a in s.averages.values())
        assert state == 2 * held
        assert held <= 42 + -(-(total - 42) // W.size) + 4 * W.size  # the tied and the own one


def check_sharded_parameters_refuse_what_would_be_wrong():
    net, optimizer = trained_net("parameters", steps=1)
    variables = net.trainable_variables
    zeros = [gg.zeros(v.shape, dtype="float64") for v in variables]
    before = whole(net)
    for words, pairs, weight in (
        ("needs a gradient of each", [], 0),
        ("needs a gradient of each", list(zip(zeros, variables, strict=True))[2:], 1),
        *several(("equal weights", zip(zeros, variables, strict=True), 1 + W.rank)),
    ):
        with pytest.raises(ValueError, match=words):
            optimizer.apply_gradients(pairs, weight=weight)
    with pytest.raises(gg.errors.CheckpointError, match="is sharded"):
        gg.checkpoint.save(os.devnull, net)
    for inner, model in ((gg.optim.Muon(0.1), Net()), (gg.optim.SGD(0.1), [gg.Variable(1.0)])):
        with pytest.raises(ValueError, match="shard='parameters' takes"):
            D.Optimizer(inner, model, shard="parameters")
    assert all((before[k] == v).all() for k, v in whole(net).items())


def check_checkpoints_of_shards_load_at_any_number_of_ranks():
    """Each call goes on from the last one's folder, perhaps one of other ranks, for six steps."""
    folder = W.gather(os.environ.get("GPUGRAD_CHECKPOINTS") or tempfile.mkdtemp())[0]
    begun = None
    for shard in ("parameters", None, "optimizer", "parameters"):
        net = Net()
        optimizer = gg.optim.AdamW(1e-2, global_clipnorm=0.5)
        optimizer.build(net)
        optimizer = D.Optimizer(optimizer, net, shard=shard)
        saves = gg.train.Checkpoints(folder, keep=2, net=net, optimizer=optimizer)
        begun = (saves.restore() or {"steps": 0})["steps"]
        step_net(net, optimizer, False, range(begun, begun + 2))
        saves.save(begun + 2, {"steps": begun + 2})
        saves._lock.release()
    one, alone = Net(), gg.optim.AdamW(1e-2, global_clipnorm=0.5)
    step_net(one, alone, False, range(begun + 2), alone=True)
    right, files = whole(one), os.listdir(folder)
    for name, value in whole(net).items():
        assert np.abs(value - right[name]).max() < 1e-10, name
    parts_of = sorted(f for f in files if f.count(".") == 3)
    assert len(parts_of) == 2 * W.size  # of the two checkpoints that are kept
    own = {k: v.numpy().tobytes() for k, v in net.state().items()}
    W.gather(None)
    if "GPUGRAD_CHECKPOINTS" in os.environ:
        return
    if W.rank == 0:
        os.unlink(f"{folder}/{parts_of[-1]}")
    W.gather(None)
    with pytest.raises(gg.errors.CheckpointError, match="no checkpoint"):
        saves.restore()
    assert own == {k: v.numpy().tobytes() for k, v in net.state().items()}
