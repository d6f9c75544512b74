"""The house: a module imports only from lower floors, and CuPy is imported in few places."""

import ast
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "gpugrad"

FLOORS = {
    "errors": 0, "samples": 0,
    "nest": 1, "pool": 1, "backend": 1.0, "determinism": 1, "training": 1, "pickling": 1,
    "placement": 1.1, "kernels": 1.2, "cuda": 1.2,
    "dtypes": 1.5, "slices": 1.5,
    "tensor": 2.0, "variable": 2.1, "listener": 2.2, "dlpack": 2.2, "inspection": 2.3,
    "program": 2.4, "traced": 2.5, "trace": 2.6,
    "backward": 3.0, "explain": 3.1, "recorder": 3.2,
    "batched": 3.25, "tape": 3.3, "graph": 3.3, "forward": 3.4,
    "eager": 4.0, "bare": 4.0, "rules": 4.1, "op": 4.2, "user_kernels": 4.3,
    "ops": 5, "protocols": 5.5, "linalg": 5.6, "fft": 5.6, "special": 5.6, "random": 5.6,
    "methods": 6, "prefetch": 6, "transforms": 6, "vectorize": 6, "custom": 6.1,
    "recompute": 6.2,
    "function": 7, "control": 7.1, "debug": 7.1,
    "nn": 8, "optim": 8, "checkpoint": 8, "testing": 8,
    "__init__": 9, "examples": 9,
}  # fmt: skip

MODULES = sorted(HOUSE.rglob("*.py"))


def _room(path):
    """The entry of FLOORS that a file belongs to."""
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def _imports(path):
    """(module, line) of every import in a file, also those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno


def test_every_module_has_a_floor():
    assert {_room(p) for p in MODULES} <= set(FLOORS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_module_imports_from_lower_floors_only(path):
    room = _room(path)
    for name, line in _imports(path):
        parts = name.split(".")
        if parts[0] != "gpugrad" or len(parts) < 2:
            continue
        other = parts[1] if parts[1] in FLOORS else "__init__"
        allowed = FLOORS[other] < FLOORS[room] or other == room
        if room in ("examples", "__init__"):
            allowed = allowed or other in ("__init__", "examples")
        assert allowed, f"{path.name}:{line} (floor {FLOORS[room]}) imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_cupy_is_imported_in_backend_and_kernels_only(path):
    if _room(path) in ("backend", "kernels"):
        return
    for name, line in _imports(path):
        assert name.split(".")[0] not in ("cupy", "cupyx"), f"{path.name}:{line}"


def test_ops_import_neither_tape_nor_cupy():
    for path in (HOUSE / "ops").glob("*.py"):
        names = {".".join(name.split(".")[:2]) for name, _ in _imports(path)}
        assert not names & {"gpugrad.autodiff.tape", "gpugrad.autodiff.recorder"}, path.name


def _exported(path):
    """The names in a module's __all__; None if it has none."""
    for node in ast.parse(path.read_text()).body:
        target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
        if getattr(target, "id", None) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def test_what_a_module_takes_of_another_is_exported_there():
    files = {".".join(p.relative_to(HOUSE.parent).with_suffix("").parts): p for p in MODULES}
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    exported = {name: _exported(path) for name, path in files.items()}
    for path in MODULES:
        for name, line in _imports(path):
            home, _, thing = name.rpartition(".")
            if exported.get(home) is not None and name not in files:
                assert thing in exported[home], f"{path.name}:{line} takes {name}"
