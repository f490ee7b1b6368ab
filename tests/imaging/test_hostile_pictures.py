"""Pictures from files as people have them: turned, dark, of 16 bits, damaged, black, tiny, odd."""

import io
import struct
import warnings
import zlib

import numpy as np
import pytest

from proxlearn.cli import main
from proxlearn.errors import InputError
from proxlearn.problems import pictures

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def shades(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def deblurred(folder, picture, out="sharp.png", *options):
    """The exit code of the command on a picture of Pillow."""
    picture.save(folder / "photo.png")
    return main(["deblur", str(folder / "photo.png"), "--out", str(folder / out), *options])


def test_a_picture_that_the_camera_turned_stands_upright(tmp_path):
    picture = Image.fromarray(shades(20, 24, 3))
    turned = picture.getexif()
    turned[0x0112] = 6  # turn by 90 degrees to view
    picture.save(tmp_path / "turned.png", exif=turned)
    values = pictures.read_picture(tmp_path / "turned.png")
    np.testing.assert_allclose(values, np.rot90(shades(20, 24, 3), -1) / 255)


@pytest.mark.parametrize(
    ("values", "ending", "white"),
    [
        (shades(8, 9).astype(np.uint16), "png", 65535),  # a dark picture of 16 bits
        (shades(8, 9).astype(np.uint16) * 257, "tif", 65535),
        (shades(8, 9).astype(np.float32) / 255, "tif", 1),
        (shades(8, 9).astype(np.int32), "tif", 255),
        (shades(8, 9).astype(np.int32) * 257, "tif", 65535),
    ],
)
def test_values_are_relative_to_white(tmp_path, values, ending, white):
    Image.fromarray(values).save(tmp_path / f"picture.{ending}")
    found = pictures.read_picture(tmp_path / f"picture.{ending}")
    np.testing.assert_allclose(found, values / np.float64(white), rtol=1e-6)


@pytest.mark.parametrize("values", [[[-0.5, 0.5]], [[np.nan, 0.5]], [[1e6, 2.0]]])
def test_values_that_no_picture_has_are_refused(tmp_path, values):
    Image.fromarray(np.float32(values)).save(tmp_path / "picture.tif")
    with pytest.raises(InputError, match="other values than a picture's"):
        pictures.read_picture(tmp_path / "picture.tif")


@pytest.mark.parametrize("kind", ["png", "jpeg", "tiff", "bmp", "webp"])
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    buffer = io.BytesIO()
    Image.fromarray(shades(12, 10, 3)).save(buffer, kind)
    whole, generator = buffer.getvalue(), np.random.default_rng(1)
    refused = []
    for i in range(60):
        damaged = bytearray(whole)
        if i % 2:
            del damaged[generator.integers(len(whole)) :]
        else:
            for place in generator.integers(0, len(whole), 4):
                damaged[place] = generator.integers(256)
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            values = pictures.read_picture(tmp_path / "damaged")
        except InputError as error:
            refused.append(str(error))
        else:
            assert 0 <= values.min() <= values.max() <= 1
    assert len(refused) > 10
    assert not any("\n" in text for text in refused)


@pytest.mark.parametrize("sides", [(100_000, 100_000), (12_000, 9_000)])
def test_a_header_that_promises_too_many_pixels_is_refused_in_one_line(tmp_path, sides):
    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *sides, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    (tmp_path / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="pixels"):
            pictures.read_picture(tmp_path / "huge.png")


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "LA"])
def test_odd_sizes_and_kinds_of_pictures_keep_their_size(tmp_path, capsys, mode):
    picture = Image.fromarray(shades(33, 21, 3)).convert(mode)
    assert deblurred(tmp_path, picture, "sharp.jpg", "--tol", "0.1") == 0
    assert "33 x 21 pixels" in capsys.readouterr().out
    assert pictures.read_picture(tmp_path / "sharp.jpg").shape[:2] == (33, 21)


def test_black_pictures_and_channels_have_a_gap_that_is_a_number(tmp_path, capsys):
    assert deblurred(tmp_path, Image.fromarray(np.zeros((20, 20), np.uint8))) == 0
    out = capsys.readouterr().out
    assert "at most 0.0e+00" in out
    assert not pictures.read_picture(tmp_path / "sharp.png").any()


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        ((1, 1), [], "expected a blur that is no larger"),
        ((1, 40), ["--width", "0.3"], "expected a blur that is no larger"),
        ((20, 20), ["--blur", "motion", "--angle", "inf"], "expected a finite angle"),
        ((20, 20), ["--width", "nan"], "width is nan"),
        ((20, 20), ["--out", "/proc/nowhere/sharp.png"], "choose another"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(tmp_path, capsys, size, options, message):
    picture = Image.fromarray(shades(*size))
    assert deblurred(tmp_path, picture, "sharp.png", *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
