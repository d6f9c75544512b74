"""Blocks that wait for, or count, each other: a model of a GPU's weak memory runs their source.

The shim runs one block at a time on one memory, so it cannot see a missing fence. Here the lines of
the barriers become steps of threads, in every order. A write is seen outside its block only after a
fence that follows it, in the same thread or behind a barrier of the block. A thread sees what other
blocks have published up to its last fence, or up to one before a barrier of its block.
"""

import re
from pathlib import Path

import pytest

import gpugrad.kernels
from gpugrad.kernels.runtime.launch import read_source

SOURCES = {p.name: p.read_text() for p in Path(gpugrad.kernels.__file__).parent.glob("*/*.cu*")}

STEPS = {
    "sync": r"__syncthreads\(\);|E::arrived\(\);",
    "leader": r"if \(!\(threadIdx\.x \| threadIdx\.y \| threadIdx\.z\)\) \{|if \(counts\) \{",
    "end": r"^\}",
    "fence": r"(if \(complete\) )?__threadfence\(\);",
    "count": r"(unsigned before|others) = atomicAdd\((arrived|\(unsigned\*\)).*\);",
    "spin": r"while \(.*\*\(volatile unsigned\*\)arrived\) & top\)\) __nanosleep\(32\);",
    "decide": r"last = \(before & 0x7FFFFFFFu\) == others;|complete = others \+ 1 == .*;",
    "write": r"atomicAdd\(to \+ .*\);",
    "read": r"if \(counted && complete\)|return last;",
}
"""What a line does; all other lines have nothing to do with other threads."""

WATCHED = re.compile(r"__sync|fence|atomic|volatile|while|__nanosleep|last\b|complete\b|counts\b")


def steps_of(text):
    """(step, whether only the first thread of a block takes it), in the order of the lines."""
    found, leader = [], False
    for line in (line.partition("//")[0].strip() for line in text.splitlines()):
        step = next((s for s, how in STEPS.items() if re.match(how, line)), None)
        if step == "leader":
            leader = True
        elif step == "end":
            leader = False
        elif step:
            found.append((step, leader))
        elif WATCHED.search(line) and not re.match(
            r"(__shared__ )?bool |const unsigned top|if \(last\) \*arrived = before - others;|//",
            line,
        ):
            raise AssertionError(f"the model does not know the line {line!r}")
    return found


def function(source, name):
    """The lines of a function's body."""
    text = source[re.search(rf"\b{name}\(", source).start() :]
    return text[text.index("{\n") + 2 : text.index("\n}\n")]


BLOCKS, THREADS = 2, 2


def violations(program):
    """What goes wrong in some order of the threads' steps; `program` is of each thread."""
    n = BLOCKS * THREADS
    # by thread: place, cells it knows, own unpublished cells, whether it knows `last`
    start = (tuple((0, frozenset(), frozenset(), None) for _ in range(n)), frozenset(), 0)
    todo, seen, wrong = [start], {start}, set()
    while todo:
        threads, published, arrived = todo.pop()
        moved = False
        for t in range(n):
            place, view, own, last = threads[t]
            if place == len(program):
                continue
            (step, by_leader), mates = program[place], [m for m in range(n) if m // 2 == t // 2]
            then, now, count = list(threads), published, arrived
            if by_leader and t % THREADS:
                then[t] = place + 1, view, own, last
            elif step == "sync":
                if any(threads[m][0] < place for m in mates):
                    continue
                if threads[t][0] == place and any(threads[m][0] == place for m in mates if m != t):
                    every = [threads[m] for m in mates]
                    view = frozenset().union(*(e[1] for e in every))
                    own = frozenset().union(*(e[2] for e in every))
                    known = next((e[3] for e in every if e[3] is not None), None)
                    for m in mates:
                        then[m] = threads[m][0] + 1, view, own, known
                else:
                    wrong.add("a barrier that not all threads of the block reach")
                    continue
            else:
                if step == "write":
                    own = own | {t}
                elif step == "fence":
                    now = published | own
                    view = view | now
                elif step == "count":
                    count, last = arrived + 1, ("place", arrived)
                elif step == "spin" and arrived < BLOCKS:
                    continue
                elif step == "decide":
                    last = last[1] == BLOCKS - 1
                elif step in ("read", "read all"):
                    if step == "read" and type(last) is not bool:
                        wrong.add("a thread does not know whether its block is the last")
                    elif (step == "read all" or last) and not view | own >= set(range(n)):
                        wrong.add("a thread reads before it can see all writes")
                then[t] = place + 1, view, own, last
            moved = True
            state = tuple(then), now, count
            if state not in seen:
                seen.add(state)
                todo.append(state)
        if not moved and any(place < len(program) for place, *_ in threads):
            wrong.add("threads wait for ever")
    return wrong


def program_of(name, source):
    """Every thread writes a cell, calls the function, and reads all cells if it may."""
    if name == "attention_grads":  # a step: it counts a tile that it added to in the step before
        loop = steps_of(function(source, name).partition("for (int step = -1;")[2])
        adds = [k for k, (step, _) in enumerate(loop) if step == "write"]
        (at,) = adds
        return [
            *loop[at:][:1],
            *[s for s in loop[at + 1 :] if s[0] == "sync"],
            *loop[:at],
            *loop[at + 1 :],
        ]
    own = steps_of(function(source, name))
    return [("write", False), *own, *([("read all", False)] if name == "grid_barrier" else [])]


HOMES = {
    "grid_barrier": "common.cuh",
    "is_last_block": "common.cuh",
    "attention_grads": "attention.cu",
}


@pytest.mark.parametrize("name", HOMES)
def test_no_order_of_threads_breaks(name):
    program = program_of(name, read_source(HOMES[name]))
    assert {"sync", "fence", "count"} <= {step for step, _ in program}
    assert violations(program) == set()


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.parametrize("step", ["sync", "fence"])
def test_the_model_sees_each_missing_barrier_and_fence(name, step):
    program = program_of(name, read_source(HOMES[name]))
    places = [k for k, (which, _) in enumerate(program) if which == step]
    if name == "attention_grads" and step == "sync":
        places = places[-1:]  # two barriers of the step before, and one after: any of them will do
    for place in places:
        assert violations([s for k, s in enumerate(program) if k != place]), program[place]


# ---- rules of the text


def code_lines(text):
    return [line.partition("//")[0].strip() for line in text.splitlines()]


@pytest.mark.parametrize("name", SOURCES)
def test_loops_that_wait_read_volatile_memory_and_counts_come_after_a_fence(name):
    lines = code_lines(SOURCES[name])
    for before, line in zip(["", *lines], lines, strict=False):
        if "__nanosleep" in line:
            assert "*(volatile unsigned*)" in line, line
        if re.search(r"\w+ = atomic\w+\(", line):
            assert before == "__threadfence();", line


BOUNDS = r"(?:FOR_\w+(?:\(\w+\))? |__launch_bounds__\([^)]*\) )?"
KERNEL = re.compile(rf"__global__ void {BOUNDS}\w+\(([^)]*)\) \{{\n(.*?)\n\}}\n", re.DOTALL)
WAITS = re.compile(r"(?:grid_barrier|is_last_block)\(arrived\)")


@pytest.mark.parametrize("name", SOURCES)
def test_what_other_blocks_wrote_is_not_read_through_the_read_only_cache(name):
    kernels = KERNEL.findall(SOURCES[name])
    calls = sum(len(WAITS.findall(body)) for _, body in kernels)
    assert calls == len(WAITS.findall(SOURCES[name]))
    for parameters, body in kernels:
        after = WAITS.split(body, maxsplit=1)[1:]
        written = [
            p for p in parameters.split(",") if "*" in p and "const" not in p.partition("*")[0]
        ]
        for parameter in written if after else ():
            own = parameter.split()[-1].strip("*")
            reads = [
                line for line in code_lines(after[0])
                if re.search(rf"\b{own}\[(?![^=]*\] = )|(get|get_own)<[^(]*\({own}\b"
                             rf"|(of_channels|each_channel)\([^;]*\b{own}\b", line)
            ]  # fmt: skip
            assert not reads or "__restrict__" not in parameter, (own, reads)
            assert not re.search(rf"\bget<[^(]*\({own}\b|__ldg\([^)]*\b{own}\b", after[0]), own


def test_sums_of_other_blocks_are_read_past_the_first_cache():
    body = function(read_source("attention.cu"), "void store_rounded")
    assert "__ldcg((const float4*)(sums" in body
    assert len(re.findall(r"\bsums\b", body)) == 1
