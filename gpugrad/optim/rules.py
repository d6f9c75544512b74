"""Update rules: one formula per optimizer, read as passes over memory here and as CUDA on a GPU.

A rule is a function ``formula(xp, s, p, g, *slots)`` of one element of a Variable, its gradient,
its averages, and the settings `s` of the step. It returns the new ``(p, *slots)``. SGD with
momentum is::

    def formula(xp, s, p, g, velocity):
        velocity = s.momentum * velocity + g
        return p - s.rate * velocity, velocity

`kernels.codegen.steps` reads it on elements that write CUDA. Here it is read on `Node`s, which
write the fewest NumPy calls: scalars are not multiplied into arrays but carried along as a factor
until an addition needs it, and an average that decays keeps its factor for the next step. The text
of that example is::

    def begin(settings, scales):
        (s_momentum, s_rate,) = settings
        (c0,) = scales
        d0 = c0 * s_momentum
        f0 = 1.0
        if d0 < 0.0009765625:
            f0, d0 = d0, 1.0
        k0 = 1.0 / d0
        k1 = d0 * s_rate * -1.0
        def step(p, g, m0, t):
            (t0,) = t
            if f0 != 1.0:
                multiply(m0, f0, m0)
            multiply(g, k0, t0)
            add(m0, t0, m0)
            multiply(m0, k1, t0)
            add(p, t0, p)
        return step, (d0,), (f0, k0, k1,)

The average is the array times its scale ``d0``. So a decay passes over no memory. The array is
multiplied out when the scale gets small, every 66 steps for a decay of 0.9. Fading values then
become 0. Multiplied by 0.9 at every step they would end at the smallest subnormal number and stay
there, and a pass over subnormals takes 45 times as long.

From some thousand elements on, `kernels.cpu.steps` makes the same calls in one loop in C, with the
numbers that `begin` returns last. The results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.forking import cached_property
from gpugrad.kernels.codegen.steps import StepKernel
from gpugrad.optim.nodes import XP, Node, SettingNames
from gpugrad.optim.passes import Passes, Writer

Formula = Callable[..., Sequence[Any]]
"""``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``."""


class Rule:
    """An update rule, compiled when first needed: for the CPU, and for GPUs.

    Args:
        name: the name of its kernels.
        formula: ``formula(xp, s, p, g, *slots)``, which returns the new ``(p, *slots)``.
        settings: the names of the numbers in `s`.
        n_slots: the number of averages.

    Attributes:
        kernel: its kernels.
    """

    def __init__(self, name: str, formula: Formula, settings: Sequence[str], n_slots: int) -> None:
        self._formula, self._settings, self._n_slots = formula, tuple(settings), n_slots
        self.kernel = StepKernel(name, formula, settings, n_slots)

    @cached_property
    def passes(self) -> Passes:
        """The function of the module's docstring."""
        nodes: list[Node] = []
        names = ["p", "g", *(f"m{i}" for i in range(self._n_slots))]
        raw = [Node(nodes, "input", name=name) for name in names]
        results = list(self._formula(XP, SettingNames(self._settings), *raw))
        return Writer(nodes, raw, results, self._settings).write()
