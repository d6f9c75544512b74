"""What notebooks and terminals show: HTML of objects, `gg.about`, ``python -m gpugrad``."""

import html.parser
import sys

import pytest
from fresh import output_of

import gpugrad as gg


def _run():
    run = gg.train.Run(2)
    run.epoch, run.history = 1, [{"loss": 0.25, "a<b": 1.0}]
    return run


def _profile():
    with gg.profile() as profile:
        gg.tanh(gg.ones(3))
    return profile


def f(x):
    return gg.tanh(x) * 2


SHOWN = {
    "Tensor": (lambda: gg.ones((2, 3)), "[1. 1. 1.]"),
    "Variable": (lambda: gg.Variable([1.0, 2.0], name="<w>"), "[1. 2.]"),
    "Module": (lambda: gg.nn.Sequential(gg.nn.Dense(4, 3)), "15 parameters (60 B)"),
    "Run": (_run, "    1  0.25    1"),
    "profile": (_profile, "tanh"),
    "program": (lambda: gg.function(f).lower(gg.ones(3)), "return"),
}


class Page(html.parser.HTMLParser):
    """The text of HTML whose tags are all closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("kind", SHOWN)
def test_notebooks_show_html(kind):
    make, text = SHOWN[kind]
    assert text in Page(make()._repr_html_()).text


def test_a_traced_tensor_shows_its_shape():
    pages = []
    gg.function(lambda x: pages.append(x._repr_html_()) or x * 2)(gg.ones((2, 3)))
    assert "(2, 3)" in Page(pages[0]).text


def test_a_function_says_its_name_and_traces():
    traced = gg.function(f)
    assert repr(traced) == "<gg.function f: 0 traces>"
    traced(gg.ones(3))
    assert repr(traced) == "<gg.function f: 1 trace>"


def test_python_m_gpugrad_says_what_it_runs_on_and_how_to_begin(monkeypatch):
    monkeypatch.setenv("GPUGRAD_CPU_KERNELS", "0")
    text = output_of("-m", "gpugrad")
    assert text.startswith(gg.about().splitlines()[0])
    assert text.splitlines()[-6:] == gg.about().splitlines()[-6:]
    assert "GPUGRAD_CPU_KERNELS=0" in text
    begin = [line.split()[2] for line in text.splitlines() if "python -m" in line]
    assert begin == [f"gpugrad.examples.{name}" for name in ("digits", "charlm", "deblur")]
    assert output_of("-m", "gpugrad", "--version") == f"gpugrad {gg.__version__}\n"


def test_about_names_each_gpu(cuda):
    assert f"{cuda}: " in gg.about()
    assert sys.version.split()[0] in gg.about()
