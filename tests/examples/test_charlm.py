"""The charlm example: it learns, writes with a cache as without, and survives kills."""

import argparse
import itertools
import random
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

import gpugrad as gg
from gpugrad import checkpoint
from gpugrad.examples import charlm

SMALL = [
    *("--device", "cpu", "--quiet", "--width", "16", "--layers", "2", "--heads", "2"),
    *("--length", "16", "--batch-size", "8", "--characters", "4000", "--warm-up", "5"),
    *("--write", "20", "--learning-rate", "0.01"),
]


def run(output, *options):
    return charlm.main([*SMALL, "--output", str(output), *map(str, options)])


def last_checkpoint(output):
    return checkpoint.load(max((output / "checkpoints").iterdir()))[0]


def bits_per_character(text):
    return float(text.rpartition("Validation loss ")[2].split()[0])


@pytest.mark.parametrize(
    "options",
    [(), *(pytest.param(options, marks=pytest.mark.slow) for options in (
        ("--precision", "bfloat16"), ("--precision", "float16", "--accumulate", 2)))],
    ids=["float32", "bfloat16", "float16, accumulated"],
)  # fmt: skip
def test_a_short_run_learns_and_writes(options, tmp_path, capsys):
    assert run(tmp_path, "--epochs", 3, *options) == 0
    output = capsys.readouterr().out
    assert "\nThe " in output
    assert bits_per_character(output) < 5.5  # 8 without training, 4.6 from frequencies alone
    assert (tmp_path / "charlm.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_whole_run_needs_less_than_2_6_bits_per_character(tmp_path, capsys):
    assert charlm.main(["--device", "cpu", "--quiet", "--output", str(tmp_path)]) == 0
    assert bits_per_character(capsys.readouterr().out) < 2.6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--heads", 3), "heads=3 must divide width=16"),
        (("--characters", 10), "Windows: tokens must have"),
        (("--batch-size", 5000), "fewer than batch_size=5000"),
    ],
)
def test_sizes_that_do_not_fit_are_a_clear_error(options, words, tmp_path, capsys):
    assert run(tmp_path, *options) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_caches_give_the_logits_of_the_whole_text(rng):
    model = charlm.GPT(16, 2, 2, gg.random.Generator(0))
    tokens = rng.integers(0, 256, (1, 9)).astype(np.int32)
    whole = model(tokens).numpy()
    caches = [block.attention.new_cache(1, 9) for block in model.blocks]
    parts = []
    for part in (tokens[:, :4], *np.split(tokens[:, 4:], 5, axis=1)):
        logits, caches = model(part, caches)
        parts.append(logits.numpy())
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, 1e-4, 1e-5)


def test_generated_text_is_the_likeliest_at_a_low_temperature():
    model = charlm.GPT(16, 1, 2, gg.random.Generator(0))
    model.head.kernel.assign(model.head.kernel * 10)
    tokens = list(b"ab")
    for _ in range(5):
        tokens.append(model(np.array([tokens], np.int32)).numpy()[0, -1].argmax().item())
    written = charlm.generate(model, "ab", 5, window=8, temperature=1e-6, seed=0)
    assert written == bytes(tokens).decode(errors="replace")


def test_text_longer_than_the_window_is_written_from_its_last_half():
    model = charlm.GPT(16, 1, 2, gg.random.Generator(0))
    model.head.kernel.assign(model.head.kernel * 10)
    tokens = list(b"abcd")
    for start in (2, 2, 2, 5):  # the caches hold 4 tokens, and are filled again with 2
        tokens.append(model(np.array([tokens[start:]], np.int32)).numpy()[0, -1].argmax().item())
    written = charlm.generate(model, "abcd", 4, window=4, temperature=1e-6, seed=0)
    assert written == bytes(tokens).decode(errors="replace")


def test_surprise_is_that_of_the_characters_after_the_first_half_window(rng):
    model = charlm.GPT(16, 1, 2, gg.random.Generator(0))
    text = rng.integers(32, 127, 33).astype(np.uint8)
    values = charlm.surprise(model, text, 8)
    assert len(values) == 28
    for k in (4, 7, 8, 31):
        context = text[(k - 4) // 4 * 4 : k].astype(np.int32)
        p = gg.softmax(model(context[None])[0, -1]).numpy()
        np.testing.assert_allclose(values[k - 4], -np.log2(p[text[k]]), 1e-4)


def test_biases_and_norms_do_not_decay():
    model = charlm.GPT(8, 1, 2, gg.random.Generator(0))
    args = argparse.Namespace(warm_up=1, learning_rate=0.1, accumulate=1, precision="float32")
    optimizer = charlm.make_optimizer(args, model, 10)
    variables = model.trainable_variables
    before = [v.numpy().copy() for v in variables]
    for _ in range(2):  # the first step of the warm-up has the learning rate 0
        optimizer.apply_gradients([(gg.zeros_like(v), v) for v in variables])
    for v, old in zip(variables, before, strict=True):
        np.testing.assert_allclose(v.numpy(), old * (0.99 if v.ndim == 2 else 1), 1e-5)


def assert_same_checkpoints(a, b):
    whole, resumed = last_checkpoint(a), last_checkpoint(b)
    assert whole.keys() == resumed.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], resumed[name], err_msg=name)


def start(output):
    options = ["--epochs", "20", "--save-every", "3", "--output", str(output)]
    if (output / "settings.json").exists():
        options.append("--resume")
    program = [sys.executable, "-m", "gpugrad.examples.charlm", *SMALL, *options]
    return subprocess.Popen(program, stdout=subprocess.DEVNULL)


def last_step(output):
    return max((path.stem for path in (output / "checkpoints").glob("*.safetensors")), default="")


def kill_after_progress(output, seconds):
    """Start, and kill some time after the next checkpoint; returns whether it was still running."""
    before, process = last_step(output), start(output)
    while last_step(output) == before and process.poll() is None:
        time.sleep(0.01)
    time.sleep(seconds)
    was_running = process.poll() is None
    process.kill()
    process.wait()
    return was_running


@pytest.mark.slow
def test_a_run_that_is_killed_at_random_moments_ends_as_one_that_is_not(tmp_path):
    assert start(tmp_path / "whole").wait() == 0
    moments = random.Random(0)
    for _ in range(6):
        assert kill_after_progress(tmp_path / "killed", moments.uniform(0, 0.2))
    assert start(tmp_path / "killed").wait() == 0
    assert_same_checkpoints(tmp_path / "whole", tmp_path / "killed")


def torch_loss(torch, w, tokens, targets, heads):
    """The loss of the same model with weights `w` by path, written with torch alone."""
    f = torch.nn.functional

    def dense(x, name):
        return x @ w[f"{name}.kernel"] + w[f"{name}.bias"]

    def norm(x, name):
        return f.rms_norm(x, x.shape[-1:], w[f"{name}.weight"])

    def rotary(x):
        half = x.shape[-1] // 2
        angles = torch.arange(x.shape[-2])[:, None] * 10_000.0 ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(x, name):
        parts = dense(x, f"{name}.in_proj").chunk(3, -1)
        q, k, v = (p.unflatten(-1, (heads, -1)).transpose(1, 2) for p in parts)
        y = f.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)
        return dense(y.transpose(1, 2).flatten(2), f"{name}.out_proj")

    x = w["embedding.weight"][tokens]
    for b in sorted({name.rpartition(".norm1")[0] for name in w if "norm1" in name}):
        x = x + attention(norm(x, f"{b}.norm1"), f"{b}.attention")
        x = x + dense(f.gelu(dense(norm(x, f"{b}.norm2"), f"{b}.hidden")), f"{b}.out")
    logits = dense(norm(x, "norm"), "head")
    return f.cross_entropy(logits.flatten(0, 1), targets.flatten())


def torch_losses(torch, weights, batches, rate):
    w = {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
    matrices = [v for v in w.values() if v.ndim == 2]
    groups = [
        {"params": matrices, "weight_decay": 0.1},
        {"params": [v for v in w.values() if v.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses = []
    for tokens, targets in batches:
        loss = torch_loss(torch, w, *(torch.tensor(a).long() for a in (tokens, targets)), 2)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.peers
def test_eager_traced_and_torch_have_one_loss_curve():
    torch = pytest.importorskip("torch")
    args = argparse.Namespace(warm_up=10, learning_rate=0.01, accumulate=1, precision="float32")
    windows = gg.data.Windows(charlm.load_text()[0][:20_000], 32)
    loader = gg.data.DataLoader(windows, 8, shuffle=True, drop_last=True)
    batches = list(itertools.islice(loader, 50))
    assert len(batches) == 50

    def losses(wrapped):
        model = charlm.GPT(32, 2, 2, gg.random.Generator(0))
        optimizer = charlm.make_optimizer(args, model, 50)
        step = wrapped(charlm.make_step(model, optimizer, gg.optim.EMA(model)))
        weights = {k: v.numpy().copy() for k, v in model.state().items()}
        return [step(*map(gg.constant, b)).item() for b in batches], weights

    with gg.device("cpu"):
        eager, weights = losses(lambda f: f)
        traced = losses(gg.function)[0]
    rate = gg.optim.schedules.warmup(10, then=gg.optim.schedules.cosine(0.01, 40))
    desired = torch_losses(torch, weights, batches, rate)
    assert desired[-1] < desired[0] - 2
    np.testing.assert_allclose(eager, desired, rtol=0, atol=1e-4)
    np.testing.assert_allclose(traced, desired, rtol=0, atol=1e-4)
