"""Data for training: datasets larger than memory, batches in seeded order, and augmentation.

>>> x, y = np.arange(10.0), np.arange(10)
>>> loader = gg.data.DataLoader(gg.data.Arrays(x, y), batch_size=4, shuffle=True, seed=0)
>>> for epoch in range(2):
...     print([len(labels) for _, labels in loader])
[4, 4, 2]
[4, 4, 2]
"""

from gpugrad.core.known_as import answer_missing
from gpugrad.data import augment
from gpugrad.data.datasets import Arrays, Dataset, Lines, Windows, open_npy, open_text
from gpugrad.data.loader import DataLoader, LoaderState

__all__ = [
    "Arrays",
    "DataLoader",
    "Dataset",
    "Lines",
    "LoaderState",
    "Windows",
    "augment",
    "open_npy",
    "open_text",
]

answer_missing(__name__)


def __dir__() -> list[str]:
    return __all__
