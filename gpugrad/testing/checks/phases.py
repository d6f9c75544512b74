"""Samples of decompositions whose vectors have a free sign or phase, which each library chooses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from gpugrad.core.tensor import Tensor
from gpugrad.linalg import inv
from gpugrad.testing.checks.subject import Sample


def comparable(sample: Sample) -> Sample:
    """The sample; where vectors have a free phase, its results are products without it."""
    if sample.op.name not in _PRODUCTS:
        return sample
    return _WithoutPhases(*(getattr(sample, f.name) for f in dataclasses.fields(sample)))


class _WithoutPhases(Sample):
    def call(self, leaves: Sequence[Any]) -> list[Tensor]:
        return _PRODUCTS[self.op.name](*super().call(leaves))


# these alone: only their results are unique up to a factor
_PRODUCTS: dict[str, Callable[..., list[Tensor]]] = {
    "eig": lambda w, v: [w, v * w[..., None, :] @ inv(v)],
    "eigh": lambda w, v: [w, v * w[..., None, :] @ v.mT.conj()],
    "svd": lambda u, s, vh: [
        s,
        u[..., :, : s.shape[-1]] * s[..., None, :] @ vh[..., : s.shape[-1], :],
    ],
}
