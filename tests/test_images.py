"""Loaders of pictures: what they return, what they refuse, and what they say to do."""

import builtins
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from proxlearn.errors import InputError
from proxlearn.problems import datasets

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No data folder, and an empty cache."""
    monkeypatch.delenv("PROXLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pictures(tmp_path):
    """A data folder with three small pictures, one of them grey."""
    folder = tmp_path / "data" / "bsds500"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, shape in [("b", (40, 30, 3)), ("a", (30, 40, 3)), ("c", (20, 20))]:
        Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(folder / f"{name}.jpg")
    return tmp_path / "data"


def write_cifar(folder, pictures=None, labels=None):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    if pictures is None:
        pictures = rng.integers(0, 256, (5000, 32, 32, 3), dtype=np.uint8)
    if labels is None:
        labels = rng.permutation(np.repeat(np.arange(10, dtype=np.uint8), 500))
    np.savez(folder / "cifar10_5000.npz", x_train=pictures, y_train=labels)
    return pictures, labels


def test_cifar10_of_a_made_up_file(tmp_path):
    pictures, labels = write_cifar(tmp_path / "data")
    A, b = datasets.cifar10(tmp_path / "data")
    assert A.shape == (5000, 3072)
    assert A.dtype == torch.float64
    assert b.dtype == torch.int64
    np.testing.assert_array_equal(b, labels)
    # channels first: the red pixels of the first picture come first
    np.testing.assert_allclose(A[0, :1024], pictures[0, :, :, 0].reshape(-1) / 255)
    assert 0 <= A.min() < 0.01 < 0.99 < A.max() <= 1


def test_fewer_pictures_are_the_first_of_each_class(tmp_path):
    write_cifar(tmp_path / "data")
    A, b = datasets.cifar10(tmp_path / "data")
    few, which = datasets.cifar10(tmp_path / "data", per_class=3)
    assert which.bincount().tolist() == [3] * 10
    first = (b == 7).nonzero()[:3, 0]
    assert torch.equal(few[which == 7], A[first])
    with pytest.raises(InputError, match="per_class is 501"):
        datasets.cifar10(tmp_path / "data", per_class=501)


@pytest.mark.parametrize(
    ("pictures", "labels", "message"),
    [
        (np.zeros((10, 32, 32, 3), np.uint8), None, r"x_train \(10, 32, 32, 3\) of uint8"),
        (np.zeros((5000, 32, 32, 3), np.float32), None, "of float32"),
        (None, np.zeros(5000, np.uint8), "not 500 times each"),
        (None, np.repeat(np.arange(10.0), 500), "not 500 times each"),
    ],
)
def test_a_wrong_cifar10_file_is_refused(tmp_path, pictures, labels, message):
    write_cifar(tmp_path / "data", pictures, labels)
    with pytest.raises(InputError, match=message) as caught:
        datasets.cifar10(tmp_path / "data")
    assert "\n" not in str(caught.value)


def test_a_damaged_cifar10_file_is_refused(tmp_path):
    (tmp_path / "cifar10_5000.npz").write_bytes(b"PK\x03\x04 half a zip")
    with pytest.raises(InputError, match=r"truncated or no \.npz"):
        datasets.cifar10(tmp_path)


@pytest.mark.parametrize("load", [datasets.cifar10, datasets.bsds_patches])
def test_absent_files_say_what_to_do(load, tmp_path):
    with pytest.raises(InputError, match=r"not on this computer; set PROXLEARN_DATA .* from https"):
        load(tmp_path)


def test_the_cache_is_looked_at_last(tmp_path, monkeypatch):
    write_cifar(tmp_path / "cache" / "proxlearn")
    assert datasets.cifar10(tmp_path)[0].shape == (5000, 3072)
    write_cifar(tmp_path / "own", labels=np.zeros(5000, np.uint8))
    monkeypatch.setenv("PROXLEARN_DATA", str(tmp_path / "own"))
    with pytest.raises(InputError, match="own"):
        datasets.cifar10()


def test_patches_are_stretched_and_have_no_mean(pictures):
    P = datasets.bsds_patches(pictures, count=50, size=8)
    assert P.shape == (50, 64)
    assert P.dtype == torch.float64
    assert P.mean(1).abs().max() < 1e-12
    spread = P.amax(1) - P.amin(1)
    assert (spread < 1).all()
    assert (spread > 0.97).all()  # max - min is far above the 1e-3 that is added to it


def test_the_seed_decides_and_the_order_of_files_does_not(pictures, monkeypatch):
    first = datasets.bsds_patches(pictures, count=20, seed=3)
    assert not torch.equal(first, datasets.bsds_patches(pictures, count=20, seed=4))
    real = Path.glob
    for order in (False, True):
        listed = partial(sorted, reverse=order)
        monkeypatch.setattr(Path, "glob", lambda p, pattern, f=listed: iter(f(real(p, pattern))))
        assert torch.equal(first, datasets.bsds_patches(pictures, count=20, seed=3))


def write_half(folder, width):
    """A picture whose first `width` columns of 64 are of one shade."""
    (folder / "bsds500").mkdir(exist_ok=True)
    half = np.full((64, 64, 3), 128, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64 - width, 3), dtype=np.uint8)
    half[:, width:] = noise
    Image.fromarray(half).save(folder / "bsds500" / "half.jpg", quality=95)


def test_patches_of_one_shade_are_passed_over(tmp_path):
    write_half(tmp_path, 16)
    P = datasets.bsds_patches(tmp_path, count=100)
    assert P.shape == (100, 64)
    assert (P.norm(dim=1) > 0).all()


def test_too_many_patches_of_one_shade_are_refused(tmp_path):
    write_half(tmp_path, 40)
    with pytest.raises(InputError, match=r"of 120 patches are of one shade"):
        datasets.bsds_patches(tmp_path, count=100)


def test_a_picture_that_is_none_is_refused(pictures):
    (pictures / "bsds500" / "a.jpg").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"a\.jpg cannot be read as a picture"):
        datasets.bsds_patches(pictures, count=50)


def test_a_picture_smaller_than_a_patch_is_refused(pictures):
    with pytest.raises(InputError, match=r"c\.jpg has \(20, 20\) pixels; expected at least 25"):
        datasets.bsds_patches(pictures, count=50, size=25)


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "bsds500").mkdir()
    with pytest.raises(InputError, match=r"has no \.jpg files"):
        datasets.bsds_patches(tmp_path)


def test_without_pillow_one_line_says_what_to_do(pictures, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "PIL":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"needs Pillow.*pip install pillow"):
        datasets.bsds_patches(pictures, count=5)


def test_the_real_pictures(data_folder):
    if not (data_folder / "cifar10_5000.npz").is_file():
        pytest.skip("no cifar10_5000.npz in the data folder")
    A, b = datasets.cifar10(data_folder)
    assert b[:5].tolist() == [6, 9, 9, 4, 1]
    assert A[0, 0] == 59 / 255


def test_the_real_patches(data_folder):
    if not (data_folder / "bsds500").is_dir():
        pytest.skip("no bsds500 in the data folder")
    P = datasets.bsds_patches(data_folder, count=100)
    assert P.shape == (100, 64)
    assert 1 < P.norm(dim=1).mean() < 3
