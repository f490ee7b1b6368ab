"""Real data sets: read from a folder, from a cache, or downloaded; never at import.

Each loader looks for its file in `folder`, else in the folder that PROXLEARN_DATA names, then in
the cache (``proxlearn`` in XDG_CACHE_HOME, by default in ~/.cache). `ionosphere` and `spambase`
are then asked of OpenML through scikit-learn, which fills the cache; they are from the UCI Machine
Learning Repository (Dua and Graff, 2019), licence CC BY 4.0: use and share them with that
attribution. The images are not downloaded: `cifar10` and `bsds_patches` say where to get them.
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
from proxlearn.files import read_matrix, replacing
from proxlearn.problems.pictures import grey, read_picture


@dataclass(frozen=True)
class _Source:
    """Where a data set comes from, and the numbers by which a copy is checked."""

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


def cifar10(folder: str | Path | None = None, per_class: int = 500) -> tuple[Tensor, Tensor]:
    """Small pictures of ten kinds: features (10 * per_class, 3072) in [0, 1], labels 0, ..., 9.

    The first `per_class` pictures of each class of CIFAR-10's training set (Krizhevsky, 2009), in
    the set's order; a row is 3 x 32 x 32. `folder` holds ``cifar10_5000.npz``, an array `x_train`
    (5000, 32, 32, 3) of bytes and one `y_train` (5000,), 500 pictures a class.
    """
    if not 1 <= per_class <= 500:
        raise InputError(f"per_class is {per_class}; expected 1 to 500 pictures")
    by_hand = (
        "set PROXLEARN_DATA to a folder that holds it: arrays x_train (5000, 32, 32, 3) of uint8 "
        "and y_train (5000,), the first 500 pictures of each class of CIFAR-10's training set, "
        "from https://www.cs.toronto.edu/~kriz/cifar.html"
    )
    file = _find("cifar10_5000.npz", folder, by_hand)
    pictures, labels = (read_matrix(f"{file}:{name}") for name in ("x_train", "y_train"))
    if pictures.shape != (5000, 32, 32, 3) or pictures.dtype != np.uint8:
        raise InputError(f"{file} has x_train {pictures.shape} of {pictures.dtype}; {by_hand}")
    counts = np.bincount(labels, minlength=10) if labels.dtype.kind == "u" else np.zeros(0)
    if labels.shape != (5000,) or counts.tolist() != [500] * 10:
        raise InputError(f"{file} has y_train that is not 500 times each of 0, ..., 9; {by_hand}")
    kept = np.sort(np.concatenate([np.flatnonzero(labels == c)[:per_class] for c in range(10)]))
    rows = torch.from_numpy(pictures[kept]).permute(0, 3, 1, 2).reshape(len(kept), -1)
    return rows.double() / 255, torch.from_numpy(labels[kept].astype(np.int64))


BSDS = "bsds500"
"""The folder with the photographs of BSDS500."""
GET_BSDS = (
    "set PROXLEARN_DATA to a folder that holds it: the 200 .jpg files of BSDS500's test images, "
    "from https://github.com/BIDS/BSDS500"
)
"""What to do where that folder is missing, for messages."""


def bsds_patches(
    folder: str | Path | None = None, count: int = 1000, size: int = 8, seed: int = 0
) -> Tensor:
    """Patches of photographs, (count, size * size): normalised, mean removed.

    Each at a random place in a random one of the pictures of BSDS500 (Martin et al., 2001;
    Arbelaez et al., 2011; for non-commercial research and education), grey, stretched to [0, 1] as
    (v - min)/(max - min + 1e-3), less its mean. A patch of one shade, of which nothing would be
    left, is passed over. `folder` holds ``bsds500/*.jpg``, the paper's are the 200 test pictures;
    they are taken in the order of their names.
    """
    pictures = sorted(_find(BSDS, folder, GET_BSDS).glob("*.jpg"))
    if not pictures:
        raise InputError(f"the folder {BSDS} has no .jpg files; {GET_BSDS}")
    drawn = count + count // 10 + 10  # some patches may have one shade only
    random = np.random.default_rng(seed)
    which, where = random.integers(len(pictures), size=drawn), random.random((drawn, 2))
    patches = np.empty((drawn, size, size))
    for i in np.unique(which):
        picture = grey(read_picture(pictures[i]))
        if min(picture.shape) < size:
            raise InputError(
                f"{pictures[i]} has {picture.shape} pixels; expected at least {size} by {size}"
            )
        for j in np.flatnonzero(which == i):
            top, left = (where[j] * (np.array(picture.shape) - size + 1)).astype(int)
            patches[j] = picture[top : top + size, left : left + size]
    patches = patches[np.ptp(patches, (1, 2)) > 0][:count]
    if len(patches) < count:
        raise InputError(f"{drawn - len(patches)} of {drawn} patches are of one shade; {GET_BSDS}")
    low, high = patches.min((1, 2), keepdims=True), patches.max((1, 2), keepdims=True)
    flat = ((patches - low) / (high - low + 1e-3)).reshape(count, -1)
    return torch.from_numpy(flat - flat.mean(1, keepdims=True))


def standardise(A: Tensor) -> Tensor:
    """A (..., m, n) with columns of mean 0 and variance 1; constant columns become 0."""
    # Constant columns are found by comparing entries: rounding leaves a variance above 0.
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


def picture_folder(name: str) -> Path:
    """A folder with pictures: that of this path, or "bsds500" where the data sets are."""
    if Path(name).is_dir() or name != BSDS:
        return Path(name)
    return _find(name, None, GET_BSDS)


def _find(name: str, folder: str | Path | None, by_hand: str) -> Path:
    """The file or folder of that name in `folder`, PROXLEARN_DATA's or the cache."""
    given = os.environ.get("PROXLEARN_DATA") if folder is None else folder
    for place in ([Path(given)] if given else []) + [_cache()]:
        if (place / name).exists():
            return place / name
    raise InputError(f"{name} is not on this computer; {by_hand}")


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
            f"pip install scikit-learn, or {by_hand}"
        ) from None
    try:  # this parser does not need pandas
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
