"""The house: a folder imports only from folders above it in the list; no circles."""

import ast
import functools
import graphlib
import importlib
import types
from pathlib import Path

import pytest
from test_public_names import MODULES as PUBLIC

HOUSE = Path(__file__).parents[1] / "gpugrad"

FLOORS = [
    "errors", "core", "typing", "kernels", "trace", "autodiff", "registry", "ops", "transforms",
    "array_api", "numpy", "linalg", "fft", "special", "random", "cuda", "checkpoint", "debug",
    "bridge", "function", "scipy", "nn", "optim", "distributed", "data", "train", "testing",
    "__init__", "__main__", "compat", "integrations", "examples",
]  # fmt: skip
"""Folders and public namespaces. Each imports only from those before it."""

SHELVES = {
    "ops": [
        "_axes", "_blocks", "_slopes", "_roots", "_loops", "_scipy", "arrays", "math", "linalg",
        "fft", "special", "random", "nn", "scipy", "__init__",
    ]
}  # fmt: skip
"""The same within a folder. (kernels/ and function/ have no order, but no circles either.)"""

OPTIONAL = {
    "array_api_compat", "cudnn", "cupy", "cupyx", "IPython", "jax", "matplotlib", "mpi4py",
    "nvmath", "scipy", "sklearn", "torch", "tqdm",
}  # fmt: skip
"""Libraries that a function may import when it is called."""

MODULES = {
    ".".join(("gpugrad", *p.relative_to(HOUSE).with_suffix("").parts)).removesuffix(".__init__"): p
    for p in sorted(HOUSE.rglob("*.py"))
}


@functools.cache
def _tree(path):
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def _trees_go():
    yield
    _tree.cache_clear()  # 160 MB


@functools.cache
def _imports(path):
    """(module or module.name, line, whether in a function) of every import in a file."""

    def walk(node, inside):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno, inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, inside
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    return list(walk(_tree(path), False))


def _home(name):
    """The module that an imported name comes from; None if it is not gpugrad's."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or None


def _room(module, folder=()):
    """The entry of FLOORS, or of a folder's shelves, that a module belongs to."""
    parts = module.split(".")[1 + len(folder) :]
    return parts[0] if parts else "__init__"


def _check_order(module, order, folder=()):
    room = _room(module, folder)
    for name, line, _ in _imports(MODULES[module]):
        home = _home(name)
        if home is None or home.split(".")[1 : 1 + len(folder)] != list(folder):
            continue
        other = _room(home, folder)
        if other != room and order.index(other) > order.index(room):
            above = ", ".join(order[: order.index(room)])
            raise AssertionError(
                f"{MODULES[module].relative_to(HOUSE.parent)}:{line} imports {name}, which is "
                f"below it. {room} may import from {above}. Move what it needs up into one of "
                f"these, or move {module} down to {other}."
            )


def test_every_file_has_a_floor():
    assert {_room(m) for m in MODULES} == set(FLOORS)
    for folder, order in SHELVES.items():
        inside = {_room(m, (folder,)) for m in MODULES if m.split(".")[1:2] == [folder]}
        assert inside == set(order)


def test_a_file_at_the_root_is_a_public_namespace():
    files = {p.stem for p in HOUSE.glob("*.py")} - {"__init__", "__main__"}
    assert len(files) <= 10
    for name in files:
        assert _exported(HOUSE / f"{name}.py"), f"gpugrad/{name}.py has no __all__"


def test_every_module_imports_from_the_floors_before_its_own():
    for module in MODULES:
        _check_order(module, FLOORS)
        folder = module.split(".")[1:2]
        if folder and folder[0] in SHELVES:
            _check_order(module, SHELVES[folder[0]], tuple(folder))


def test_imports_never_go_in_a_circle():
    """Also those that only a type checker sees, and those inside functions."""
    graph = {
        module: {
            home for name, _, _ in _imports(path) if (home := _home(name)) not in (None, module)
        }
        for module, path in MODULES.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the modules


def test_imports_stand_at_the_top_of_a_module():
    late = [
        f"{path.relative_to(HOUSE.parent)}:{line} imports {name}"
        for path in MODULES.values() for name, line, inside in _imports(path)
        if inside and name.partition(".")[0] not in OPTIONAL
    ]  # fmt: skip
    assert not late, "only optional libraries are imported inside a function"


def test_cupy_is_imported_in_backend_and_kernels_only():
    for module, path in MODULES.items():
        if module == "gpugrad.core.backend" or module.startswith("gpugrad.kernels."):
            continue
        for name, line, _ in _imports(path):
            assert name.partition(".")[0] not in ("cupy", "cupyx"), f"{module}:{line}"


def _exported(path):
    """Whether a module has an `__all__`."""
    targets = [
        target for node in _tree(path).body
        for target in (getattr(node, "target", None), *getattr(node, "targets", []))
    ]  # fmt: skip
    return any(getattr(target, "id", None) == "__all__" for target in targets)


FACES = {
    "gpugrad.numpy": "has NumPy's names",
    "gpugrad.numpy.random": "has NumPy's names",
    "gpugrad.scipy.integrate": "has SciPy's names",
    "gpugrad.scipy.interpolate": "has SciPy's names",
    "gpugrad.scipy.linalg": "has SciPy's names",
    "gpugrad.scipy.special": "has SciPy's names",
    "gpugrad.scipy.signal": "has SciPy's names",
    "gpugrad.scipy.signal.windows": "has SciPy's names",
    "gpugrad.scipy.optimize": "has SciPy's names",
    "gpugrad.scipy.spatial": "has SciPy's names",
    "gpugrad.scipy.spatial.distance": "has SciPy's names",
    "gpugrad.scipy.spatial.transform": "has SciPy's names",
    "gpugrad.scipy.stats": "has SciPy's names",
    "gpugrad.testing.cuda.driver": "takes its names from the modules of its folder",
    "gpugrad.testing.cuda.shim": "takes its names from the modules of its folder",
}
"""Modules with an `__all__` that are no public namespace, and why."""


def test_only_public_namespaces_have_a_list_of_their_names():
    """Elsewhere the list would only repeat what the file defines; mypy refuses names that a module
    imports from one that itself imported them."""
    listed = {module for module, path in MODULES.items() if _exported(path)}
    assert listed == {*PUBLIC, *FACES}


EDITED = {
    ("gpugrad.array_api.methods", "Tensor"): "the operators and methods of Tensor are ops",
    ("gpugrad.array_api.methods", "Variable"): "an index gives the Tensor of its value",
    ("gpugrad.testing.cuda.shim", "launch"): "for a while kernels run on the CPU",
    ("gpugrad.random", "Generator"): "the methods of Generator are the functions of this namespace",
    ("gpugrad.scipy.sparse.structure", "Tensor"): "its operators leave sparse operands to these",
}
"""The objects of other modules that a module may edit, and why."""


def _imported_objects(module):
    """The modules and classes of gpugrad that a module has imported, by their names there."""
    if module.startswith("gpugrad.integrations."):  # needs the other library
        return
    loaded = importlib.import_module(module)
    for node in ast.walk(_tree(MODULES[module])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpugrad"):
            for alias in node.names:
                name = alias.asname or alias.name
                thing = getattr(loaded, name, None)
                if isinstance(thing, (type, types.ModuleType)):
                    yield name, thing


def _edits(tree):
    """(name, line) of the objects whose attributes a module assigns, also by setattr."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for target in targets for part in ast.walk(target)):
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    yield part.value.id, node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "setattr":
            yield getattr(node.args[0], "id", None), node.lineno


def test_no_module_assigns_attributes_of_another():
    """Who reads the module above would not see a hook that is set from below."""
    for module, path in MODULES.items():
        others = dict(_imported_objects(module))
        for name, line in _edits(_tree(path)):
            if name in others and (module, name) not in EDITED:
                raise AssertionError(
                    f"{path.relative_to(HOUSE.parent)}:{line} assigns an attribute of "
                    f"{others[name]}: pass it as an argument, or make a subclass."
                )


def test_files_of_tests_have_names_of_their_own():
    """Pytest imports each by its name alone: of two conftest.py, tests import either."""
    names = [p.name for p in Path(__file__).parent.rglob("*.py") if p.name != "__init__.py"]
    assert sorted(set(names)) == sorted(names)


def test_what_may_be_edited_is_edited():
    for module, name in EDITED:
        assert name in dict(_edits(_tree(MODULES[module]))), (module, name)


def test_no_function_has_more_than_sixty_lines_of_code():
    """Docstrings do not count."""
    for path in MODULES.values():
        for node in ast.walk(_tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                doc = ast.get_docstring(node, clean=False)
                lines = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
                assert lines <= 60, f"{path.relative_to(HOUSE.parent)}: {node.name} has {lines}"


def test_the_formatter_decides_how_code_looks():
    """But for a few tables: a packed list of names, a row a case."""
    assert sum(path.read_text().count("fmt: skip") for path in MODULES.values()) <= 60


def test_modules_call_only_ops_that_exist():
    """As ``xp.name`` of ``from gpugrad.core.backend import TENSOR as xp``, in any line."""
    from gpugrad.core.backend import TENSOR

    missing = []
    for name, path in MODULES.items():
        if "TENSOR as xp" not in path.read_text():
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "xp":
                # formulas in the same file have an `xp` of their own, with a library
                known = node.attr in ("lib", "special") or hasattr(TENSOR, node.attr)
                missing += [] if known else [f"{name}:{node.lineno} {node.attr}"]
    assert not missing
