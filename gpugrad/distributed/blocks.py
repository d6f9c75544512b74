"""Parameters of which each rank holds a part: a block gathers its own while it runs.

A block runs in `recompute_grad` over `all_gather` of its part. The gradient of that is a
`reduce_scatter`, so autodiff does the rest.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpugrad.core.devices import copy_array
from gpugrad.core.ranks import ranks
from gpugrad.core.tensor import Tensor
from gpugrad.core.variable import Variable
from gpugrad.distributed.sharded import Layout, Part, Sharded, cut_evenly, reads_whole
from gpugrad.distributed.world import World
from gpugrad.errors import ArgumentError
from gpugrad.nn.layers import Sequential
from gpugrad.nn.module import Module
from gpugrad.nn.tree import parts_of, replaced
from gpugrad.optim.optimizer import Optimizer
from gpugrad.transforms.recompute import recompute_grad


def blocks_of(model: Module) -> dict[Module, list[Variable]]:
    """The Modules in a model whose parameters are gathered together, and these.

    They are the Modules in its attributes and in lists of these, and the layers of a Sequential; a
    model without any is its own block. Variables that are the model's own, or are shared by two
    blocks, belong to none.

    >>> [len(v) for v in blocks_of(gg.nn.Sequential(gg.nn.Dense(2, 2), gg.nn.Dense(2, 1))).values()]
    [2, 2]
    """
    blocks = dict.fromkeys(_inside(model)) or {model: None}
    uses = Counter(v._id for block in blocks for v in block.trainable_variables)
    parts = [part for name, value in vars(model).items() for part in parts_of(name, value, Module)]
    direct = {v._id for _, v in parts if isinstance(v, Variable) and model not in blocks}
    return {
        block: [v for v in block.trainable_variables if uses[v._id] == 1 and v._id not in direct]
        for block in blocks
    }


def _inside(model: Module) -> list[Module]:
    found: list[Module] = []
    for name, value in vars(model).items():
        for _, part in parts_of(name, value, Module):
            if isinstance(part, Sequential):
                found += _inside(part)
            elif isinstance(part, Module):
                found.append(part)
    return found


class Block:
    """A Module whose Variables hold this rank's part, and which gathers all parts to run.

    Attributes:
        layout: the parts of all ranks; `Part.place` is that of the Variable in the block.
    """

    def __init__(self, module: Module, variables: Sequence[Variable], world: World) -> None:
        self._module, self._variables = module, variables
        self.layout = Layout(cut_evenly([v.size for v in variables], world.size), variables)
        own = {p.place: p for p in self.layout.parts[world.rank]}
        for k, v in enumerate(variables):
            _, start, stop = own.get(k, Part(k, 0, 0))
            ranks.parts[v._id] = start, v.shape
            v._fits = (stop - start,)
            v._data = copy_array(v._data.reshape(-1)[start:stop])
        module.__dict__["forward"] = functools.partial(recompute_grad(self._gathered), variables)

    def _gathered(self, own: Sequence[Tensor], *args: Any, **keywords: Any) -> Any:
        whole = self.layout.gathered(own)
        values = {self._variables[k]._id: value for k, value in whole.items()}
        module = replaced(self._module, Module, lambda v: values.get(v._id, v))
        del module.__dict__["forward"]
        return module.forward(*args, **keywords)


class ShardedParameters(Sharded):
    """Each rank has and steps its part of the parameters.

    Attributes:
        places: positions of the Variables that all ranks have as a whole.
    """

    def __init__(
        self, name: str, inner: Optimizer, variables: Sequence[Variable], world: World, model: Any
    ) -> None:
        if not isinstance(model, Module) or reads_whole(inner):
            raise ArgumentError(
                f"{name}: shard='parameters' takes a gg.nn.Module, and no optimizer that reads "
                f"whole Variables, got a {type(model).__name__} and {type(inner).__name__}. "
                "shard='optimizer' takes all."
            )
        blocks = blocks_of(model)
        for module, own in blocks.items():
            if len({v.dtype for v in own}) > 1 or any(v._id in ranks.parts for v in own):
                raise ArgumentError(
                    f"{name}: the Variables of the {type(module).__name__} have several dtypes, or "
                    "are sharded already."
                )
        super().__init__(name, inner, variables, world)
        chosen = {v._id: inner._group_of(v) for v in variables}
        self._keep_groups(chosen)
        sharded: set[int] = set()
        for module, own in blocks.items():
            if own:
                block = Block(module, own, world)
                mine = {p.place: p for p in block.layout.parts[world.rank]}
                self._own |= {own[k]._id: (own[k], p) for k, p in mine.items()}
                sharded |= {v._id for v in own}
        self.places = {k for k, v in enumerate(variables) if v._id not in sharded}
        for k in self.places:
            v = variables[k]
            self._own[v._id] = v, Part(k, 0, v.size)

    def step(self, grads: Sequence[Any], means: Sequence[Any], when: Any) -> None:
        """Step with sums over ranks of gradients of parts, and means of the others.

        Args:
            grads: of all Variables.
            means: of those at `places`, and None elsewhere.
        """
        pairs = enumerate(zip(grads, self._variables, strict=True))
        own = [(g / self._world.size, v) for k, (g, v) in pairs if k not in self.places and v.size]
        others = zip(means, self._variables, strict=True)
        self._apply(own, [(g, v) for g, v in others if g is not None], when)
