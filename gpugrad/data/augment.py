"""Random changes of a batch of images (n, channels, height, width), for `DataLoader(batch_map=)`.

Each takes the images first and a `numpy.random.Generator` as `rng`, works on the whole batch at
once, and returns NumPy arrays, or for Tensors a Tensor on their device.

>>> from functools import partial
>>> images = np.arange(32.0).reshape(2, 1, 4, 4)
>>> flip = partial(gg.data.augment.random_flip, p=1.0)
>>> flip(images, rng=np.random.default_rng(0))[0, 0, 0].tolist()
[3.0, 2.0, 1.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpugrad.core.arguments import ABOVE_0, COUNT, FRACTION, NOT_NEGATIVE, WHOLE, takes
from gpugrad.core.backend import TENSOR
from gpugrad.core.convert import constant
from gpugrad.core.known_as import answer_missing
from gpugrad.core.tensor import Tensor, tensor
from gpugrad.errors import ArgumentError, DTypeError, ShapeError, saying_where
from gpugrad.nn import functional

__all__ = ["random_affine", "random_crop", "random_flip"]

answer_missing(__name__)


@saying_where
@takes(p=FRACTION)
def random_flip(images: Any, *, rng: np.random.Generator, p: float = 0.5, axis: int = -1) -> Any:
    """Reverse each image along an axis with probability `p`: -1 left and right, -2 up and down.

    Raises:
        ShapeError: the images do not have four axes.
        ArgumentError: `p` is not from 0 to 1, or the axis is another one.

    >>> images = np.arange(4.0).reshape(1, 1, 2, 2)
    >>> gg.data.augment.random_flip(images, rng=np.random.default_rng(0), p=1.0)[0, 0].tolist()
    [[1.0, 0.0], [3.0, 2.0]]
    """
    images = _checked("random_flip", images, rng)
    if type(axis) is not int or axis not in (-2, -1, 2, 3):
        raise ArgumentError(
            f"random_flip: axis must be -1 for left and right or -2 for up and down, got {axis!r}."
        )
    chosen = (rng.random(len(images)) < p)[:, None, None, None]
    if isinstance(images, Tensor):
        flipped = TENSOR.flip(images, axis=axis)
        return TENSOR.where(constant(chosen, device=images.device), flipped, images)
    return np.where(chosen, np.flip(images, axis), images)


@saying_where
@takes(padding=WHOLE)
def random_crop(
    images: Any, *, size: int | tuple[int, int], rng: np.random.Generator, padding: int = 0
) -> Any:
    """A window of each image, at a random place, after padding it with `padding` zeros.

    Raises:
        ShapeError: the images do not have four axes, or are smaller than the window.
        ArgumentError: a size is not a whole number above 0.

    >>> images = np.ones((5, 3, 8, 8))
    >>> gg.data.augment.random_crop(images, size=6, rng=np.random.default_rng(0)).shape
    (5, 3, 6, 6)
    """
    images = _checked("random_crop", images, rng)
    sizes = size if isinstance(size, tuple) and len(size) == 2 else (size, size)
    height, width = (COUNT("random_crop", "size", s) for s in sizes)
    lengths = [images.shape[2] + 2 * padding, images.shape[3] + 2 * padding]
    if height > lengths[0] or width > lengths[1]:
        raise ShapeError(
            f"random_crop: a window of {(height, width)} does not fit into images of shape "
            f"{tuple(images.shape)} with padding={padding}."
        )
    n = len(images)
    tops = rng.integers(lengths[0] - height + 1, size=n)
    lefts = rng.integers(lengths[1] - width + 1, size=n)
    rows = (tops[:, None] + np.arange(height))[:, None, :, None]
    columns = (lefts[:, None] + np.arange(width))[:, None, None, :]
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    examples = np.arange(n)[:, None, None, None]
    channels = np.arange(images.shape[1])[None, :, None, None]
    if isinstance(images, Tensor):
        padded = TENSOR.pad(images, pad_width=around) if padding else images
        return padded[examples, channels, rows, columns]
    padded = np.pad(images, around) if padding else images
    return padded[examples, channels, rows, columns]


def __dir__() -> list[str]:
    return __all__


@saying_where
@takes(degrees=NOT_NEGATIVE, translate=NOT_NEGATIVE, shear=NOT_NEGATIVE)
def random_affine(
    images: Any,
    *,
    rng: np.random.Generator,
    degrees: float = 0.0,
    translate: float = 0.0,
    scale: tuple[float, float] = (1.0, 1.0),
    shear: float = 0.0,
) -> Any:
    """Rotate, move, scale and shear each image by random amounts, with bilinear interpolation.

    Args:
        images: floats of shape (n, channels, height, width).
        rng: the generator.
        degrees: the largest rotation in degrees, in both directions.
        translate: the largest shift, as a fraction of height and width, in both directions.
        scale: smallest and largest factor.
        shear: the largest shear in degrees, in both directions.

    Returns:
        Images of the same shape; pixels from outside the image are 0.

    Raises:
        ShapeError: the images do not have four axes.
        ArgumentError: a number is not 0 or above, or a scale not above 0.
        DTypeError: the images are integers, which cannot be interpolated.

    >>> images = np.ones((5, 1, 8, 8), "float32")
    >>> turned = gg.data.augment.random_affine(images, rng=np.random.default_rng(0), degrees=10)
    >>> turned.shape, bool((turned <= 1).all())
    ((5, 1, 8, 8), True)
    """
    images = _checked("random_affine", images, rng)
    if images.dtype.kind in "biu":
        raise DTypeError(
            f"random_affine: images are {images.dtype}; interpolation needs floats, such as "
            "images / np.float32(255)."
        )
    if not isinstance(scale, tuple) or len(scale) != 2:
        raise ArgumentError(f"random_affine: scale must be a pair, got {scale!r:.60}.")
    for factor in scale:
        ABOVE_0("random_affine", "scale", factor)
    if scale[0] > scale[1]:
        raise ArgumentError(f"random_affine: scale must be a pair that rises, got {scale!r:.60}.")
    n = len(images)
    angle, slant = (np.radians(rng.uniform(-d, d, n)) for d in (degrees, shear))
    factors = np.exp(rng.uniform(math.log(scale[0]), math.log(scale[1]), n))
    move = rng.uniform(-2 * translate, 2 * translate, (n, 2))  # heights and widths are 2 long
    cos, sin = np.cos(angle) / factors, np.sin(angle) / factors
    ratio = images.shape[2] / images.shape[3]  # so that a rotation does not shear wide images
    theta = np.empty((n, 2, 3))
    theta[:, 0] = np.stack([cos + sin * np.tan(slant), -sin * ratio, move[:, 0]], -1)
    theta[:, 1] = np.stack([(sin - cos * np.tan(slant)) / ratio, cos, move[:, 1]], -1)
    x = tensor(images)
    placed = constant(theta, x.dtype, device=x.device)
    y = functional.grid_sample(x, functional.affine_grid(placed, x.shape))
    return y if isinstance(images, Tensor) else y.numpy()


def _checked(name: str, images: Any, rng: Any) -> Any:
    if isinstance(images, (tuple, list, Mapping)):
        raise ArgumentError(
            f"{name}: expected images, got a {type(images).__name__}. For batches of images and "
            f"labels write batch_map=lambda batch, rng: ({name}(batch[0], rng=rng), batch[1])."
        )
    if not isinstance(rng, np.random.Generator):
        raise ArgumentError(f"{name}: rng must be a numpy.random.Generator, got {rng!r:.60}.")
    if np.ndim(images) != 4:
        raise ShapeError(
            f"{name}: images must have the shape (n, channels, height, width), got "
            f"{np.shape(images)}."
        )
    return images if isinstance(images, Tensor) else np.asarray(images)
