"""Checkpoints: all parts or none, rotation, and runs that continue bit for bit."""

import contextlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, CheckpointError, NumericsError

train, nn, optim = gg.train, gg.nn, gg.optim
RNG = np.random.default_rng(0)
X = RNG.normal(size=(22, 3)).astype("f4")
Y = RNG.normal(size=(22, 1)).astype("f4")


def parts(seed=0):
    generator = gg.random.Generator(seed)
    model = nn.Sequential(
        nn.Dense(3, 4, gg.tanh, generator=generator), nn.Dropout(0.3), nn.BatchNorm(4),
        nn.Dense(4, 1, generator=generator),
    )  # fmt: skip
    return {
        "model": model,
        "optimizer": optim.Adam(0.05),
        "second": optim.SGD(0.1, momentum=0.9),
        "loader": gg.data.DataLoader(gg.data.Arrays(X, Y), 4, shuffle=True),
        "generator": generator,
        "scale": gg.Variable(2.0),
    }


def values(p):
    arrays = {k: v.numpy() for k, v in p["model"].state().items()}
    names = p["model"].state()
    arrays |= {f"adam/{k}": v.numpy() for k, v in p["optimizer"].state_dict(names).items()}
    arrays |= {f"sgd/{k}": v.numpy() for k, v in p["second"].state_dict(names).items()}
    return arrays | {"scale": p["scale"].numpy()}


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def take_step(p):
    model, variables = p["model"], p["model"].trainable_variables
    p["loader"].load_state(p["loader"].state())  # to go on in the epoch
    x, y = next(iter(p["loader"]))
    for optimizer in (p["optimizer"], p["second"]):
        with gg.GradientTape() as tape, nn.training():
            loss = gg.mse(model(x) * p["scale"], y)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))
    p["scale"].assign_add(p["generator"].uniform(()))


def run(folder, epochs, stop_at=None, error=None, metrics=True):
    """Train with checkpoints every three steps; end at a step by an exception."""
    gg.set_seed(5)
    p = parts()

    class Stop(train.Callback):
        def end_of_step(self, r):
            if r.step == stop_at:
                if error is KeyboardInterrupt:
                    signal.raise_signal(signal.SIGINT)
                else:
                    raise error

    checkpoints = train.Checkpoints(folder, every_steps=3, **p)
    r = train.fit(
        (p["model"], gg.mse), p["loader"], epochs, optimizer=p["optimizer"], progress=False,
        callbacks=[checkpoints, *([Stop()] if stop_at is not None else [])],
    )  # fmt: skip
    return p, r


def test_one_call_saves_and_one_restores_all_parts(tmp_path):
    first = parts()
    for _ in range(3):
        take_step(first)
    train.Checkpoints(tmp_path, **first).save(3, {"score": 0.5})
    take_step(first)
    draws = gg.random.uniform((4,)).numpy()

    second = parts(seed=9)
    assert train.Checkpoints(tmp_path, **second).restore() == {"score": 0.5}
    take_step(second)
    np.testing.assert_array_equal(gg.random.uniform((4,)).numpy(), draws)
    same(values(second), values(first))


def test_the_last_files_are_kept(tmp_path):
    checkpoints = train.Checkpoints(tmp_path / "new", keep=2, v=gg.Variable(1.0))
    assert checkpoints.latest() is None
    assert checkpoints.restore() is None
    for step in (1, 2, 10, 3):
        path = checkpoints.save(step)
        assert path.exists()
    assert sorted(p.name for p in (tmp_path / "new").glob("[!.]*")) == [
        "00000003.safetensors",
        "00000010.safetensors",
    ]
    assert checkpoints.latest().name == "00000010.safetensors"


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    checkpoints = train.Checkpoints(tmp_path, keep=1, v=gg.Variable(1.0))
    others = [
        tmp_path / f"{name}.safetensors"
        for name in ("99999999", "00000000", "\u0661" * 8, "5", "000000077", "best", "99999998")
    ]
    for other in others[:-1]:
        gg.checkpoint.save(other, {"w": gg.ones(1)})
    others[-1].mkdir()
    assert checkpoints.latest() is None
    with pytest.raises(CheckpointError, match=r"99999999\S* was not written by .* start anew"):
        checkpoints.restore()
    for step in (1, 2):
        path = checkpoints.save(step)
    assert checkpoints.latest() == path
    assert sorted(tmp_path.glob("[!.]*")) == sorted([*others, path])
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoints.restore()  # not the one before it, in silence


def test_a_checkpoint_of_other_parts_changes_nothing(tmp_path):
    train.Checkpoints(tmp_path, **parts()).save(1)
    other = parts()
    other["model"] = nn.Dense(3, 1)
    for _ in range(2):
        take_step(other)
    before, draws = values(other), gg.random.default_generator().state
    with pytest.raises(CheckpointError, match=r"does not fit: load_state: missing \['bias'"):
        train.Checkpoints(tmp_path, **other).restore()
    same(values(other), before)
    assert gg.random.default_generator().state == draws
    with pytest.raises(CheckpointError, match=r"has the parts .* expected \['v'\]"):
        train.Checkpoints(tmp_path, v=gg.Variable(1.0)).restore()
    gg.checkpoint.save(tmp_path / "other.safetensors", {"v": np.ones(1)})
    with pytest.raises(CheckpointError, match=r"not written by gg\.train\.Checkpoints"):
        train.Checkpoints(tmp_path, v=gg.Variable(1.0)).restore(tmp_path / "other.safetensors")


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, ValueError])
def test_an_error_of_a_part_s_own_load_changes_nothing(tmp_path, error):
    class Part:
        fails = False

        def state_dict(self):
            return {"n": np.ones(1)}

        def load_state_dict(self, state):
            if self.fails:
                self.fails = False
                raise error

    own, v = Part(), gg.Variable(1.0)
    checkpoints = train.Checkpoints(tmp_path, v=v, own=own)
    checkpoints.save(1)
    v.assign(2.0)
    own.fails = True
    with pytest.raises(error):
        checkpoints.restore()
    assert v.item() == 2.0


def test_an_optimizer_s_state_that_does_not_fit_restores_the_model(tmp_path):
    first, second = parts(), parts(seed=1)
    take_step(first)
    train.Checkpoints(tmp_path, **first).save(1)
    second["optimizer"], second["second"] = second["second"], second["optimizer"]
    before = {k: v.numpy() for k, v in second["model"].state().items()}
    with pytest.raises(CheckpointError, match="does not fit"):
        train.Checkpoints(tmp_path, **second).restore()
    same({k: v.numpy() for k, v in second["model"].state().items()}, before)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_run_that_was_stopped_anywhere_ends_as_one_that_was_not(tmp_path, error):
    desired, whole = run(tmp_path / "whole", 3)
    assert whole.step == 18
    for stop_at in (1, 3, 4, 5, 6, 7, 12, 13, 17, 18):
        folder = tmp_path / str(stop_at)
        if error is KeyboardInterrupt:
            _, r = run(folder, 3, stop_at, error)
            assert r.interrupted
            assert r.step == stop_at
            name = f"{stop_at:08d}.safetensors"
            assert train.Checkpoints(folder, v=gg.Variable(0.0)).latest().name == name
        else:
            with pytest.raises(error):
                run(folder, 3, stop_at, error)
        p, r = run(folder, 3)
        assert (r.step, r.epoch) == (18, 3)
        same(values(p), values(desired))
        for a, b in zip(r.history, whole.history, strict=True):
            assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)


def test_a_second_loader_keeps_its_own_position(tmp_path):
    def run(stop_at=None):
        gg.set_seed(5)
        p = parts()
        valid = gg.data.DataLoader(gg.data.Arrays(X, Y), 16)

        class Stop(train.Callback):
            def end_of_step(self, r):
                if r.step == stop_at:
                    raise ZeroDivisionError

        checkpoints = train.Checkpoints(tmp_path, every_steps=1, **p, valid=valid)
        r = train.fit(
            (p["model"], gg.mse), p["loader"], 2, optimizer=p["optimizer"], validation=valid,
            callbacks=[checkpoints, Stop()], progress=False,
        )  # fmt: skip
        return r, valid.state()

    with pytest.raises(ZeroDivisionError):
        run(stop_at=11)  # at batch 5 of the second epoch; an epoch of validation has 2
    r, position = run()
    assert (r.step, position) == (12, (2, 0))


def test_a_run_after_a_look_at_the_first_batch_resumes_exactly(tmp_path):
    def run(folder, stop_at=None):
        p = parts()
        next(iter(p["loader"]))

        class Stop(train.Callback):
            def end_of_step(self, r):
                if r.step == stop_at:
                    raise ZeroDivisionError

        gg.set_seed(5)
        r = train.fit(
            (p["model"], gg.mse), p["loader"], 2, optimizer=p["optimizer"], progress=False,
            callbacks=[train.Checkpoints(folder, every_steps=1, **p), Stop()],
        )  # fmt: skip
        return r.step, values(p)

    steps, desired = run(tmp_path / "whole")
    assert steps == 12  # the batch that was looked at comes again
    for stop_at in (2, 8):
        with pytest.raises(ZeroDivisionError):
            run(tmp_path / str(stop_at), stop_at)
        steps, resumed = run(tmp_path / str(stop_at))
        assert steps == 12
        same(resumed, desired)


def test_ctrl_c_before_the_first_batch_of_an_epoch_keeps_the_epoch(tmp_path):
    class Data(gg.data.Arrays):
        taken = 0

        def take(self, indices):
            self.taken += 1
            if self.stop and self.taken == 4:  # the first batch of the second epoch
                signal.raise_signal(signal.SIGINT)
            return super().take(indices)

    def fit():
        v = gg.Variable(0.0)
        checkpoints = train.Checkpoints(tmp_path, every_epochs=2, loader=loader, v=v)
        return train.fit(
            lambda x, y: v.assign_add(gg.sum(x)), loader, 3, callbacks=[checkpoints], progress=False
        )

    for Data.stop in (True, False):
        loader = gg.data.DataLoader(Data(X, Y), 8, shuffle=True)
        r = fit()
        assert (r.interrupted, r.step) == ((True, 3) if Data.stop else (False, 9))
    assert loader.state() == (3, 0)


@pytest.mark.parametrize("ctrl_c", [False, True])
@pytest.mark.parametrize("stopping_first", [False, True])
def test_early_stopping_resumes_with_the_best_weights(stopping_first, ctrl_c, tmp_path):
    scores = [3.0, 1.0, 2.0, 1.0, 5.0, 0.0]

    def run(folder, stop_at=None, is_part=True):
        model = nn.Dense(1, 1, use_bias=False)

        class Score(train.Callback):
            def end_of_step(self, r):
                if r.step == stop_at:
                    if not ctrl_c:
                        raise ZeroDivisionError
                    signal.raise_signal(signal.SIGINT)

            def end_of_epoch(self, r):
                model.kernel.assign([[float(r.epoch)]])
                r.logs["score"] = np.float32(scores[r.epoch - 1])

        stopping = train.EarlyStopping("score", patience=3, restore_best=True)
        loader = gg.data.DataLoader(gg.data.Arrays(X[:4, :1], Y[:4]), 1)
        some = {"stopping": stopping} if is_part else {}
        checkpoints = train.Checkpoints(folder, model=model, loader=loader, **some)
        both = [stopping, checkpoints] if stopping_first else [checkpoints, stopping]
        r = train.fit(
            (model, gg.mse), loader, 9, optimizer=optim.SGD(0), progress=False,
            callbacks=[Score(), *both],
        )  # fmt: skip
        return r.epoch, stopping.best_epoch, model.kernel.numpy().item(), r.logs.get("score")

    for stop_at in range(2, 20, 4):
        if ctrl_c:
            run(tmp_path / str(stop_at), stop_at)
        else:
            with pytest.raises(ZeroDivisionError):
                run(tmp_path / str(stop_at), stop_at)
        for _ in range(2):  # also a run that has ended
            assert run(tmp_path / str(stop_at)) == (5, 2, 2.0, 5.0)
    with contextlib.suppress(ZeroDivisionError):
        run(tmp_path / "alone", 15, is_part=False)
    with pytest.raises(ArgumentError, match=r"the weights of its best epoch, 2\. Save them"):
        run(tmp_path / "alone", is_part=False)


OTHER = """
import sys
import gpugrad as gg

checkpoints = gg.train.Checkpoints(sys.argv[1], v=gg.Variable(1.0))
checkpoints.save(1)
print("saved", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_saves_to_a_folder(tmp_path):
    def fit(folder):
        checkpoints = train.Checkpoints(folder, v=gg.Variable(2.0))
        return train.fit(lambda x: 0.0, [X], 1, callbacks=[checkpoints], progress=False).step

    command = [sys.executable, "-c", OTHER, tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        try:
            assert other.stdout.readline() == "saved\n"
            save = train.Checkpoints(tmp_path, v=gg.Variable(2.0)).save
            named = f"process {other.pid} on .* saves its checkpoints there"
            for call in (lambda: save(2), lambda: fit(tmp_path)):
                with pytest.raises(CheckpointError, match=named):
                    call()
            assert train.Checkpoints(tmp_path, v=gg.Variable(0.0)).restore() is None
        finally:
            other.kill()
    first, second = (train.Checkpoints(tmp_path, v=gg.Variable(2.0)) for _ in range(2))
    first.save(2)  # the lock of a process that was killed is free
    second.save(3)
    assert fit(tmp_path / "new") == 1


class Preempted(Exception):
    """What a handler raises."""


def raise_preempted(*_):
    raise Preempted


HANDLERS = {
    "SIGTERM": (signal.SIGTERM, signal.SIG_DFL, 143),
    "exit at SIGTERM": (signal.SIGTERM, lambda *_: sys.exit(3), 3),
    "raise at SIGALRM": (signal.SIGALRM, raise_preempted, None),
    "continue at SIGALRM": (signal.SIGALRM, lambda *_: None, None),
}


@pytest.mark.parametrize("name", HANDLERS)
@pytest.mark.parametrize("stop_at", [2, 4])
def test_a_signal_in_a_step_leaves_a_checkpoint_of_the_whole_step(name, stop_at, tmp_path):
    number, handler, code = HANDLERS[name]
    before = signal.signal(number, handler)

    def run(stop_at=None):
        v = gg.Variable(0.0, dtype="float64")
        loader = gg.data.DataLoader(np.arange(1.0, 7.0), 2)
        steps = []

        def step(x):
            steps.append(1)
            if len(steps) == stop_at:
                signal.raise_signal(number)
            v.assign(2 * v + gg.sum(x))
            return 0.0

        checkpoints = train.Checkpoints(tmp_path, v=v, loader=loader)
        train.fit(step, loader, 2, callbacks=[checkpoints], progress=False)
        return v.numpy()

    try:
        if "continue" in name:
            v = run(stop_at)
        else:
            with pytest.raises(SystemExit if code else Preempted) as error:
                run(stop_at)
            assert getattr(error.value, "code", None) == code
            assert train.Checkpoints(tmp_path).latest().name == f"{stop_at:08d}.safetensors"
            v = run()
        assert signal.getsignal(number) == handler
    finally:
        signal.signal(number, before)
    assert v == 3 * 32 + 7 * 16 + 11 * 8 + 3 * 4 + 7 * 2 + 11


def test_a_step_that_a_second_ctrl_c_breaks_off_is_taken_again(tmp_path):
    loader = gg.data.DataLoader(np.arange(8.0), 2)

    def run(stop_at):
        v = gg.Variable(0.0, dtype="float64")
        steps = []

        def step(x):
            v.assign(2 * v + gg.sum(x))
            steps.append(1)
            if len(steps) == stop_at:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
            return 0.0

        checkpoints = train.Checkpoints(tmp_path, every_steps=2, v=v, loader=loader)
        r = train.fit(step, loader, 2, callbacks=[checkpoints], progress=False)
        return r, v.numpy()

    r, _ = run(4)
    assert (r.interrupted, r.step) == (True, 3)
    loader = gg.data.DataLoader(np.arange(8.0), 2)
    r, v = run(None)
    assert (r.interrupted, r.step) == (False, 8)
    expected = 0.0
    for total in [1.0, 5.0, 9.0, 13.0] * 2:
        expected = 2 * expected + total
    assert v == expected


def test_a_loss_that_is_nan_is_not_saved_over_good_files(tmp_path):
    v = gg.Variable(1.0)

    def step(x):
        if v.numpy() == 4:
            v.assign(np.nan)
        v.assign_add(1.0)
        return v.numpy().copy()

    loader = gg.data.DataLoader(np.ones(20), 2)
    checkpoints = train.Checkpoints(tmp_path, keep=1, every_steps=1, v=v, loader=loader)
    with pytest.raises(NumericsError, match="the loss is nan at step 4"):
        train.fit(step, loader, callbacks=[checkpoints], progress=False)
    checkpoints.restore()
    assert (v.numpy(), checkpoints.latest().name) == (4, "00000003.safetensors")


@pytest.mark.parametrize("skips", [False, True])
def test_steps_that_an_optimizer_skips_are_saved(skips, tmp_path):
    model = nn.Dense(1, 1)
    data = gg.data.Arrays(np.full((4, 1), np.inf if skips else 1.0, "f4"), np.ones((4, 1), "f4"))
    loader = gg.data.DataLoader(data, 1)

    class Stop(train.Callback):
        def end_of_step(self, r):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train.fit(
            (model, gg.mse), loader, optimizer=optim.SGD(0.1, skip_nonfinite=True), progress=False,
            callbacks=[train.Checkpoints(tmp_path, every_steps=1, m=model, loader=loader), Stop()],
        )  # fmt: skip
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_leaves_the_older_files(tmp_path, monkeypatch):
    p = parts()
    checkpoints = train.Checkpoints(tmp_path, keep=1, **p)
    checkpoints.save(1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        checkpoints.save(2)
    monkeypatch.undo()
    assert [f.name for f in tmp_path.glob("[!.]*")] == ["00000001.safetensors"]
    assert checkpoints.restore() is None


def test_a_checkpoint_by_hand_is_refused_by_a_run(tmp_path):
    p = parts()
    checkpoints = train.Checkpoints(tmp_path, **p)
    checkpoints.save(1)
    with pytest.raises(CheckpointError, match="saved by hand"):
        train.fit(lambda x, y: gg.sum(x), p["loader"], callbacks=[checkpoints], progress=False)


def test_wrong_arguments_raise(tmp_path):
    with pytest.raises(ArgumentError, match=r"thing is a int, which has no state_dict"):
        train.Checkpoints(tmp_path, thing=3)
    with pytest.raises(ArgumentError, match="no part may be named 'run'"):
        train.Checkpoints(tmp_path, run=gg.random.Generator(0))
    with pytest.raises(ArgumentError, match="keep must be a whole number above 0"):
        train.Checkpoints(tmp_path, keep=0)
    callback = train.Checkpoints(tmp_path, every_steps=1, v=gg.Variable(1.0))
    with pytest.raises(ArgumentError, match=r"every_steps needs the run's gg\.data\.DataLoader"):
        train.fit(lambda x: x, [1.0], callbacks=[callback], progress=False)


PROGRAM = """
import sys, numpy as np, gpugrad as gg
class Say(gg.train.Callback):
    def end_of_step(self, run): print(run.step, flush=True)
def main(folder, workers):
    model = gg.nn.Dense(2, 1, generator=gg.random.Generator(0))
    data = gg.data.Arrays(np.ones((40, 2), "f4"), np.zeros((40, 1), "f4"))
    loader = gg.data.DataLoader(data, 4, num_workers=int(workers), processes=True)
    checkpoints = gg.train.Checkpoints(folder, every_steps=1, model=model, loader=loader)
    run = gg.train.fit((model, gg.mse), loader, 10_000, optimizer=gg.optim.SGD(1e-3),
                       progress=False, callbacks=[checkpoints, Say()])
    print("interrupted", run.interrupted)
    loader.close()
if __name__ == "__main__": main(*sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("workers", "step"),
    [(0, 15), (2, 15), (4, 1)],  # at step 1 some of the four workers still start
)
@pytest.mark.thin(3)
def test_ctrl_c_in_a_program_ends_cleanly_with_a_checkpoint(
    workers, step, tmp_path_factory, tmp_path
):
    script = tmp_path_factory.mktemp("script") / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(tmp_path), str(workers)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as program:
        for line in program.stdout:
            if line.strip() == str(step):
                os.killpg(program.pid, signal.SIGINT)  # as a terminal does
                break
        rest = program.stdout.read().splitlines()
        assert program.wait(300) == 0
    assert rest[-1] == "interrupted True", rest
    last = int([line for line in [str(step), *rest] if line.isdigit()][-1])
    assert max(int(f.stem) for f in tmp_path.iterdir()) == last


def test_worker_processes_end_if_their_program_is_killed(tmp_path_factory, tmp_path):
    script = tmp_path_factory.mktemp("script") / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(tmp_path), "2"]
    with subprocess.Popen(
        command, text=True, start_new_session=True, stdout=subprocess.PIPE
    ) as program:
        for line in program.stdout:
            if line.strip() == "3":
                break
        program.kill()
        program.communicate(timeout=300)  # until the workers, which hold the pipe too, have ended
