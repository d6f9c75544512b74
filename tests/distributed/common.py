"""What checks on several ranks share: this process joins the others when it is imported.

With ``--gpu ADDRESS RANK SIZE`` the ranks have made-up GPUs and meet at an address; with
``--alone`` the process is a world of its own.
"""

import os
import sys
import warnings
import zlib

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

ON_GPUS, join = "--gpu" in sys.argv, {}
if ON_GPUS:
    at = sys.argv.index("--gpu")
    host, RANK, SIZE = sys.argv[at + 1 : at + 4]
    del sys.argv[at : at + 4]
    from gpugrad.testing.cuda.driver import place

    os.environ["GPUGRAD_DEVICE"] = "cuda:0"
    place.activate()
    join = {"address": host, "rank": int(RANK), "size": int(SIZE), "local_rank": int(RANK)}
elif "--alone" in sys.argv:
    join = {"rank": 0, "size": 1}

import numpy as np  # noqa: E402

import gpugrad as gg  # noqa: E402

STEPS = 20
if "--steps" in sys.argv:  # of checks with random steps
    at = sys.argv.index("--steps")
    STEPS = int(sys.argv[at + 1])
    del sys.argv[at : at + 2]
D = gg.distributed
warnings.simplefilter("ignore")
W = D.init(30, **join)


def several(*checks):
    """Checks that mean something among several ranks only."""
    return checks if W.size > 1 else ()


def parts(n):
    return n * W.rank // W.size, n * (W.rank + 1) // W.size


def model():
    rng = np.random.default_rng(0)
    shapes = {"rows": (20, 6), "w": (6, 16), "b": (16,), "out": (16, 20), "unused": (3,)}
    return {k: gg.Variable(rng.normal(size=s) * 0.3, name=k) for k, s in shapes.items()}


def loss_of(m, x, y):
    h = gg.tanh(gg.gather(m["rows"], x) @ m["w"] + m["b"])
    return gg.mean(gg.sparse_softmax_cross_entropy(h @ m["out"], y))


def train(make, alone=False, traced=False, weighted=False, scaled=False, steps=10, **options):
    """Weights after some steps, of one process on whole batches or of all ranks on their parts."""
    m = model()
    if "shard" in options:
        del m["unused"]
    variables = list(m.values())
    optimizer = make()
    if scaled:
        optimizer = gg.optim.LossScaleOptimizer(optimizer)
    if not alone:
        optimizer = D.Optimizer(optimizer, variables, bucket_bytes=700, **options)

    def step(x, y, n):
        with gg.GradientTape() as tape:
            loss = loss_of(m, x, y)
            target = optimizer.scale_loss(loss) if scaled else loss
        pairs = [
            p
            for p in zip(tape.gradient(target, variables), variables, strict=True)
            if p[0] is not None
        ]
        optimizer.apply_gradients(pairs, **({"weight": n} if weighted and not alone else {}))
        return loss

    call, rng = gg.function(step) if traced else step, np.random.default_rng(5)
    for k in range(steps):
        batch = rng.integers(0, 20, size=(2, 12 + (k if weighted else 0)))
        if not alone:
            batch = batch[:, slice(*parts(batch.shape[1]))]
        n = gg.constant(float(batch.shape[1]), "float64") if traced else batch.shape[1]
        call(gg.constant(batch[0]), gg.constant(batch[1]), n)
    return [v.numpy() for v in variables]


def like_one_process(make, traced=False, **how):
    one = train(make, alone=True, **how)  # which ignores options of distributed.Optimizer
    before = W.collectives
    ranks = train(make, traced=traced, **how)
    assert W.collectives > before or W.size == 1
    assert max(np.abs(a - b).max() for a, b in zip(one, ranks, strict=True)) < 1e-10
    assert len(set(W.gather(zlib.crc32(b"".join(a.tobytes() for a in ranks))))) == 1


def adam(**options):
    return lambda: gg.optim.Adam(1e-2, global_clipnorm=0.5, **options)
