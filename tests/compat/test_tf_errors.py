"""Wrong calls raise the class that TensorFlow raises, with our sentence.

The test marked peers asks the installed TensorFlow for the same classes.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from gpugrad.errors import GpugradError

CALLS = """
TypeError: constant("a", "float32")  add(A)  nn.relu(A, foo=1)  len(data.Dataset.range(3).repeat())
ValueError: constant(object())  constant(None)  convert_to_tensor(A, "int32")  constant([[1, 2], [3]])  Variable([1]).assign(A[:1])
ValueError: while_loop(lambda i: i < 3, lambda i: (i + 1, i), [0])  random.uniform([2], dtype="int32")  device("/nonsense:0").__enter__()
ValueError: data.Dataset.from_tensor_slices((A, B))  TensorShape([1]).merge_with([2])  Variable()
errors.InvalidArgumentError: add(A, "a")  sqrt("a")  matmul(A, A)  matmul(B, B)  tile(A, [1, 2])  reshape(A, [2, 2])  add(A, ones([2]))  gather(A, [5])
errors.InvalidArgumentError: random.normal("a")  random.stateless_normal([2], seed=1)  list(data.Dataset.range(3).batch(0))
errors.InvalidArgumentError: nn.conv2d(B, ones([2, 2, 2, 4]), 1, "SAME")  debugging.assert_equal(A, B[0])  pad(A, [[1, 1], [1, 1]])
errors.OutOfRangeError: TensorArray("float32", 1).read(3)  TensorArray("float32", 1).write(3, 1.0)
errors.NotFoundError: train.Checkpoint(v=Variable(1.0)).restore("/nonexistent/x")
"""  # noqa: E501  # a table
RUNS = """
TypeError: {"q": 1.0}  {3: 1.0}  [1.0]
ValueError: {X: [1.0, 2.0, 3.0]}  {X: np.ones((2, 3))}  {X: [["a", "b"]]}  {X: [[1.0, 2.0], [3.0]]}
errors.InvalidArgumentError: None
"""
FETCHES = """
TypeError: None  3
ValueError: "loss"
errors.FailedPreconditionError: W
RuntimeError: (session.close(), X)[1]
"""
"""The class, and feeds or fetches with which a Session raises it."""


def rows(table: str) -> list[tuple[str, str]]:
    lines = [line.partition(": ") for line in table.strip().splitlines()]
    return [(kind, call.strip()) for kind, _, calls in lines for call in calls.split("  ")]


def not_raised(module: str, own: type[Exception]) -> list[str]:
    """The calls that raise another class, or an error that is not a subclass of `own`."""
    tf = importlib.import_module(module)
    v1, scope = tf.compat.v1, {name: getattr(tf, name) for name in dir(tf)}
    scope |= {"A": tf.constant([1.0, 2.0, 3.0]), "B": tf.ones([2, 3]), "np": np}
    wrong = []

    def check(kind: str, call: str, f) -> None:
        try:
            f()
        except eval(kind, {"errors": tf.errors}) as error:
            if not isinstance(error, own) and "argument" not in str(error):
                wrong.append(f"{call}: {error!r:.90}")
        except Exception as error:
            wrong.append(f"{call}: {kind}, got {error!r:.90}")
        else:
            wrong.append(f"{call}: {kind} was not raised")

    for kind, call in rows(CALLS):
        check(kind, call, lambda: eval(call, scope))  # noqa: B023
    for table, part in ((RUNS, "feed_dict"), (FETCHES, "fetches")):
        for kind, text in rows(table):
            with v1.Graph().as_default(), v1.Session() as session:
                names = {"X": v1.placeholder("float32", [None, 2]), "np": np, "session": session}
                names["W"] = v1.get_variable("w", [2])
                given = {"fetches": names["X"] * 2.0}
                check(kind, text, lambda: session.run(**{**given, part: eval(text, names)}))  # noqa: B023
    return wrong


def test_wrong_calls_raise_tensorflows_classes():
    assert not not_raised("gpugrad.compat.tf", GpugradError)


@pytest.mark.peers
def test_tensorflow_raises_these_classes():
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    assert not not_raised("tensorflow", Exception)
