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


def _svd_product(u: Tensor, s: Tensor, vh: Tensor) -> list[Tensor]:
    k = s.shape[-1]
    return [s, u[..., :, :k] * s[..., None, :] @ vh[..., :k, :]]


def _eig_product(w: Tensor, v: Tensor) -> list[Tensor]:
    return [w, v * w[..., None, :] @ inv(v)]


def _eigh_product(w: Tensor, v: Tensor) -> list[Tensor]:
    return [w, v * w[..., None, :] @ v.mT.conj()]


# these alone: only their results are unique up to a factor
_PRODUCTS: dict[str, Callable[..., list[Tensor]]] = {
    "eig": _eig_product,
    "eigh": _eigh_product,
    "svd": _svd_product,
}
