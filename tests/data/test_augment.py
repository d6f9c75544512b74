"""Augmentation of images, in NumPy and on a device."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.errors import ArgumentError, DTypeError, ShapeError

augment = gg.data.augment
IMAGES = np.arange(3 * 2 * 6 * 8, dtype="f4").reshape(3, 2, 6, 8)
CALLS = {
    "flip": lambda x, rng: augment.random_flip(x, rng=rng),
    "crop": lambda x, rng: augment.random_crop(x, size=(4, 5), padding=1, rng=rng),
    "affine": lambda x, rng: augment.random_affine(
        x, rng=rng, degrees=30, translate=0.2, scale=(0.8, 1.2), shear=10
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_and_arrays_get_the_same_changes(name):
    there = CALLS[name](gg.constant(IMAGES), np.random.default_rng(0))
    here = CALLS[name](IMAGES, np.random.default_rng(0))
    assert isinstance(there, gg.Tensor)
    assert type(here) is np.ndarray
    np.testing.assert_allclose(there.numpy(), here)
    again = CALLS[name](IMAGES, np.random.default_rng(1))
    assert not np.array_equal(here, again)


def test_a_flip_reverses_whole_images():
    flipped = augment.random_flip(IMAGES, rng=np.random.default_rng(0), axis=-2)
    which = [np.array_equal(a, b[:, ::-1]) for a, b in zip(flipped, IMAGES, strict=True)]
    kept = [np.array_equal(a, b) for a, b in zip(flipped, IMAGES, strict=True)]
    assert [a != b for a, b in zip(which, kept, strict=True)] == [True] * 3
    assert 0 < sum(which) < 3
    np.testing.assert_array_equal(
        augment.random_flip(IMAGES, rng=np.random.default_rng(0), p=0.0), IMAGES
    )


def test_a_crop_is_a_window_of_its_image():
    rng = np.random.default_rng(0)
    places = set()
    for _ in range(40):
        for crop, image in zip(augment.random_crop(IMAGES, size=5, rng=rng), IMAGES, strict=True):
            top, left = divmod(int(crop[0, 0, 0] - image[0, 0, 0]), 8)
            np.testing.assert_array_equal(crop, image[:, top : top + 5, left : left + 5])
            places.add((top, left))
    assert len(places) == 2 * 4  # every place comes up
    padded = augment.random_crop(IMAGES + 1, size=(8, 10), rng=rng, padding=1)
    np.testing.assert_array_equal(padded, np.pad(IMAGES + 1, ((0, 0), (0, 0), (1, 1), (1, 1))))


def test_an_affine_change_by_nothing_changes_nothing():
    same = augment.random_affine(IMAGES, rng=np.random.default_rng(0))
    np.testing.assert_allclose(same, IMAGES, rtol=1e-5, atol=1e-4)


def test_a_rotation_keeps_a_disk_in_wide_images():
    y, x = np.mgrid[-15:16, -31:32]
    disk = ((x**2 + y**2) < 100).astype("f4")[None, None]
    turned = augment.random_affine(disk, rng=np.random.default_rng(3), degrees=90)
    assert np.mean(np.abs(turned - disk)) < 0.02


def test_images_of_wrong_shape_raise():
    rng = np.random.default_rng(0)
    for call in CALLS.values():
        with pytest.raises(ShapeError, match=r"\(n, channels, height, width\), got \(3, 2\)"):
            call(np.ones((3, 2)), rng)
    with pytest.raises(ShapeError, match=r"a window of \(7, 7\) does not fit"):
        augment.random_crop(IMAGES, size=7, rng=rng)
    with pytest.raises(ArgumentError, match="p must be from 0 to 1"):
        augment.random_flip(IMAGES, rng=rng, p=2)
    for axis in (0, 1, -3, 1.0, True):  # 0 would give images the labels of others
        with pytest.raises(ArgumentError, match=r"axis must be -1 .* or -2"):
            augment.random_flip(IMAGES, rng=rng, axis=axis)
    with pytest.raises(DTypeError, match="images are uint8; interpolation needs floats"):
        augment.random_affine(IMAGES.astype("u1"), rng=rng)
    for call in CALLS.values():
        for batch in ((IMAGES, np.arange(len(IMAGES))), {"x": IMAGES}, [IMAGES]):
            with pytest.raises(ArgumentError, match=r"expected images, got .*batch_map=lambda"):
                call(batch, rng)
    with pytest.raises(ArgumentError, match="scale must be above 0"):
        augment.random_affine(IMAGES, rng=rng, scale=(0, 1))
