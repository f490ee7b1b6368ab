"""Loaders of real data: what they return, where they look, what they say when nothing works."""

import builtins
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from proxlearn.errors import InputError
from proxlearn.problems import datasets

LOADERS = {"ionosphere": (351, 34, 225), "spambase": (4601, 57, 1813)}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of the test's own, and no data folder."""
    monkeypatch.delenv("PROXLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "proxlearn"


def fake_openml(features, labels):
    calls = []

    def fetch_openml(**kwargs):
        calls.append(kwargs)
        return SimpleNamespace(data=features, target=labels)

    return fetch_openml, calls


@pytest.mark.parametrize("name", LOADERS)
def test_shape_type_and_labels(name, data_folder):
    m, n, positives = LOADERS[name]
    A, b = getattr(datasets, name)(data_folder)
    assert A.shape == (m, n)
    assert b.shape == (m,)
    assert A.dtype == b.dtype == torch.float64
    assert sorted(b.unique().tolist()) == [0, 1]
    assert int(b.sum()) == positives


def test_ionosphere_is_raw_and_in_uci_order(data_folder):
    A, b = datasets.ionosphere(data_folder)
    assert A[0, :5].tolist() == [1, 0, 0.99539, -0.05889, 0.85243]
    assert (A[:, 1] == 0).all()
    assert b[:4].tolist() == [1, 0, 1, 0]


def test_spambase_is_raw_and_in_uci_order(data_folder):
    A, b = datasets.spambase(data_folder)
    assert A[0, 54:].tolist() == [3.756, 61, 278]
    assert b[0] == 1
    assert b[-1] == 0


def test_environment_variable_names_the_folder(data_folder, cache, monkeypatch):
    monkeypatch.setenv("PROXLEARN_DATA", str(data_folder))
    assert datasets.ionosphere()[0].shape == (351, 34)
    assert not cache.exists()


def test_argument_goes_before_the_environment(data_folder, cache, tmp_path, monkeypatch):
    (tmp_path / "ionosphere.csv").write_text("1,2,g\n")
    monkeypatch.setenv("PROXLEARN_DATA", str(tmp_path))
    assert datasets.ionosphere(data_folder)[0].shape == (351, 34)


def test_a_file_that_is_not_the_uci_one_is_refused(data_folder, tmp_path):
    shutil.copyfile(data_folder / "ionosphere.csv", tmp_path / "ionosphere.csv")
    with open(tmp_path / "ionosphere.csv", "a") as file:
        file.write(" ")
    with pytest.raises(InputError, match=r"ionosphere\.csv has sha256 .* expected fd6dd7864b55"):
        datasets.ionosphere(tmp_path)


def test_download_fills_the_cache_and_is_not_repeated(cache, monkeypatch, tmp_path):
    features = np.random.default_rng(0).normal(size=(351, 34))
    labels = np.array(["g"] * 225 + ["b"] * 126, dtype=object)
    fetch, calls = fake_openml(features, labels)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    empty = tmp_path / "empty"
    empty.mkdir()
    first = datasets.ionosphere(empty)
    again = datasets.ionosphere()
    assert [call["data_id"] for call in calls] == [59]
    assert [file.name for file in cache.iterdir()] == ["ionosphere.npz"]
    for A, b in (first, again):
        assert (A.numpy() == features).all()
        assert (b.numpy() == (labels == "g")).all()


def test_a_wrong_download_is_refused_and_not_cached(cache, monkeypatch):
    fetch, _ = fake_openml(np.zeros((10, 34)), np.array(["g"] * 10))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(InputError, match=r"OpenML 59 gave \(10, 34\)"):
        datasets.ionosphere()
    assert not cache.exists()


def test_a_failed_write_leaves_nothing_behind_and_the_data_arrive(cache, monkeypatch):
    fetch, _ = fake_openml(np.zeros((351, 34)), np.array(["g"] * 225 + ["b"] * 126))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)

    def full(file, **arrays):
        file.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert datasets.ionosphere()[0].shape == (351, 34)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a zip", b"something else"])
def test_a_damaged_cache_says_what_to_delete(cache, content):
    cache.mkdir(parents=True)
    (cache / "spambase.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"spambase\.npz cannot be read .* delete it"):
        datasets.spambase()


def test_without_network_one_line_says_what_to_do(cache, monkeypatch):
    def offline(**kwargs):
        raise OSError("[Errno -3] Temporary failure\nin name resolution")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(InputError, match=r"PROXLEARN_DATA .* spambase\.csv") as caught:
        datasets.spambase()
    assert "\n" not in str(caught.value)
    assert not cache.exists()


def test_without_scikit_learn_one_line_says_what_to_do(cache, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install scikit-learn, or set"):
        datasets.ionosphere()


@pytest.mark.parametrize("shape", [(40, 5), (3, 40, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_standardise(shape, dtype):
    A = 3 + 7 * torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    A[..., 2] = 0.1  # whose mean is not 0.1 in floating point
    before = A.clone()
    S = datasets.standardise(A)
    others = [0, 1, 3, 4]
    assert S.dtype == dtype
    assert torch.equal(A, before)
    assert (S[..., 2] == 0).all()
    assert S.mean(-2).abs().max() < 1e-5
    assert (S.var(-2, correction=0)[..., others] - 1).abs().max() < 1e-5
