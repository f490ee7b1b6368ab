"""Real data sets: read from a folder, from a cache, or downloaded; never at import.

Each loader looks for its file in `folder`, else in the folder that PROXLEARN_DATA names, then in
the cache (``proxlearn`` in XDG_CACHE_HOME, by default in ~/.cache), then asks OpenML through
scikit-learn and fills the cache. Both sets are from the UCI Machine Learning Repository (Dua and
Graff, 2019), licence CC BY 4.0: use and share them with that attribution.
"""

import hashlib
import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.files import replacing


@dataclass(frozen=True)
class _Source:
    """Where a set comes from, and what tells a right copy from a wrong one."""

    name: str
    sha256: str
    openml: int
    uci: int
    shape: tuple[int, int]
    positive: str
    positives: int


_IONOSPHERE = _Source(
    name="ionosphere",
    sha256="fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
    openml=59,
    uci=52,
    shape=(351, 34),
    positive="g",
    positives=225,
)
_SPAMBASE = _Source(
    name="spambase",
    sha256="ebec58cfca94ea61c77df632314acae15bad410f4769d38b1a66cb41050e3431",
    openml=44,
    uci=94,
    shape=(4601, 57),
    positive="1",
    positives=1813,
)


def ionosphere(folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Radar returns from the ionosphere: raw features (351, 34), labels (351,), 1 for "good".

    The second feature is constant 0. V. Sigillito and others, 1989; UCI 52, OpenML 59, licence
    CC BY 4.0. `folder` may hold UCI's file as ``ionosphere.csv``.
    """
    return _load(_IONOSPHERE, folder)


def spambase(folder: str | Path | None = None) -> tuple[Tensor, Tensor]:
    """Word and letter frequencies of e-mails: raw features (4601, 57), labels (4601,), 1 for spam.

    M. Hopkins, E. Reeber, G. Forman and J. Suermondt, 1999; UCI 94, OpenML 44, licence CC BY 4.0.
    `folder` may hold UCI's file as ``spambase.csv``.
    """
    return _load(_SPAMBASE, folder)


def standardise(A: Tensor) -> Tensor:
    """A (..., m, n) with columns of mean 0 and variance 1; constant columns become 0."""
    # Asked of the data, not of the variance, in which rounding leaves a little more than 0.
    constant = A.amax(-2, keepdim=True) == A.amin(-2, keepdim=True)
    centred = A - A.mean(-2, keepdim=True)
    deviation = centred.square().mean(-2, keepdim=True).sqrt()
    return torch.where(constant, torch.zeros_like(A), centred / deviation)


def _load(source: _Source, folder: str | Path | None) -> tuple[Tensor, Tensor]:
    given = os.environ.get("PROXLEARN_DATA") if folder is None else folder
    if given and (file := Path(given) / f"{source.name}.csv").is_file():
        features, labels = _read_uci(source, file)
    elif (cached := _cache() / f"{source.name}.npz").is_file():
        features, labels = _read_cache(cached)
    else:
        features, labels = _download(source)
        # A cache that cannot be written costs another download, not the answer.
        with suppress(InputError), replacing(cached) as temporary:
            np.savez(temporary, features=features, labels=labels)
    return torch.from_numpy(features), torch.from_numpy(labels)


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "proxlearn"


def _read_uci(source: _Source, file: Path) -> tuple[np.ndarray, np.ndarray]:
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise InputError(
            f"{file} has sha256 {found[:12]}...; expected {source.sha256[:12]}...: it is not the "
            f"file of UCI data set {source.uci}, or it is damaged: remove it or fetch it again"
        )
    rows = np.array([line.split(",") for line in content.decode().split()])
    return rows[:, :-1].astype(np.float64), (rows[:, -1] == source.positive).astype(np.float64)


def _read_cache(file: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as data:
            return data["features"], data["labels"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} cannot be read ({error}); delete it, and try again") from None


def _download(source: _Source) -> tuple[np.ndarray, np.ndarray]:
    by_hand = (
        f"set PROXLEARN_DATA to a folder that holds {source.name}.csv, from "
        f"https://archive.ics.uci.edu/dataset/{source.uci}"
    )
    try:
        from sklearn.datasets import fetch_openml
    except ImportError:
        raise InputError(
            f"{source.name} is not on this computer, and downloading it needs scikit-learn: "
            f"pip install 'proxlearn[sklearn]', or {by_hand}"
        ) from None
    try:  # the parser that needs no pandas
        bunch = fetch_openml(data_id=source.openml, as_frame=False, parser="liac-arff", cache=False)
    except (OSError, ValueError, HTTPException) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{source.name} is not on this computer, and OpenML did not deliver it ({reason}); "
            f"try again with a network, or {by_hand}"
        ) from None
    features = np.ascontiguousarray(bunch.data, dtype=np.float64)
    labels = np.array([str(label) == source.positive for label in bunch.target], dtype=np.float64)
    if features.shape != source.shape or int(labels.sum()) != source.positives:
        raise InputError(
            f"OpenML {source.openml} gave {features.shape} with {int(labels.sum())} positive "
            f"labels; expected {source.shape} with {source.positives}: {by_hand}"
        )
    return features, labels
