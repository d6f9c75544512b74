"""From a traced program to one that can be replayed: passes, the memory limit, groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpugrad.core.backend import NUMPY
from gpugrad.core.format import format_bytes
from gpugrad.core.settings import numerics
from gpugrad.errors import ArgumentError, OutOfMemoryError
from gpugrad.function.cpu.c_loop import Body, CLoop, with_own_results, with_transposes
from gpugrad.function.cpu.c_program import (
    CProgram,
    is_worth_compiling,
    is_worth_looping,
    load_ahead,
)
from gpugrad.function.cpu.c_replay import CReplay
from gpugrad.function.cpu.replay import CpuReplay
from gpugrad.function.cpu.view_layouts import scalars_as_views
from gpugrad.function.gpu.replay import Launches
from gpugrad.function.memory import measure
from gpugrad.function.passes import pass_names, run_passes
from gpugrad.function.passes.effects import (
    move_updates_last,
    record_undo,
    run_on_host,
    run_or_restore,
    run_or_undo,
)
from gpugrad.function.passes.remat import rematerialize
from gpugrad.kernels.codegen.code import NoCodeError
from gpugrad.trace.program import Program
from gpugrad.trace.tracing import Tracing

MEMORY = ("arena", "in place")
"""How a replay reuses memory. ``"arena"``: on the CPU results go to planned buffers. ``"in
place"``: a result may overwrite what it is computed from, and a Variable's new value its old one;
`Function.memory` counts the two once in either case.
"""


class Options(NamedTuple):
    """The options of `gg.function` about optimization; `name` is the function's name."""

    name: str
    passes: tuple[str, ...]
    remat: bool
    memory_limit: int | None

    @classmethod
    def of(
        cls, name: str, passes: Sequence[str] | None, remat: str | None, memory_limit: int | None
    ) -> Options:
        """Check that the options fit together.

        Raises:
            ArgumentError: they do not.
        """
        every = (*pass_names(), *MEMORY)
        chosen = every if passes is None else tuple(passes)
        if unknown := set(chosen) - set(every):
            raise ArgumentError(f"function: no passes {sorted(unknown)}; choose from {every}.")
        if remat not in (None, "auto"):
            raise ArgumentError(f"function: remat must be 'auto' or None, got {remat!r}.")
        if remat and memory_limit is None:
            raise ArgumentError("function: remat='auto' needs memory_limit=, in bytes, to fit.")
        if memory_limit is not None and (type(memory_limit) is not int or memory_limit < 0):
            raise ArgumentError(f"function: memory_limit must be bytes, got {memory_limit!r}.")
        return cls(name, chosen, remat is not None, memory_limit)

    def is_worth_masking(self, nans: int) -> bool:
        """Whether so many replays have met a NaN that masked products are worth another trace.

        The first may stay the only one, and a limit is planned for one program.
        """
        return nans > 1 and self.memory_limit is None


def optimized(program: Program, options: Options) -> Program:
    """The program after the passes of both places, fitted to the memory limit.

    Raises:
        OutOfMemoryError: a replay would take more than the limit.
    """
    if numerics():  # each step is executed and checked by itself
        return program
    program = run_passes(program, "both", options.passes)
    limit = options.memory_limit
    if limit is None:
        return program

    def peak(program: Program) -> int:
        return measure(*planned(program, options, load=False)).peak

    needed = least = peak(program)
    if needed > limit and options.remat:
        program, least = rematerialize(program, limit, peak)
    if least > limit:
        if options.remat:
            reason = f"and at least {format_bytes(least)} with all recomputation"
        else:
            reason = "and remat='auto', which recomputes values instead of keeping them, is off"
        raise OutOfMemoryError(
            f"{options.name}: a replay takes {format_bytes(needed)}, {reason}; memory_limit is "
            f"{format_bytes(limit)}. Use smaller batches, or a higher limit."
        )
    return program


class FirstCall(Tracing):
    """The trace of a first call, which takes no effect: the call is a replay, as later ones are.

    A replay's last bits can differ from those of eager ops: a run that was resumed would differ
    from one that was not. Effects that cannot be undone, such as prints, and new Variables have
    happened, and so count.
    """

    def _takes_effect(self) -> bool:
        happened = any(s.call is not None and s.undo is None for s in self.program.steps)
        return self.makes is not None or happened


class MaskedCall(FirstCall):
    """The same for a function whose replay has met a NaN: gradients have masked products."""

    masks = True


def planned(
    program: Program, options: Options, load: bool = True, times: int = 1
) -> tuple[Program, Any]:
    """The program in groups or in kernels, and the object that replays it.

    Without `load` C kernels are not compiled, and the object can only be measured. `times` is how
    often a call replays it.
    """
    xp = next((s.xp for s in program.steps if s.xp not in (None, NUMPY)), NUMPY)
    if xp is not NUMPY:
        program = run_on_host(program)
    if numerics():
        return program, CpuReplay(program, arena=False, in_place=False)
    if xp is not NUMPY and "groups" in options.passes:
        launches = Launches(program, xp, options.passes, "in place" in options.passes)
        return launches.program, launches
    program = move_updates_last(program)
    memory = [name in options.passes for name in MEMORY]
    # C replays take some memory that a plan does not count, so a limit excludes them
    fits = "groups" in options.passes and options.memory_limit is None
    if xp is NUMPY and fits and is_worth_compiling(program, times):
        if load:
            load_ahead(program)
        compiled = CProgram(run_passes(program, "c", options.passes))
        if compiled.kernels and (not load or compiled.load()):
            return compiled.program, CReplay(compiled, *memory)
    program = run_passes(program, "cpu", options.passes)
    return program, CpuReplay(program, *memory)


def planned_loop(body: Body, options: Options, times: int | None) -> CLoop | None:
    """The loop in C that runs a body on NumPy arrays; None if a step of the body is not C.

    `times` is how often it runs; None if it is a step of another loop in C.
    """
    if numerics() or not {"groups", "arena"} <= {*options.passes}:
        return None
    if times is not None and not is_worth_looping(body.program, times):
        return None
    try:
        program = with_own_results(scalars_as_views(body.program))
        program = run_passes(program, "c", options.passes)
        body = body._replace(program=program)
        body = body if times is None else with_transposes(body)
        loop = CLoop(body, "in place" in options.passes)
    except NoCodeError:
        return None
    return loop if loop.load() else None


class Plan:
    """The program for one signature of a function, its replay, and the form of its result.

    Attributes:
        nans: how many replays have met a NaN that masked products may not have.
        masked: the plan with masked products, which replays such calls from the second one on.
    """

    masked: Plan | None = None
    nans = 0

    def __init__(self, program: Program, result: Any, options: Options) -> None:
        undoable = program if numerics() else record_undo(program)
        self.program, self.replay = planned(optimized(undoable, options), options)
        self.run: Callable[..., list[Any]] = self.replay
        if undoable is not program:
            self.run = functools.partial(run_or_undo, self.replay)
        if numerics():
            self.run = functools.partial(run_or_restore, self.program, self.replay)
        self.result = result
        self.fits: Any = None  # `Signature.test`, from the first replay on
        program.forget_arrays()
