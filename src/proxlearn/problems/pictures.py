"""Pictures that are read from files, and drawn ones for trainings without any."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.checks import check_choice
from proxlearn.errors import InputError
from proxlearn.names import PICTURE_ENDINGS as ENDINGS

GREY = (0.2125, 0.7154, 0.0721)
"""Weights of red, green and blue (ITU-R 709)."""
MOST_PIXELS = 2**26
"""Largest picture that is read: 64 million pixels, 1.5 GiB in float64 with three colours."""
SPLITS = ("train", "validation", "test")
"""Of ten pictures in the order of their names, seven train, one validates and two test."""


def read_picture(file: str | Path) -> np.ndarray:
    """A picture (height, width, 3) in [0, 1], or (height, width) where it is grey.

    It stands upright, as the camera noted; transparency is dropped.
    Pillow reads it: matplotlib, the other choice, reads .png files only without Pillow.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise InputError(
            "reading pictures needs Pillow, which is not installed; pip install pillow"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's; what is wrong is said in one line
            with Image.open(file) as picture:
                width, height = picture.size
                if width * height > MOST_PIXELS:
                    raise InputError(
                        f"{file} has {width} x {height} pixels; expected at most {MOST_PIXELS}: "
                        "make it smaller first"
                    )
                values = _levels(ImageOps.exif_transpose(picture))
    except FileNotFoundError:
        raise InputError(f"there is no file {file}; expected a picture") from None
    except (
        OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError, ValueError,
    ) as error:  # fmt: skip
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(
            f"{file} cannot be read as a picture ({reason}); expected a file such as .png or .jpg"
        ) from None
    if values.ndim not in (2, 3) or not (values.min() >= 0 and values.max() <= 1):
        raise InputError(
            f"{file} holds other values than a picture's; expected whole numbers of 8 or 16 bits, "
            "or numbers from 0 to 1"
        )
    return values


def _levels(picture: Any) -> np.ndarray:
    """The values of a picture of Pillow, relative to the largest that its kind can have."""
    mode = picture.mode
    if mode.startswith(("I", "F")):
        values = np.asarray(picture, dtype=np.float64)
        if mode.startswith("I;16"):
            return values / 65535
        # Whole numbers of 32 bits and floating-point numbers do not say what white is.
        largest = values.max(initial=0)
        white = 1 if mode == "F" and largest <= 1 else 255 if largest <= 255 else 65535
        return values / white
    plain = picture.convert("L" if mode in ("1", "L", "LA") else "RGB")
    return np.asarray(plain, dtype=np.float64) / 255


def write_picture(file: str | Path, values: np.ndarray) -> None:
    """A picture with values in [0, 1], clipped to them; the ending of the name says the format."""
    from PIL import Image

    bytes_ = np.round(np.clip(values, 0, 1) * 255).astype(np.uint8)
    try:
        Image.fromarray(bytes_).save(file)
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{file} cannot be written as a picture ({reason}); expected a name such as sharp.png"
        ) from None


def grey(values: np.ndarray) -> np.ndarray:
    """The brightness (height, width) of a picture."""
    shades: np.ndarray = values if values.ndim == 2 else values @ np.array(GREY)
    return shades


@cache
def load_split(folder: str, split: str) -> tuple[Tensor, ...]:
    """The grey pictures of a folder that belong to a split, in float32; kept in memory."""
    check_choice("split", split, SPLITS)
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder; expected one with pictures")
    files = sorted(f for f in Path(folder).iterdir() if f.suffix.lower() in ENDINGS)
    if len(files) < 10:
        raise InputError(
            f"{folder} has {len(files)} pictures ({', '.join(ENDINGS)}); expected at least 10, of "
            "which 7 are for training, 1 for validation and 2 for tests"
        )
    places = {"train": range(7), "validation": (7,), "test": (8, 9)}[split]
    chosen = [file for i, file in enumerate(files) if i % 10 in places]
    return tuple(torch.from_numpy(grey(read_picture(f)).astype(np.float32)) for f in chosen)


def piece(pictures: tuple[Tensor, ...], side: int, generator: torch.Generator) -> Tensor:
    """A square piece of a random picture at a random place, (side, side)."""
    which, top, left = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
    picture = pictures[int(which * len(pictures))]
    height, width = picture.shape
    if min(height, width) < side:
        raise InputError(
            f"a picture has {height} x {width} pixels; expected at least {side} x {side}: use "
            "larger pictures or a smaller size"
        )
    y, x = int(top * (height - side + 1)), int(left * (width - side + 1))
    return picture[y : y + side, x : x + side]


def phantom(side: int, generator: torch.Generator) -> Tensor:
    """A drawn picture (side, side) in [0, 1]: a slope of light, ellipses, and fine stripes."""

    def draw(*shape: int) -> Any:
        return torch.rand(*shape, generator=generator)

    t = torch.linspace(-1, 1, side)
    y, x = t[:, None], t[None, :]
    slope = draw(3)
    picture = 0.5 + 0.3 * (slope[0] - 0.5) * x + 0.3 * (slope[1] - 0.5) * y
    for _ in range(4 + int(12 * float(slope[2]))):
        u = draw(6)
        angle = 3.1416 * float(u[4])
        c, s = float(np.cos(angle)), float(np.sin(angle))
        dx, dy = x - 2 * u[0] + 1, y - 2 * u[1] + 1
        inside = ((c * dx + s * dy) / (0.05 + 0.6 * u[2])) ** 2
        inside = inside + ((c * dy - s * dx) / (0.05 + 0.6 * u[3])) ** 2
        picture = torch.where(inside < 1, picture + 0.6 * (u[5] - 0.5), picture)
    u = draw(3)
    stripes = torch.sin((10 + 30 * u[0]) * (x * torch.cos(6 * u[1]) + y * torch.sin(6 * u[1])))
    drawn: Tensor = (picture + 0.05 * u[2] * stripes).clamp(0, 1)
    return drawn
