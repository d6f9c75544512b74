"""Functions that share Variables, called in several threads: each result is that of some order."""

import itertools
import sys
import threading

import numpy as np
import pytest

import gpugrad as gg

ROUNDS = 1000


@pytest.fixture(autouse=True)
def _switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*calls):
    """The results of calls that start at the same time, each in a thread of its own."""
    results, errors = [None] * len(calls), []
    start = threading.Barrier(len(calls))

    def work(k):
        try:
            start.wait(60)
            results[k] = calls[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    return results


class Shared:
    """Two Variables, what the threads do with them, and the same in one thread."""

    def __init__(self, kind, wrap):
        # no operation rounds, so that any order of additions gives the same
        self.a, self.b = (gg.Variable(x, dtype="float64") for x in ([2.0, 3.0], 5.0))
        self.optimizer = gg.optim.SGD(2.0**-4, momentum=0.5)
        first, second = {
            "assign": (self.scale, self.add),
            "read": (self.scale, self.read),
            "optimizer": (self.step, self.add),
            "both optimizer": (self.step, self.descend),
        }[kind]
        self.calls = wrap(first), wrap(second), self.assign

    def scale(self):
        self.a.assign(self.a * 2 + self.b)
        self.b.assign(self.b + 1)
        return self.a * 1

    def add(self):
        self.b.assign_add(gg.sum(self.a))
        self.a.assign(self.a + self.b)
        return self.b * 1

    def read(self):
        return gg.sum(self.a) * 10 + self.b

    def step(self):
        return self.optimizer.minimize(lambda: gg.sum(self.a) * self.b, [self.a, self.b])

    def descend(self):
        self.optimizer.apply_gradients([(self.a * 0.25, self.a)])
        self.b.assign_add(1.0)
        return self.b * 1

    def assign(self):
        self.a.assign([7.0, 11.0])

    def state(self):
        """The values of everything that the calls change."""
        names = {"a": self.a, "b": self.b}
        state = {k: v.tolist() for k, v in self.optimizer.state_dict(names).items()}
        averages = [
            np.multiply(v, state[k + ".scale"]).tolist()
            for k, v in sorted(state.items())
            if k.endswith("velocity")
        ]
        return str([self.a.tolist(), self.b.tolist(), self.optimizer.iterations, averages])


TURNS = (0, 0, 1, 1, 2)
"""The thread of each call: the first two trace in their first one and replay in the second."""


def play_in_turn(shared, turns):
    """The results of calls in this order, and the Variables after them."""
    results = [[], [], []]
    for k in turns:
        results[k].append(shared.calls[k]())
    return text(results), shared.state()


def text(results):
    return str([[r if r is None else r.tolist() for r in some] for some in results])


def play(kind, rounds):
    orders = {*itertools.permutations(TURNS)}
    possible = {play_in_turn(Shared(kind, lambda f: f), turns) for turns in orders}
    for _ in range(rounds):
        shared = Shared(kind, gg.function)
        loops = [
            lambda call=call, k=k: [call() for turn in TURNS if turn == k]
            for k, call in enumerate(shared.calls)
        ]
        results = together(*loops)
        assert (text(results), shared.state()) in possible
        # no program has kept an old value as a constant
        eager = Shared(kind, lambda f: f)
        eager.a.assign(shared.a)
        eager.b.assign(shared.b)
        eager.optimizer.build([eager.a, eager.b])
        eager.optimizer.load_state_dict(
            shared.optimizer.state_dict({"a": shared.a, "b": shared.b}),
            {"a": eager.a, "b": eager.b},
        )
        assert play_in_turn(shared, TURNS) == play_in_turn(eager, TURNS)


KINDS = ["assign", "read", "optimizer", "both optimizer"]


@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_share_variables_are_first_called_in_two_threads(kind):
    play(kind, ROUNDS // 50)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_share_variables_are_first_called_in_two_threads_many_times(kind):
    play(kind, ROUNDS)
