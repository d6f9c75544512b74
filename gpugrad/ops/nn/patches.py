"""Patches of images: as columns and back, as channels, and channels in another order."""

import math

import numpy as np

from gpugrad.core.samples import shaped
from gpugrad.errors import ArgumentError, ShapeError
from gpugrad.ops.arrays.windows import crop_last, examples, ints, pad_last, reach
from gpugrad.registry.record import op


def _patch_geometry(name, kernel_size, dilation, padding, stride):
    kernel = ints(name, "kernel_size", kernel_size, 2, 1)
    dilations, strides = ints(name, "dilation", dilation, 2, 1), ints(name, "stride", stride, 2, 1)
    return kernel, dilations, tuple((p, p) for p in ints(name, "padding", padding, 2, 0)), strides


def _unfold_ref(x, kernel_size, dilation=1, padding=0, stride=1):
    kernel, (d, e), pairs, (s, t) = _patch_geometry("", kernel_size, dilation, padding, stride)
    x = np.pad(x, ((0, 0),) * (x.ndim - 2) + pairs)
    size = [(k - 1) * m + 1 for k, m in zip(kernel, (d, e), strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=(-2, -1))
    view = np.moveaxis(view[..., ::s, ::t, ::d, ::e], (-2, -1), (-4, -3))
    return view.reshape(*x.shape[:-3], x.shape[-3] * math.prod(kernel), -1)


@op(
    kinds="fc",
    ref=_unfold_ref,
    samples=shaped(
        ([(1, 2, 3, 3)], {"kernel_size": 2}),
        ([(1, 1, 4, 3)], {"kernel_size": (3, 2), "padding": (1, 0), "stride": (2, 1)}),
        ([(2, 5, 2)], {"kernel_size": (2, 1), "dilation": 2}),
    ),
    errors=[
        ([np.ones((3, 3))], {"kernel_size": 2}, ShapeError, r"unfold.*\(3, 3\)"),
        ([np.ones((1, 1, 2, 2))], {"kernel_size": 3}, ShapeError, "windows"),
        ([np.ones((1, 1, 2, 2))], {"kernel_size": 1, "padding": -1}, ArgumentError, "padding=-1"),
    ],
)
def unfold(xp, x, /, kernel_size, dilation=1, padding=0, stride=1):
    """Patches of images as columns (im2col).

    Args:
        x: array of shape (N, C, H, W), or (C, H, W).
        kernel_size: int or a pair, height and width of a patch.
        dilation: int or a pair, from one element of a patch to the next.
        padding: int or a pair, zeros added around the image.
        stride: int or a pair, from one patch to the next.

    Returns:
        Tensor of shape (N, C * patch size, number of patches), or without N.

    >>> print(gg.unfold([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], (2, 1)))
    [[1. 2. 3. 4.]
     [3. 4. 5. 6.]]
    """
    kernel, dilations, pairs, strides = _patch_geometry(
        "unfold", kernel_size, dilation, padding, stride
    )
    x, single = examples(xp, "unfold", 2, x)
    x = pad_last(xp, x, pairs)
    for k, s, d in zip(kernel, strides, dilations, strict=True):
        x = xp.windows(x, k, axis=2 if x.ndim == 4 else 3, step=s, dilation=d)
    n, c, h, w, *_ = x.shape
    x = xp.permute_dims(x, (0, 1, 4, 5, 2, 3))
    columns = (c * math.prod(kernel), h * w)
    return xp.reshape(x, columns if single else (n, *columns))


def _fold_ref(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The definition: the transposed matrix of `unfold`."""
    size = ints("", "", output_size, 2, 1)
    c = x.shape[-2] // math.prod(ints("", "", kernel_size, 2, 1))
    basis = np.eye(c * math.prod(size)).reshape(-1, c, *size)
    columns = _unfold_ref(basis, kernel_size, dilation, padding, stride)
    out = np.tensordot(x, columns, ((-2, -1), (-2, -1)))
    return out.reshape(*x.shape[:-2], c, *size)


@op(
    kinds="fc",
    ref=_fold_ref,
    samples=shaped(
        ([(1, 4, 4)], {"output_size": 3, "kernel_size": 2}),
        (
            [(1, 6, 4)],
            {"output_size": (4, 3), "kernel_size": (3, 2), "padding": (1, 0), "stride": (2, 1)},
        ),
        ([(4, 6)], {"output_size": (5, 2), "kernel_size": (2, 1), "dilation": (2, 1)}),
    ),
    errors=[
        ([np.ones((1, 4, 3))], {"output_size": 3, "kernel_size": 2}, ShapeError, r"\(2, 2\)"),
        ([np.ones((1, 3, 4))], {"output_size": 3, "kernel_size": 2}, ShapeError, r"\(1, 3, 4\)"),
        ([np.ones(4)], {"output_size": 3, "kernel_size": 2}, ShapeError, r"fold.*\(4,\)"),
    ],
)
def fold(xp, x, /, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Images from their patches, which add up where they overlap (col2im): the adjoint of `unfold`.

    Args:
        x: array of shape (N, C * patch size, number of patches), or without N.
        output_size: int or a pair, height and width of the images.
        kernel_size, dilation, padding, stride: as for `unfold`.

    Returns:
        Tensor of shape (N, C, *output_size), or without N.

    >>> print(gg.fold([[1.0, 2.0], [10.0, 20.0]], (3, 1), (2, 1)))
    [[[ 1.]
      [12.]
      [20.]]]
    """
    size = ints("fold", "output_size", output_size, 2, 1)
    kernel, dilations, pairs, strides = _patch_geometry(
        "fold", kernel_size, dilation, padding, stride
    )
    padded = [n + before + after for n, (before, after) in zip(size, pairs, strict=True)]
    places = tuple(
        (n - reach(k, d)) // s + 1
        for n, k, s, d in zip(padded, kernel, strides, dilations, strict=True)
    )
    patch = math.prod(kernel)
    fits = min(places) > 0 and x.ndim in (2, 3) and not x.shape[-2] % patch
    if not fits or x.shape[-1] != math.prod(places):
        raise ShapeError(
            f"fold: x {x.shape} must be (N, C * {patch}, {math.prod(places)}), or the same without "
            f"N: images of {size} have {places} patches of {kernel}."
        )
    channels = (*x.shape[:-2], x.shape[-2] // patch)
    x = xp.reshape(x, (*channels, *kernel, *places))
    n = len(channels)
    x = xp.permute_dims(x, (*range(n), n + 2, n + 3, n, n + 1))
    for axis in (1, 0):
        x = xp.overlap_add(
            x, axis=n + axis, length=padded[axis], step=strides[axis], dilation=dilations[axis]
        )
    return crop_last(xp, x, pairs)


def _image(name, x):
    if x.ndim < 3:
        raise ShapeError(f"{name}: x must have the axes (..., C, H, W); its shape is {x.shape}.")
    return x.shape[:-3], x.shape[-3:]


def _shuffle_ref(x, upscale_factor):
    r = upscale_factor
    out = np.empty((*x.shape[:-3], x.shape[-3] // r**2, x.shape[-2] * r, x.shape[-1] * r), x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return out


@op(
    kinds="fci",
    native_half=True,
    ref=_shuffle_ref,
    samples=shaped(([(4, 2, 1)], {"upscale_factor": 2}), ([(2, 8, 1, 1)], {"upscale_factor": 2})),
    errors=[
        ([np.ones((3, 2, 2)), 2], {}, ShapeError, r"pixel_shuffle.*\(3, 2, 2\)"),
        ([np.ones((2, 2)), 2], {}, ShapeError, r"pixel_shuffle.*\(2, 2\)"),
        ([np.ones((4, 2, 2)), 0], {}, ArgumentError, "upscale_factor=0"),
    ],
)
def pixel_shuffle(xp, x, /, upscale_factor):
    """Channels as pixels: each r * r channels become blocks of one channel.

    Args:
        x: array of shape (..., C * r * r, H, W).
        upscale_factor: the int r.

    Returns:
        Tensor of shape (..., C, H * r, W * r).

    >>> print(gg.pixel_shuffle([[[1.0]], [[2.0]], [[3.0]], [[4.0]]], 2))
    [[[1. 2.]
      [3. 4.]]]
    """
    (r,) = ints("pixel_shuffle", "upscale_factor", upscale_factor, 1, 1)
    lead, (c, h, w) = _image("pixel_shuffle", x)
    if c % (r * r):
        raise ShapeError(
            f"pixel_shuffle: the {c} channels of x {x.shape} are not divisible by {r} * {r}."
        )
    n = len(lead)
    x = xp.reshape(x, (*lead, c // (r * r), r, r, h, w))
    x = xp.permute_dims(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return xp.reshape(x, (*lead, c // (r * r), h * r, w * r))


def _unshuffle_ref(x, downscale_factor):
    r = downscale_factor
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    stacked = np.stack(parts, axis=-3)
    return stacked.reshape(*x.shape[:-3], -1, *stacked.shape[-2:])


@op(
    kinds="fci",
    native_half=True,
    ref=_unshuffle_ref,
    samples=shaped(*[([s], {"downscale_factor": 2}) for s in ((1, 4, 2), (2, 2, 2, 2))]),
    errors=[
        ([np.ones((1, 3, 2)), 2], {}, ShapeError, r"pixel_unshuffle.*\(1, 3, 2\)"),
        ([np.ones((1, 2, 2)), 0], {}, ArgumentError, "downscale_factor=0"),
    ],
)
def pixel_unshuffle(xp, x, /, downscale_factor):
    """Pixels as channels: each block of r * r pixels becomes r * r channels.

    Args:
        x: array of shape (..., C, H * r, W * r).
        downscale_factor: the int r.

    Returns:
        Tensor of shape (..., C * r * r, H, W).

    >>> print(gg.pixel_unshuffle([[[1.0, 2.0], [3.0, 4.0]]], 2))
    [[[1.]]
    <BLANKLINE>
     [[2.]]
    <BLANKLINE>
     [[3.]]
    <BLANKLINE>
     [[4.]]]
    """
    (r,) = ints("pixel_unshuffle", "downscale_factor", downscale_factor, 1, 1)
    lead, (c, h, w) = _image("pixel_unshuffle", x)
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: height and width of x {x.shape} must divide by {r}.")
    n = len(lead)
    x = xp.reshape(x, (*lead, c, h // r, r, w // r, r))
    x = xp.permute_dims(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return xp.reshape(x, (*lead, c * r * r, h // r, w // r))


def _channel_shuffle_ref(x, groups):
    step = x.shape[1] // groups
    return np.concatenate([x[:, k::step] for k in range(step)], axis=1)


@op(
    kinds="fci",
    native_half=True,
    ref=_channel_shuffle_ref,
    samples=shaped(
        *[([s], {"groups": n}) for s, n in (((2, 4), 2), ((1, 6, 2), 2), ((1, 6, 1, 2), 3))]
    ),
    errors=[
        ([np.ones((1, 3, 2)), 2], {}, ShapeError, r"channel_shuffle.*\(1, 3, 2\)"),
        ([np.ones(3), 3], {}, ShapeError, r"channel_shuffle.*\(3,\)"),
        ([np.ones((1, 2)), 0], {}, ArgumentError, "groups=0"),
    ],
)
def channel_shuffle(xp, x, /, groups):
    """Reorder channels: the first of each group, then the second of each, and so on.

    Args:
        x: array of shape (N, C, ...).
        groups: int that divides C.

    >>> print(gg.channel_shuffle([[1.0, 2.0, 3.0, 4.0]], 2))
    [[1. 3. 2. 4.]]
    """
    (groups,) = ints("channel_shuffle", "groups", groups, 1, 1)
    if x.ndim < 2 or x.shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: x {x.shape} must have the axes (N, C, ...), with C divisible by "
            f"{groups} groups."
        )
    n, c, *rest = x.shape
    split = xp.reshape(x, (n, groups, c // groups, *rest))
    return xp.reshape(xp.swapaxes(split, 1, 2), x.shape)
