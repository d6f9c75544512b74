"""A pytest plugin: gpugrad.numpy, or NumPy, stands in for CuPy, so that CuPy's own tests judge it.

STAND_IN is ``gpugrad`` or ``numpy``, CUPY_TESTING a folder with CuPy's ``testing`` package, RESULTS
a file that gets a line ``outcome test`` for each test, and EVERY=k keeps each k-th test. CuPy's
internals are there by name, and fail when they are called.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import math
import os
import signal
import sys
import types
import zlib

import numpy
import pytest

IS_NUMPY = os.environ["STAND_IN"] == "numpy"
EVERY = int(os.environ.get("EVERY", "1"))
SCIPYS = "fft linalg special ndimage signal signal.windows sparse sparse.linalg interpolate stats"
SCIPYS = [*SCIPYS.split(), "sparse.csgraph", "spatial", "spatial.distance"]


class _Absent(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent

    def __bool__(cls):
        return False


class Absent(metaclass=_Absent):
    """Any name of CuPy's internals."""

    def __new__(cls, *args, **keywords):
        raise NotImplementedError("CuPy's internals are not here")


class Names(types.ModuleType):
    """A module whose names are its own, or those of another library."""

    def __init__(self, name, source=None, **own):
        super().__init__(name)
        self.__dict__.update(own, _source=source, __path__=[])

    def __getattr__(self, name):
        hidden = name.startswith("__") or name == "testing"  # CuPy's own is imported
        if hidden or (self._source is not None and not hasattr(self._source, name)):
            raise AttributeError(f"{os.environ['STAND_IN']} has no {self.__name__}.{name}")
        return Absent if self._source is None else getattr(self._source, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of CuPy that nothing stands in for."""

    def find_spec(self, fullname, path, target=None):
        known = fullname.partition(".")[0] in ("cupy", "cupyx", "cupy_backends")
        if known and not fullname.startswith("cupy.testing"):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Names(spec.name)

    def exec_module(self, module):
        pass


def _install(name, source=None, **own):
    module = sys.modules[name] = Names(name, source, **own)
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)
    return module


def _host(a, *args, **keywords):
    return numpy.asarray(a)


class _Same:
    """A device, stream or pool that does nothing."""

    id, ptr, compute_capability = 0, 0, "90"
    null: object = None

    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def synchronize(self):
        pass

    free_all_blocks = synchronize


def _stand_in():
    sys.meta_path.append(_Finder())
    if IS_NUMPY:
        library, scipy = numpy, importlib.import_module("scipy")
    else:
        import gpugrad.numpy as library
        from gpugrad import scipy
    cupy = _install("cupy", library, asnumpy=_host, __version__="14.2.0", is_available=lambda: True)
    cupy.__path__ = [os.environ["CUPY_TESTING"]]
    cupy.get_array_module = lambda *a: (
        cupy if any(isinstance(x, cupy.ndarray) for x in a) else numpy
    )
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = _Same
    for name in ("linalg", "fft", "lib", "lib.stride_tricks", "polynomial"):
        source = library
        for part in name.split("."):
            source = getattr(source, part)
        _install(f"cupy.{name}", source)
    for name in ("polynomial", "polyutils"):
        _install(f"cupy.polynomial.{name}", getattr(library.polynomial, name))
    _install("cupy.exceptions", numpy.exceptions)
    cupy.AxisError, cupy.ComplexWarning = (
        numpy.exceptions.AxisError,
        numpy.exceptions.ComplexWarning,
    )
    random = library.random
    _install("cupy.random", random)
    for name in ("_distributions", "_generator", "_sample", "_permutations"):
        _install(f"cupy.random.{name}", random)
    states = sys.modules["cupy.random._generator"]
    cupy.random.reset_states = lambda: setattr(states, "_random_states", {})  # CuPy's tests look
    cupy.random.reset_states()
    bits = dict.fromkeys(("XORWOW", "MRG32k3a", "Philox4x3210"), random.Philox)
    _install("cupy.random._bit_generator", random, **bits)
    _install("cupy._core")
    _install("cupy._core.internal", prod=math.prod, prod_sequence=math.prod)
    _install("cupy._util", PerformanceWarning=type("PerformanceWarning", (Warning,), {}))
    error = type("CUDARuntimeError", (RuntimeError,), {})
    runtime = {"is_hip": False, "CUDARuntimeError": error, "runtimeGetVersion": lambda: 12090}
    runtime["getDeviceCount"] = lambda: 1
    _Same.null = _Same()
    _install("cupy.cuda", Device=_Same, Stream=_Same, MemoryPool=_Same, is_available=lambda: True)
    sys.modules["cupy.cuda"].get_local_runtime_version = lambda: 12090
    sys.modules["cupy.cuda"].get_nvcc_path = lambda: "echo release 12.9, V12.9.0 #"
    _install("cupy.cuda.runtime", _getLocalRuntimeVersion=lambda: 12090, **runtime)
    _install("cupy.cuda.driver", get_build_version=lambda: 12090, driverGetVersion=lambda: 12090)
    _install("cupy.cuda.device", get_compute_capability=lambda: "90", Device=_Same)
    for name, own in (("", {}), (".cuda", {}), (".cuda.api", {}), (".cuda.api.runtime", runtime)):
        _install(f"cupy_backends{name}", **own)
    _install("cupyx", library, errstate=_nothing, allow_synchronize=_nothing)
    cupyx = _install("cupyx.scipy", _scipy_available=True)
    cupyx.get_array_module = lambda *a: cupyx if cupy.get_array_module(*a) is cupy else scipy
    for name in ("cusparse", "cusolver"):  # their functions stand behind SciPy's names here
        _install(f"cupyx.{name}", check_availability=lambda name: True)
    _install("cupy.cuda.cusolver", _getVersion=lambda: (11, 4, 5))
    for name in SCIPYS:
        if IS_NUMPY or name.partition(".")[0] in scipy.__all__:
            _install(f"cupyx.scipy.{name}", functools.reduce(getattr, name.split("."), scipy))
    if "cupyx.scipy.sparse" not in sys.modules:
        _install("cupyx.scipy.sparse", issparse=lambda x: False)


@contextlib.contextmanager
def _nothing(*args, **keywords):
    yield


def pytest_collection_modifyitems(config, items):
    """Keep a sample, by the checksums of the tests' names."""
    items[:] = [i for i in items if zlib.crc32(i.nodeid.encode()) % EVERY == 0]


def _too_long(*args):
    raise TimeoutError("the test ran past its seconds")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """End a test that takes more than 20 s."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(20)
    yield
    signal.alarm(0)


def pytest_runtest_logreport(report):
    """Write the outcome of a test."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        with open(os.environ["RESULTS"], "a") as file:
            print(
                "xfail" if hasattr(report, "wasxfail") else report.outcome, report.nodeid, file=file
            )


_stand_in()
