"""Lowered programs of gg.function: their text, HTML page, graph, source and golden files."""

import gc
import linecache
import os
import re
import sys
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from comparing import near, same
from conftest import REAL_GPU  # noqa: F401  # activates the driver where this file is a script
from needs import needs_thresholds
from steps import loss_and_gradient, training_step
from taping import taped

import gpugrad as gg
from gpugrad.core.devices import gpu_count
from gpugrad.errors import ArgumentError
from gpugrad.function.cpu.source import compile_function
from gpugrad.kernels.libraries import cublaslt
from gpugrad.trace.array import current_trace

RNG = np.random.default_rng(0)
X = gg.constant(RNG.normal(size=(4, 3)))
Y = gg.constant(RNG.normal(size=(4, 3)))


def test_clear_drops_traced_programs():
    f = gg.function(loss_and_gradient)
    f(X, Y)
    f.clear()
    f(X, Y)
    assert f.cache_info().traces == 2


def training():
    """A step with every kind of state: Variables, Adam's averages, random numbers."""
    v = gg.Variable(np.ones((4, 3)), name="v")
    generator, optimizer = gg.random.Generator(1), gg.optim.Adam(0.1)

    @gg.function
    def step(x):
        with gg.GradientTape() as tape:
            noise = generator.split(1)[0].normal(x.shape, dtype=x.dtype)
            y = gg.sum(v * (x + noise + generator.uniform(x.shape, dtype=x.dtype)))
        optimizer.apply_gradients([(tape.gradient(y, v), v)])
        v.assign(v * 0.5)
        return y

    return step, v, generator, optimizer


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize("steps", [0, 2])
def test_lowering_before_a_call_changes_nothing(steps):
    (one, v, g, adam), (two, w, h, _) = training(), training()
    for k in range(steps):
        one(X * k), two(X * k)
    one.clear()
    before = v.numpy(), g.state, {k: t.numpy() for k, t in adam.state_dict().items()}
    text = str(one.lower(X))
    after = v.numpy(), g.state, {k: t.numpy() for k, t in adam.state_dict().items()}
    assert one.cache_info().hits == max(steps - 1, 0)
    np.testing.assert_equal(after, before)
    for k in range(3):
        same(one(X + k), two(X + k))
        same(v, w)
    assert g.state == h.state
    assert text == str(one.lower(X))


def test_lowering_under_a_tape_is_not_recorded():
    f = gg.function(lambda x: gg.sum(x * 2))
    tape, text = taped(lambda X: str(f.lower(X)), X)
    assert not tape.watched_variables()
    assert text == str(f.lower(X))


def test_lowering_an_effect_that_cannot_be_undone_raises():
    @gg.function
    def f(x):
        current_trace().effect("launch the rocket", lambda: [])
        return x * 2

    with pytest.raises(ArgumentError, match="its effect 'launch the rocket' cannot be undone"):
        f.lower(X)
    f(X)
    assert "launch the rocket" in str(f.lower(X))


def test_equivalent_transposes_are_one_step():
    w = gg.Variable(RNG.normal(size=(5, 3)))

    def f(x):
        y = x @ w.T + x @ gg.swapaxes(w, 0, 1) + x @ gg.permute_dims(w, (1, 0)) + x @ w.mT
        two = gg.stack([x, y[:, :3]])
        return y, gg.transpose(gg.swapaxes(y, -1, -2)), gg.permute_dims(two, (1, 0, 2))

    traced = gg.function(f)
    for _ in range(2):
        for a, b in zip(traced(X), f(X), strict=True):
            near(a, b)
    names = re.findall(r"= (\w+)\(", str(traced.lower(X)))
    assert names.count("matmul") == 1
    assert names.count("permute_dims") == 1
    assert "swapaxes" not in names
    assert names.count("matrix_transpose") == 1  # of w; two of y cancel


def test_axes_that_move_there_and_back_are_no_step():
    traced = gg.function(lambda x: gg.exp(gg.moveaxis(gg.permute_dims(x, (1, 2, 0)), 2, 0)))
    x = gg.asarray(RNG.normal(size=(2, 3, 4)))
    near(traced(x), gg.exp(x))
    assert re.findall(r"= (\w+)\(", str(traced.lower(x))) == ["exp"]


class Reader(HTMLParser):
    """Asserts that tags are closed in order; counts them, and keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.count, self.text, self.arcs = [], Counter(), [], []

    def handle_starttag(self, tag, attrs):
        self.count[tag] += 1
        assert not {"src", "href"} & dict(attrs).keys()  # nothing is loaded
        if tag == "input":
            self.count["checked"] += "checked" in dict(attrs)
        if tag == "path":
            self.arcs.append((int(dict(attrs)["data-from"]), int(dict(attrs)["data-to"])))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.usefixtures("numpy_replay")
def test_the_page_has_a_row_for_each_step_with_its_time_and_bytes(tmp_path):
    step, v, generator, _ = training()
    before = v.numpy(), generator.state
    big = gg.function(lambda x, y: (gg.sin(x) * 2 + y, step(X)), passes=None)
    lowered = big.lower(gg.ones((700, 700)), gg.constant(2.0))
    lowered.save_html(tmp_path / "page.html")
    reader = Reader()
    reader.feed((tmp_path / "page.html").read_text())
    assert not reader.open
    steps = lowered.program.steps
    parts = [part for s in steps for part in s.parts]
    assert len(parts) == 3
    rows, modules = len(steps) + len(parts), 1
    assert reader.count["tr"] == (1 + rows) + (1 + len(steps)) + (modules + len(steps))
    assert all(start < end < rows for start, end in reader.arcs)
    assert len(reader.arcs) > len(parts)
    text = "".join(reader.text)
    for line in str(lowered).splitlines()[4:]:
        assert "<-" in line or "return" in line or line.strip() in text
    # split, two draws, the check and Adam: measuring must not draw or update
    assert text.count("not measured") == 5 * 3  # in three views
    np.testing.assert_equal((v.numpy(), generator.state), before)
    assert "not measured" in lowered.html(times=False)
    assert " us" not in lowered.html(times=False)


def test_the_page_folds_by_module_sorts_by_time_and_names_lines():
    model = gg.nn.Sequential(gg.nn.Dense(3, 4, activation=gg.tanh), gg.nn.Dense(4, 1))

    @gg.function(passes=())
    def f(x):
        with gg.GradientTape() as tape:
            loss = gg.sum(model(x))  # this line
        return tape.gradient(loss, model.trainable_variables)

    lowered = f.lower(gg.ones((5, 3)))
    page, reader = lowered.html(), Reader()
    reader.feed(page)
    assert (reader.count["details"], reader.count["input"], reader.count["checked"]) == (4, 3, 1)
    (table,) = re.findall(r'class="view time-view">(.*?)</table>', page, re.DOTALL)
    times = [float(t.replace(",", "")) for t in re.findall(r"([\d,.]+) us<", table)]
    assert times == sorted(times, reverse=True)
    checks = [step for step in lowered.program.steps if step.op is None]
    assert len(times) == len(lowered.program.steps) - len(checks)
    here = f.__wrapped__.__code__.co_firstlineno + 3
    places = {(s.name, s.where.layer, s.backward) for s in lowered.program.steps}
    assert {("matmul", "layers.0", False), ("matmul", "layers.0", True)} <= places
    places = {s.where.line for s in lowered.program.steps if s.op is not None}
    assert places == {f"test_lowered.py:{here}"}


class Block(gg.nn.Module):
    def __init__(self):
        self.attention = gg.nn.MultiHeadAttention(4, 2)
        self.wrapped = [gg.nn.Dense(4, 4)]

    def forward(self, x):
        return self.wrapped[0](gg.tanh(self.attention(x)))


def test_the_page_nests_modules_by_path_and_sorts_each_level_by_time():
    model = gg.nn.Sequential(Block(), Block())
    lowered = gg.function(lambda x: gg.sum(model(x)), passes=()).lower(gg.ones((1, 3, 4)))
    page = lowered.html()
    page = page[page.index('"view modules"') : page.index('"view order')]
    above, folds = [], {}
    parts = r"<details>|</details>|<strong>(.*?)</strong> ([\d,.]+) us, \d+ %, (\d+) step"
    for part in re.finditer(parts, page):
        if part[1] is not None:
            above[-1] = part[1]
            folds[tuple(above)] = float(part[2].replace(",", "")), int(part[3])
        elif part[0] == "<details>":
            above.append(None)
        else:
            above.pop()
    blocks = [("layers",), ("layers", "layers.0"), ("layers", "layers.1")]
    names = ["(its own steps)", "attention", "wrapped.0"]
    within = {
        (*block, name if name[0] == "(" else f"{block[-1]}.{name}")
        for block in blocks[1:]
        for name in names
    }
    assert {("(in no module)",), *blocks} | within < folds.keys()
    assert ("layers", "layers.0", "layers.0.attention", "layers.0.attention.in_proj") in folds
    top = [value for path, value in folds.items() if len(path) == 1]
    assert sum(n for _, n in top) == len(lowered.program.steps)
    for path in (p for p in folds if any(q[:-1] == p for q in folds)):
        inside = [value for q, value in folds.items() if q[:-1] == path]
        assert sum(n for _, n in inside) == folds[path][1]
        assert sum(t for t, _ in inside) == pytest.approx(folds[path][0], abs=1)
        assert inside == sorted(inside, key=lambda value: -value[0])


def test_times_are_measured_step_by_step():
    f = gg.function(lambda x: (x @ x, gg.sum(x[0, :2])))
    *fast, slow = sorted(f.lower(gg.ones((400, 400))).times())
    assert slow > 10 * max(fast) > 0


def test_the_graph_has_a_node_for_each_step_and_an_edge_for_each_value_read():
    f = gg.function(lambda x, y: gg.tanh(x * y) @ x + y)
    text = f.lower(gg.ones((600, 600)), gg.ones(600)).dot()
    nodes = set(re.findall(r"^ +(\w+) \[label=", text, re.M))
    edges = re.findall(r"^ +(\w+) -> (\w+) ", text, re.M)
    assert {n for edge in edges for n in edge} == nodes
    assert sorted(n[0] for n in nodes) == ["i", "i", "o", "s", "s", "s", "s"]
    assert len(edges) == 2 + 1 + 2 + 2 + 1
    assert text.count("{") == text.count("}")
    assert "subgraph cluster_0" in text


def test_names_with_quotes_and_brackets_are_escaped():
    v = gg.Variable([1.0], name='<b>"\\v"</b>')
    lowered = gg.function(lambda x: x * v).lower(gg.ones(1))
    assert "<b>" not in lowered.html()
    assert r'label="<b>\"\\v\"</b>\nfloat32 [1]"' in lowered.dot()


@pytest.mark.usefixtures("numpy_replay")
@needs_thresholds
def test_the_source_of_a_replay_uses_the_names_of_the_printed_program():
    w, b = gg.Variable(np.ones((3, 3)), name="dense/kernel"), gg.Variable(np.ones(3), name="b0")
    f = gg.function(lambda x: gg.sum(gg.relu(gg.tanh(x @ w * 2.5) + b), axis=1))
    lowered = f.lower(X)
    assert "t2 float64[4, 3] = tanh(t1)" in str(lowered)
    source = lowered._replay.source
    assert "dense_kernel, b0_2, = reads" in source  # b0 is a buffer
    assert "t1 = multiply(t0, 2.5, b0)" in source
    assert "t2 = tanh(t1, b0)" in source
    assert "t3 = add(t2, b0_2, b0)" in source
    assert "t5 = sum(t4)" in source
    near(f(X), np.maximum(np.tanh(X.numpy() @ np.ones((3, 3)) * 2.5) + 1, 0).sum(1))


@pytest.mark.parametrize(
    "name", ["", "in0", "t1", "b0", "sum", "class", "sum_2", "2 x#1", "arrays"]
)
def test_any_variable_name_becomes_a_unique_identifier(name):
    v, w = gg.Variable([1.0, 2.0], name=name), gg.Variable([3.0, 4.0], name=name)
    f = gg.function(lambda x: gg.sum(gg.sum(x * v + w, axis=0) * v))
    for _ in range(2):
        same(f(gg.ones((1, 2))), 4 + 12)


@pytest.mark.usefixtures("numpy_replay")
def test_a_traceback_shows_the_line_of_the_replay_and_of_a_group(monkeypatch):
    f = gg.function(lambda x, i: gg.take(gg.tanh(x), i, axis=0))
    f(X, gg.constant([0]))
    f(X, gg.constant([0]))
    with pytest.raises(gg.errors.IndexOutOfBoundsError) as caught:
        f(X, gg.constant([9]))
    linecache.checkcache()
    text = "".join(traceback.format_exception(caught.value))
    assert re.search(
        r'File "<gpugrad program \d+>", line \d+, in run\n +t1 = take\(t0, in1\)', text
    )
    g = gg.function(lambda x: gg.sinc(x * 2) + 1)
    g(gg.ones((700, 700)))
    lines = [
        line
        for file in linecache.cache
        if file.startswith("<gpugrad group")
        for line in linecache.getlines(file)
    ]
    assert any("y0 = e0[:n]; multiply(x0, 2" in line for line in lines)


def test_the_source_of_a_dropped_replay_leaves_the_line_cache():
    f = gg.function(lambda x: x + 1)
    f(X)
    file = f.lower(X)._replay._run.__code__.co_filename
    assert linecache.getline(file, 1).startswith("def run(")
    del f
    gc.collect()
    assert file in linecache.cache  # linecache may be in the middle of a loop over its files
    gg.function(lambda x: x + 2)(X)
    assert file not in linecache.cache


def test_threads_compile_and_drop_sources_at_the_same_time():
    def compile_many(_):
        for _ in range(3000):
            compile_function("def run(): pass", "run", {}, "test")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(compile_many, range(4)))
    finally:
        sys.setswitchinterval(before)


def mlp_step():
    """One training step of a small network, with a fused group."""
    g = gg.random.Generator(0)
    model = gg.nn.Sequential(
        gg.nn.Dense(20, 512, gg.tanh, generator=g), gg.nn.Dense(512, 4, generator=g)
    )
    step = training_step(model, gg.optim.Adam(0.01), lambda z, y: gg.mean((z - y) ** 2))
    return step, (gg.ones((512, 20)), gg.ones((512, 4)))


def layer_norm():
    """A layer norm written by hand, and its gradients."""

    def step(x, scale, shift, upstream):
        with gg.GradientTape() as tape:
            tape.watch((x, scale, shift))
            centred = x - gg.mean(x, axis=-1, keepdims=True)
            variance = gg.mean(centred**2, axis=-1, keepdims=True)
            y = centred / gg.sqrt(variance + 1e-5) * scale + shift
        return y, tape.gradient(y, [x, scale, shift], upstream)

    return step, (gg.ones((512, 512)), gg.ones(512), gg.zeros(512), gg.ones((512, 512)))


def cross_entropy():
    """Softmax cross entropy of a linear model, and the gradient of its weights."""

    def step(w, x, labels):
        tape, loss = taped(lambda w: gg.mean(gg.sparse_softmax_cross_entropy(x @ w, labels)), w)
        return loss, tape.gradient(loss, w)

    return step, (gg.ones((32, 10)), gg.ones((64, 32)), gg.zeros(64, dtype=gg.int64))


GOLDEN = Path(__file__).parents[1] / "golden"
STEPS = {make.__name__: make for make in (mlp_step, layer_norm, cross_entropy)}


def lowered_text(name, device):
    with gg.device(device):
        step, args = STEPS[name]()
        return f"{gg.function(step).lower(*args)}\n"


@pytest.mark.usefixtures("numpy_replay")
@pytest.mark.parametrize("name", STEPS)
def test_lowered_text_equals_the_golden_file(name):
    """A change in fusion shows as a change in these files. Rewrite them with
    ``python tests/function/test_lowered.py``.
    """
    assert lowered_text(name, "cpu") == (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.skipif(gpu_count() == 0, reason="needs a CUDA device")
@pytest.mark.skipif(cublaslt.binding() is None, reason="needs nvmath-python")
@pytest.mark.parametrize("name", STEPS)
def test_lowered_text_for_a_gpu_equals_the_golden_file(name):
    assert lowered_text(name, "cuda:0") == (GOLDEN / f"{name}_gpu.txt").read_text()


if __name__ == "__main__":
    os.environ["GPUGRAD_CPU_KERNELS"] = "0"  # as `numpy_replay`
    for name in STEPS:
        (GOLDEN / f"{name}.txt").write_text(lowered_text(name, "cpu"))
        (GOLDEN / f"{name}_gpu.txt").write_text(lowered_text(name, "cuda:0"))
