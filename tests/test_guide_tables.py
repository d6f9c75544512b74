"""Tables of the guides that could go stale are compared with the code.

``python tests/test_guide_tables.py`` writes the tables of docs/dtypes.md anew.
"""

import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.function.cache import MOST
from gpugrad.kernels.cpu.library_folder import _BYTES

ROOT = Path(__file__).parent.parent
DOCS, PACKAGE = ROOT / "docs", ROOT / "gpugrad"
DTYPES = {
    "b1": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32",
    "u32": "uint32", "i64": "int64", "u64": "uint64", "bf16": "bfloat16", "f16": "float16",
    "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
SHORT = {name: short for short, name in DTYPES.items()}


def rows_of(page, columns):
    """The cells of a page's tables of so many columns, without their heads."""
    text = (DOCS / page).read_text()
    rows = [line[2:-2].split(" | ") for line in re.findall(r"^\| .* \|$", text, re.MULTILINE)]
    return [row for row in rows if len(row) == columns]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("| --- ", "|---")


def promoted(*dtypes):
    return SHORT[str(gg.result_type(*dtypes))]


FUNCTIONS = {
    "`sum`, `prod`": gg.sum, "`mean`": gg.mean, "`max`, `sort`": gg.max,
    "`argmax`": gg.argmax, "`exp`, `sqrt`, `sin`": gg.exp, "`x / y`": lambda x: x / x,
    "`x ** 2`": lambda x: x**2, "`abs`": gg.abs, "`x < y`": lambda x: x < x,
}  # fmt: skip
SHOWN = ("b1", "i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64", "c64")


def result_of(function, dtype):
    return SHORT[str(function(gg.ones(2, dtype=dtype)).dtype)]


def tables():
    pairs = [[f"**{a}**", *(promoted(DTYPES[a], DTYPES[b]) for b in DTYPES)] for a in DTYPES]
    weak = [
        [f"**{a}**", *(promoted(gg.ones(1, dtype=DTYPES[a]), n) for n in (True, 1, 1.0, 1j))]
        for a in DTYPES
    ]
    functions = [[name, *(result_of(f, DTYPES[d]) for d in SHOWN)] for name, f in FUNCTIONS.items()]
    return {
        "promotion": table([" ", *DTYPES], pairs),
        "weak": table([" ", "bool", "int", "float", "complex"], weak),
        "functions": table(["of", *SHOWN], functions),
    }


def with_tables(text):
    for name, lines in tables().items():
        start = f"<!-- {name} -->\n"
        text = re.sub(rf"{start}.*?<!-- end -->", f"{start}{lines}\n<!-- end -->", text, flags=re.S)
    return text


def test_tables_of_dtypes_are_those_of_the_code():
    text = (DOCS / "dtypes.md").read_text()
    assert text == with_tables(text), "run python tests/test_guide_tables.py"


def test_ops_have_the_dtype_that_result_type_says():
    """bfloat16 raised in `result_type` beside dtypes that NumPy does not promote it with."""
    for a, b in itertools.product(DTYPES.values(), repeat=2):
        x, y = gg.ones(1, dtype=a), gg.ones(1, dtype=b)
        assert {(x + y).dtype, gg.where(True, x, y).dtype} == {gg.result_type(a, b)}, (a, b)


def test_shapes_of_broadcasting_are_those_of_the_code():
    rows = [row for row in rows_of("dtypes.md", 3) if row[0].startswith("`(")]
    assert len(rows) == 8
    for x, y, result in rows:
        try:
            got = f"`{(gg.ones(eval(x.strip('`'))) + gg.ones(eval(y.strip('`')))).shape}`"
        except gg.errors.ShapeError:
            got = "error"
        assert got == result


def public_errors():
    things = {name: getattr(gg.errors, name) for name in gg.errors.__all__}
    return {n: t for n, t in things.items() if isinstance(t, type) and issubclass(t, BaseException)}


def test_page_of_errors_has_each_class_its_bases_and_an_example_that_raises_it():
    rows = {row[0].strip("`"): row for row in rows_of("errors.md", 4)[1:]}
    assert set(rows) == set(public_errors())
    examples = {name: re.search(r"`((?:list\()?gg\..*?)`", row[2]) for name, row in rows.items()}
    without = [name for name, example in examples.items() if not example]
    assert without == ["GpugradError", "KernelError", "GpugradWarning"]  # the second needs NVRTC
    for name, (_, bases, _, _) in rows.items():
        kind = public_errors()[name]
        for base in re.findall(r"`([\w.]+)`", bases):
            assert issubclass(kind, eval(base, {"numpy": np})), (name, base)
        if example := examples[name]:
            with pytest.raises(kind) as caught:
                eval(example[1], {"gg": gg})
            assert caught.type is kind, name


def variables_read():
    """The environment variables that the package reads, or passes on to processes that do."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        names.update(re.findall(r"\"(GPUGRAD_[A-Z_]*[A-Z])\"", text))
        names.update(re.findall(r"environ(?:ment)?\.(?:get|read|choose|count)\(\s*\"(\w+)\"", text))
        names.update(re.findall(r"environ\[\"(\w+)\"\]", text))
    settings = (PACKAGE / "testing/cuda/driver/native/settings.cpp").read_text()
    names.update(
        f"GPUGRAD_CUDA_{n}" for n in re.findall(r"^SETTING\(\w+, \"(\w+)\"", settings, re.M)
    )
    from gpugrad.core import host_memory
    from gpugrad.distributed.world import _LAUNCHERS

    names.update(itertools.chain(*_LAUNCHERS.values()))
    names.update(re.findall(r"\"([A-Z_]{9,})\"", Path(host_memory.__file__).read_text()))
    return names - {"CS_GNU_LIBC_VERSION", "PYTHONPATH"}


def test_page_of_environment_variables_has_each_that_is_read_and_no_other():
    text = (DOCS / "environment.md").read_text()
    named = set(re.findall(r"`([A-Z][A-Z_]{2,})(?:=\w+)?`", text))
    read = variables_read()
    assert len([n for n in read if n.startswith("GPUGRAD_")]) == 12
    assert read - named == set()
    assert {n for n in named - read if n.startswith("GPUGRAD_")} == set()


def test_page_of_installation_has_each_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    section = (DOCS / "install.md").read_text().partition("## Extras")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(project["optional-dependencies"])


def test_page_of_the_kernel_cache_has_its_sizes():
    text = " ".join((DOCS / "kernel-cache.md").read_text().split())
    assert f"at most {_BYTES >> 20} MiB" in text
    assert f"at most {MOST};" in text


def test_anchors_of_links_are_headings():
    """As GitHub and MyST name them."""
    texts = {path: path.read_text() for path in sorted(DOCS.rglob("*.md"))}
    links = [(p, *link) for p in texts for link in re.findall(r"\]\(([\w/.-]*)#(.*?)\)", texts[p])]
    wrong = []
    for page, target, anchor in links:
        path = page.parent / target if target else page
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        anchors = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
        wrong += [f"{page.name}: {target}#{anchor}"] * (anchor not in anchors)
    assert not wrong


if __name__ == "__main__":
    page = DOCS / "dtypes.md"
    page.write_text(with_tables(page.read_text()))
