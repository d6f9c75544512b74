"""Several ranks on this machine: by MPI on CPUs, and by NCCL on made-up GPUs."""

import ast
import json
import os
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from faults import MPIEXEC, TIMEOUT, WORDS, fail, run

import gpugrad as gg
from gpugrad.core.ranks import ranks as ranks_of_process
from gpugrad.testing.cuda.driver import place

HERE = Path(__file__).parent
CHECKS = [
    node.name
    for file in sorted(HERE.glob("checks_*.py"))
    if "charlm" not in file.name
    for node in ast.parse(file.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]
# records are `ci/on_device`'s on one GPU, which has no second pass with masked products either
ON_GPUS = [c for c in CHECKS if "records" not in c and "masked" not in c]
LAUNCHED = {"RANK": "1", "WORLD_SIZE": "2"}
NO_MPI = "sys.modules['mpi4py'] = None; D.init()"
NO_LIBRARY = (  # as mpi4py does where no libmpi.so is found
    "def raises(name): raise RuntimeError('cannot load MPI library')\n"
    "sys.modules['mpi4py'] = made = type(sys)('mpi4py'); made.__getattr__ = raises; D.init()"
)
needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="needs gpugrad[mpi]")


def needs_driver(test):
    return pytest.mark.device(
        pytest.mark.skipif(bool(place.unavailable()), reason=place.unavailable())(test)
    )


def ranks(n, *names):
    return [MPIEXEC, "-n", n, sys.executable, HERE / "ranks.py", *names]


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What failed in one run of all checks on a number of ranks."""
    done = {}

    def of(n, on_gpus=False):
        if (n, on_gpus) not in done:
            path = tmp_path_factory.mktemp("ranks") / "results.json"
            commands = [ranks(n, path, *CHECKS)]
            if on_gpus:
                one = [sys.executable, HERE / "ranks.py", "--gpu", free_address()]
                commands = [[*one, rank, n, path, *ON_GPUS] for rank in range(n)]
            texts = run(commands)
            done[n, on_gpus] = json.loads(path.read_text()) if path.exists() else texts
        assert type(done[n, on_gpus]) is dict, done[n, on_gpus]
        return done[n, on_gpus]

    return of


@needs_mpi
@pytest.mark.parametrize("check", CHECKS)
def test_two_ranks_by_mpi(results, check):
    assert results(2)[check] is None, results(2)[check]


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3, 4])
def test_other_numbers_of_ranks_by_mpi(results, n):
    failed = {name: error for name, error in results(n).items() if error}
    assert not failed, failed


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "check", "steps"),
    [
        (1, "check_charlm_is_that_of_one_process", 10),
        (2, "check_charlm_is_that_of_one_process", 50),
        (2, "check_charlm_in_float32_has_the_losses_of_one_process", 50),
        (3, "check_charlm_is_that_of_one_process", 10),
        (4, "check_charlm_is_that_of_one_process", 10),
        (2, "check_random_faults_of_data_on_one_rank_keep_all_in_step", 200),
        (3, "check_random_faults_of_data_on_one_rank_keep_all_in_step", 200),
    ],
)
def test_many_steps_over_ranks(tmp_path, n, check, steps):
    texts = run([ranks(n, tmp_path / "results", check, "--steps", steps)])
    assert json.loads((tmp_path / "results").read_text()) == {check: None}, texts


@needs_mpi
@pytest.mark.slow
def test_random_faults_of_random_ranks_end_all_in_time():
    """50 faults take four minutes: ``python tests/distributed/faults.py``."""
    ((text, status),) = run([[sys.executable, HERE / "faults.py", "--faults", 7, "--slack", 8]])
    assert status == 0, text


@needs_mpi
@pytest.mark.slow
def test_checkpoints_go_on_at_other_numbers_of_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUGRAD_CHECKPOINTS", str(tmp_path))
    for n in (2, 3, 1):
        check = "check_checkpoints_of_shards_load_at_any_number_of_ranks"
        texts = run([ranks(n, tmp_path / f"{n}.json", check)])
        assert json.loads((tmp_path / f"{n}.json").read_text()) == {check: None}, texts


@needs_driver
@pytest.mark.parametrize("check", ON_GPUS)
def test_two_ranks_by_nccl_on_made_up_gpus(results, check):
    error = results(2, on_gpus=True)[check]
    assert error is None, error


@needs_mpi
@pytest.mark.parametrize("fault", WORDS)
@pytest.mark.thin(3)
def test_a_fault_of_one_rank_ends_all_and_is_named(fault):
    assert fail(fault, 3, 2, 5) < TIMEOUT + 8  # two looks of the watchdog, on a busy machine


def test_the_gradient_of_a_constant_cotangent_is_traced():
    """A collective of a constant is a step of the trace, so a rule may turn NumPy into steps."""

    @gg.function
    def slope(x):
        with gg.GradientTape() as tape:
            tape.watch(x)
            y = gg.distributed.all_gather(gg.sqrt(x))
        return tape.gradient(y, x)

    assert slope(gg.constant([0.25, 1.0, 4.0])).tolist() == [1.0, 0.5, 0.25]
    assert slope(gg.constant([0.0, 1.0, 4.0])).tolist() == [np.inf, 0.5, 0.25]


LOOPS = {
    "scan": lambda f, x: gg.scan(lambda y, _: (f(y), y), x, None, length=2)[0],
    "cond": lambda f, x: gg.cond(gg.sum(x) > 0, lambda y: f(f(y)), lambda y: y, x),
    "while_loop": lambda f, x: gg.while_loop(
        lambda c: c[1] < 2, lambda c: (f(c[0]), c[1] + 1), (x, gg.constant(0))
    )[0],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_gradients_flow_through_collectives_in_traced_loops_and_branches(loop):
    """A body or branch runs the op, not its replay, of which a tape knows nothing."""

    def slope(x):
        return gg.grad(
            lambda t: gg.sum(LOOPS[loop](lambda y: gg.distributed.all_gather(y * y), t))
        )(x)

    x = gg.constant([2.0, 0.5])
    traced = gg.function(slope)
    assert slope(x).tolist() == traced(x).tolist() == [32.0, 0.5]  # 4 x**3


def test_a_step_of_one_process_asks_once_for_its_ranks(monkeypatch):
    """Without `init` a step costs one look at their number, a replay none."""
    asked = []

    class Counted(type(ranks_of_process)):
        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

    v, optimizer = gg.Variable(np.ones((4, 4))), gg.optim.Adam(0.1, global_clipnorm=1.0)

    def step(x):
        with gg.GradientTape() as tape:
            loss = gg.mean(gg.tanh(x @ v) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    x, traced = gg.ones((4, 4), dtype="float64"), gg.function(step)
    traced(x)
    monkeypatch.setattr(ranks_of_process, "__class__", Counted)
    step(x)
    assert asked == ["size"]
    traced(x)
    assert asked == ["size"]


def test_one_process_needs_no_launcher_and_no_library():
    code = (
        "import sys, numpy as np, gpugrad as gg\n"
        "world = gg.distributed.init()\n"
        "v = gg.Variable(np.ones(3))\n"
        "optimizer = gg.distributed.Optimizer(gg.optim.SGD(0.5), [v])\n"
        "optimizer.apply_gradients([(gg.ones(3, dtype='float64'), v)], weight=7)\n"
        "print(world, v.numpy(), 'mpi4py' in sys.modules)"
    )
    ((text, status),) = run([[sys.executable, "-c", code]])
    assert (text.strip(), status) == ("World(rank 0 of 1, one process) [0.5 0.5 0.5] False", 0)


@pytest.mark.parametrize(
    ("variables", "call", "words"),
    [
        (LAUNCHED, "D.rank()", r"torchrun has started 2 processes.*init"),
        ({}, "D.init(rank=2, size=2)", "rank 2 of 2"),
        ({}, "D.init(rank=2)", "together"),
        ({}, "D.init(timeout=0)", "timeout"),
        ({}, "D.init(rank=0, size=2, address='nowhere')", "address='nowhere' must be 'host:port'"),
        ({}, "D.init(); D.init()", r"was called before: World\(rank 0 of 1, one process\)"),
        (LAUNCHED, NO_MPI, r"mpi4py does not import.*gpugrad\[mpi\].*mpiexec"),
        (LAUNCHED, NO_LIBRARY, r"mpi4py does not import \(cannot load MPI.*gpugrad\[mpi\]"),
        (LAUNCHED, "D.init()", "mpi4py does not import|by torchrun, but rank 0 of 1 of MPI"),
    ],
)
@pytest.mark.thin(3)
def test_a_wrong_start_says_what_to_do(variables, call, words):
    code = f"import sys, gpugrad as gg; D = gg.distributed\n{call}"
    before = {k: os.environ.pop(k) for k in list(os.environ) if k.startswith(("PMI", "OMPI"))}
    os.environ.update(variables)
    try:
        ((text, status),) = run([[sys.executable, "-c", code]])
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
    assert status == 1
    assert re.search(words, text), text


def on_made_up_gpus(code, *args):
    """What two processes with made-up GPUs print that join after each other as ranks 0 and 1."""
    begin = (
        "import os, sys, time; from gpugrad.testing.cuda.driver import place\n"
        "os.environ['GPUGRAD_DEVICE'] = 'cuda:0'; place.activate()\n"
        "import numpy as np, gpugrad as gg; D, rank = gg.distributed, int(sys.argv[1])\n"
    )
    commands = [[sys.executable, "-c", begin + code, rank, *args] for rank in range(2)]
    return run(commands, 100)


@needs_driver
def test_a_hang_inside_a_cuda_graph_is_named():
    code = (
        "D.init(2, rank=rank, size=2, local_rank=rank, address=sys.argv[2])\n"
        "v = gg.Variable(np.ones(3)); optimizer = D.Optimizer(gg.optim.SGD(0.1), [v])\n"
        "step = gg.function(lambda x: optimizer.apply_gradients([(x * v, v)]))\n"
        "for k in range(9):\n"
        "    time.sleep(8 if k == 8 and rank else 0); step(gg.ones(3, dtype='float64'))\n"
        "print('not reached', v.numpy())"
    )
    texts = on_made_up_gpus(code, free_address())
    words = "a CUDA graph of 2, is not done after 2 s: rank 1 has not begun it"
    assert words in texts[0][0], texts
    assert [status for _, status in texts] != [0, 0]


@needs_driver
@pytest.mark.parametrize(
    ("size", "local_rank", "words"),
    [
        (9, 8, "rank [01] is number 8 of its host, which has 2 GPUs. Start as many"),
        (2, 0, "rank [01] of 2 cannot join NCCL at 127.*invalid usage.*needs a GPU of its own"),
    ],
)
def test_ranks_without_a_gpu_of_their_own_are_refused(size, local_rank, words):
    code = f"D.init(rank=rank, size={size}, local_rank={local_rank}, address=sys.argv[2])"
    for text, status in on_made_up_gpus(code, free_address()):
        assert status == 1
        assert re.search(words, text), text


def test_examples_start_ranks_by_ray_and_dask():
    """Of stand-ins that call functions in this process, which is the only rank."""
    code = (
        "import sys; from types import SimpleNamespace as N\n"
        "from gpugrad.examples import launch\n"
        "assert launch.main(['ray']) == 2, 'is Ray installed?'\n"
        "class Call:\n"
        "    def __init__(self, f): self.remote = f\n"
        "def remote(num_gpus): return lambda kind: N(remote=lambda: N(call=Call(kind().call)))\n"
        "sys.modules['ray'] = N(remote=remote, get=lambda x: x)\n"
        "assert launch.main(['ray', '--ranks', '1']) == 0\n"
        "launch.joined = lambda train, *about: (train(), about[:2])\n"
        "client = N(scheduler_info=lambda **_: {'workers': {'a': 0}}, gather=lambda x: x,\n"
        "          submit=lambda f, *a, **_: N(result=f) if not a else f(*a))\n"
        "print(launch.by_dask(lambda: 7, client))"
    )
    ((text, status),) = run([[sys.executable, "-c", code]])
    assert status == 0, text
    assert "pip install ray" in text
    assert re.search(r"rank 0 of 1: loss 0\.\d+\n\[\(7, \(0, 1\)\)\]", text), text


def test_optimizer_refuses_what_it_cannot_step():
    D = gg.distributed
    v = gg.Variable(np.ones(2))
    optimizer = D.Optimizer(gg.optim.SGD(0.1), [v])
    g, other = gg.ones(2, dtype="float64"), gg.Variable(np.ones(2), name="other")
    for error, words, call in (
        (ValueError, "distributed already", lambda: D.Optimizer(optimizer, [v])),
        (ValueError, "no trainable", lambda: D.Optimizer(gg.optim.SGD(0.1), [])),
        (ValueError, "compress", lambda: D.Optimizer(gg.optim.SGD(0.1), [v], compress="int8")),
        (ValueError, "'other' is not", lambda: optimizer.apply_gradients([(g, other)])),
        (ValueError, "repeated", lambda: optimizer.apply_gradients([(g, v), (g, v)])),
        (ValueError, "weight", lambda: optimizer.apply_gradients([(g, v)], weight=-1)),
        (
            ValueError,
            "shard= goes without",
            lambda: D.Optimizer(gg.optim.SGD(0.1, accumulate=2), [v], shard="parameters"),
        ),
        (
            ValueError,
            "clipnorm",
            lambda: D.Optimizer(gg.optim.SGD(0.1, clipnorm=1.0), [v], shard="optimizer"),
        ),
        (TypeError, "Module", lambda: D.convert(v)),
    ):
        with pytest.raises(error, match=words):
            call()
    assert (v.numpy() == 1).all()
    assert optimizer.iterations == 0
