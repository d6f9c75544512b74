"""Hostile values, and calls that neither hang nor take all memory."""

import ctypes
import fractions
import functools
import inspect
import re
import resource
import signal
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import GpugradError

SECONDS = 5  # for one call; the slowest takes half a second
BYTES = 1 << 30  # more address space, so that a result that is too large is a MemoryError

# no op takes these in any place, except an index
JUNK = [{}, {"a": 1}, {1}, object(), b"x", lambda x: x]
NOT_FLAGS = [*JUNK, "no", 0.5, 1j, [], (), int, slice(2), ...]
NOT_NUMBERS = [*JUNK, "abc", int, slice(2), ...]
HOSTILE = [
    *JUNK,
    None, True, -1, 0, 7, 0.5, 1j, np.nan, np.inf, 10**6, 2**70, -(2**63), "abc", int,
    slice(2), ..., [], (), (0, 0), (0, 10**6), (-1, 1.5), [None], ["a", "b"], [1, "a"],
    [[1.0], [2.0, 3.0]], [[]], np.float32(2), np.array(["a"]), np.array([None, {}], object),
    np.array("2020-01-01", "M8[D]"), np.ones((2, 0, 3)), np.ones((7, 5, 3, 2, 2)),
    np.array([True, False]), np.array([1j, 2]), np.arange(3, dtype=np.int8),
    fractions.Fraction(1, 2), np.array(1, object), np.timedelta64(1, "s"), np.void(b"ab"), "",
    np.array([np.nan, np.inf]), np.ma.masked_array([1.0, 2.0], [True, False]),
    gg.ones((2, 3)), gg.ones(()),
]  # fmt: skip


class Hang(BaseException):
    """The alarm, which no handler of an op catches."""


@contextmanager
def bounded_calls():
    """Limit memory, and let the alarm interrupt a call."""

    def ring(number, frame):
        raise Hang

    handlers = {alarm: signal.signal(alarm, ring) for alarm in (signal.SIGPROF, signal.SIGALRM)}
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        ctypes.CDLL(None).malloc_trim(0)  # tests that follow in this process need less
        for alarm, handler in handlers.items():
            signal.signal(alarm, handler)


def refusal(names, call):
    """The fault in the refusal of a call, and the call's result.

    Returns:
        ("", result) if it returns; (None, None) if it raises as documented, with one of `names` in
        the message; else (complaint, None).
    """
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # processor time: the machine may be busy
    signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)  # a call may wait
    try:
        return "", call()
    except GpugradError as error:
        if _is_from_a_users_function(error):
            return None, None
        named = any(re.search(rf"(?<!\w){re.escape(n)}(?!\w)", str(error)) for n in names)
        return (None if named else f"raises {type(error).__name__} without a name: {error}"), None
    except Hang:
        return "hangs", None
    except AssertionError:
        if {"assert_close", "check_grads"} & set(names):
            return None, None
        raise
    except Exception as error:
        if _is_from_a_users_function(error):
            return None, None
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{at.filename.rpartition('/')[2]}:{at.lineno}"
        return f"raises {type(error).__name__} at {where}: {error}", None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _is_from_a_users_function(error):
    """Whether a function of the tests that gpugrad has called raised an error."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    tests = str(Path(__file__).parent)
    ours = [k for k, f in enumerate(frames) if "gpugrad" in f and not f.startswith(tests)]
    return any(f.startswith(tests) for f in frames[ours[0] :]) if ours else False


EACH_THIRD = pytest.mark.parametrize(
    "third", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))]
)
"""Of the hostile values; each argument gets another third in the default run."""


def calls_of(function, arguments, passed_on, third):
    """The place and the value that each call changes, and the call."""
    parameters = inspect.signature(function).parameters
    for k, (name, parameter) in enumerate(parameters.items()):
        takes_functions = callable(arguments.get(name, parameter.default)) or name == "loss"
        for value in HOSTILE[(k + third) % 3 :: 3]:
            if callable(value) and takes_functions:
                continue  # what it raises is the user's
            changed = value
            if parameter.kind is parameter.VAR_POSITIONAL:
                changed = (value,)
            elif parameter.kind is parameter.VAR_KEYWORD:
                changed = {passed_on: value}
            args, keywords = split(parameters, {**arguments, name: changed})
            yield name, value, functools.partial(function, *args, **keywords)


def split(parameters, values):
    """Positional and keyword arguments for the parameters that have values."""
    args, keywords = [], {}
    by_position = any(parameters[n].kind is inspect.Parameter.VAR_POSITIONAL for n in values)
    for name, p in parameters.items():
        if name not in values:
            continue
        if p.kind is p.VAR_POSITIONAL:
            args += values[name]
        elif p.kind is p.VAR_KEYWORD:
            keywords |= values[name]
        elif p.kind is p.POSITIONAL_ONLY or (by_position and p.kind is p.POSITIONAL_OR_KEYWORD):
            args.append(values[name])
        else:
            keywords[name] = values[name]
    return args, keywords


def complaints(title, function, arguments, third, also=(), passed_on="clipnorm"):
    """The faults of calls with a hostile value in each place, a line each.

    Args:
        title: the function, whose words an error may name.
        function: what is called.
        arguments: good arguments by name.
        third: which third of the values each argument gets.
        also: more names that an error may have.
        passed_on: a keyword that gets the value in the place of ``**keywords``.
    """
    wrong = []
    for place, value, call in calls_of(function, arguments, passed_on, third):
        names = [*title.replace(".", " ").split(), place, *also]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            complaint, _ = refusal(names, call)
        if complaint:
            wrong.append(f"{title}({place}={value!r:.60}) {complaint:.200}")
    return wrong


ENDLESS = ("hyp1f1", "lpmv")
"""Ops whose function of SciPy does not return for huge or infinite arguments: it counts to them."""
