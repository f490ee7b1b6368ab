"""Deblurring of photographs: in Python, on the command line, and what is refused."""

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.cli import main
from proxlearn.errors import InputError
from proxlearn.imaging import Blur, deblur, disk_kernel, gaussian_kernel, open_blur
from proxlearn.imaging.deblurring import continued, noise_level
from proxlearn.problems import pictures

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def scene(height, width):
    """Sharp shapes, (height, width, 3) in [0, 1]."""
    y, x = np.mgrid[:height, :width]
    picture = np.full((height, width, 3), 0.3)
    picture[(y // 12 + x // 16) % 2 == 0] = (0.8, 0.5, 0.2)
    picture[(y - height / 2) ** 2 + (x - width / 2) ** 2 < 100] = (0.1, 0.9, 0.6)
    return picture


def blurred(picture, kernel):
    """What a camera sees of the inside of a picture."""
    k = kernel.shape[0] // 2
    channels = torch.from_numpy(picture).permute(2, 0, 1)[:, None]
    seen = torch.nn.functional.conv2d(channels, kernel[None, None])[:, 0]
    return seen.permute(1, 2, 0).numpy(), picture[k:-k, k:-k]


def error(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [gaussian_kernel(1.2), disk_kernel(2.0)], ids=["soft", "disk"])
def test_a_blurred_picture_becomes_sharper(kernel):
    seen, truth = blurred(scene(61, 75), kernel)
    sharp, solution = deblur(seen, kernel, tol=1e-2)
    assert solution.solved
    assert sharp.shape == seen.shape
    assert error(sharp, truth) < 0.75 * error(seen, truth)


@pytest.mark.slow
def test_colours_are_those_of_each_channel_alone():
    kernel = gaussian_kernel(1.0)
    seen, _ = blurred(scene(40, 46), kernel)
    sharp, solution = deblur(seen, kernel, 5e-3, tol=1e-3, max_iter=1000)
    assert len(solution.status) == 3
    for c in range(3):
        alone, one = deblur(seen[..., c], kernel, 5e-3, tol=1e-3, max_iter=1000)
        assert alone.shape == seen.shape[:2]
        assert float(one.objective[0]) == pytest.approx(float(solution.objective[c]), rel=3e-3)
        assert error(alone, sharp[..., c]) < 0.01


def test_noise_is_measured():
    generator = torch.Generator().manual_seed(0)
    noisy = 0.5 + 0.03 * torch.randn(1, 101, 80, generator=generator)
    assert noise_level(noisy) == pytest.approx(0.03, rel=0.1)
    assert noise_level(torch.full((1, 10, 10), 0.5)) == 0


def test_a_picture_is_continued_by_its_mirror_image_that_fades():
    A = Blur(gaussian_kernel(1.0).float(), (32, 48))
    picture = torch.rand(2, 21, 30, generator=torch.Generator().manual_seed(0))
    whole = continued(picture, A)
    assert whole.shape == (2, 32, 48)
    torch.testing.assert_close(whole[:, 5:26, 9:39], picture)
    jump = (whole[:, 0] - whole[:, -1]).abs().mean()
    assert jump < 0.5 * (picture[:, 0] - picture[:, -1]).abs().mean()


def test_the_larger_grid_is_a_multiple():
    A, grid = open_blur(gaussian_kernel(1.0), (20, 31), multiple=16)
    assert grid == (32, 48)
    assert A.shape == (32 * 48, 32 * 48)


def test_the_command_writes_a_sharper_picture(tmp_path, capsys):
    kernel = gaussian_kernel(1.5)
    seen, truth = blurred(scene(60, 70), kernel)
    pictures.write_picture(tmp_path / "photo.png", seen)
    arguments = ["deblur", str(tmp_path / "photo.png"), "--out", str(tmp_path / "sharp.png")]
    assert main([*arguments, "--width", "1.5", "--lam", "0.003"]) == 0
    printed = capsys.readouterr().out
    assert f"{seen.shape[0]} x {seen.shape[1]} pixels" in printed
    assert "certified: at most" in printed
    sharp = pictures.read_picture(tmp_path / "sharp.png")
    assert error(sharp, truth) < 0.85 * error(seen, truth)


def test_a_grey_picture_stays_grey_and_a_gap_that_is_missed_is_told(tmp_path, capsys):
    Image.fromarray(np.uint8(scene(40, 40)[..., 0] * 255)).save(tmp_path / "grey.png")
    arguments = ["deblur", str(tmp_path / "grey.png"), "--out", str(tmp_path / "out.jpg")]
    assert main([*arguments, "--max-iter", "2", "--tol", "1e-6"]) == 1
    assert "raise --max-iter" in capsys.readouterr().err
    assert pictures.read_picture(tmp_path / "out.jpg").ndim == 2


def test_files_that_are_no_pictures_are_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    for name in ("text.png", "cut.png"):
        out = str(tmp_path / "sharp.png")
        assert main(["deblur", str(tmp_path / name), "--out", out]) == 2
        message = capsys.readouterr().err
        assert "cannot be read as a picture" in message
        assert message.count("\n") == 1
    assert not (tmp_path / "sharp.png").exists()


def test_pictures_that_are_too_large_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("proxlearn.imaging.deblurring.MOST_PIXELS", 100)
    with pytest.raises(InputError, match="20 x 20 pixels; expected at most 100"):
        deblur(np.zeros((20, 20)), gaussian_kernel(1.0))
    monkeypatch.setattr(pictures, "MOST_PIXELS", 100)
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "large.png")
    with pytest.raises(InputError, match="make it smaller"):
        pictures.read_picture(tmp_path / "large.png")


@pytest.mark.parametrize("kind", ["P", "RGBA", "LA", "1", "I;16", "CMYK"])
def test_kinds_of_pictures(kind, tmp_path):
    shades = np.uint8(scene(8, 9)[..., 0] * 255)
    if kind == "I;16":
        picture = Image.fromarray(shades.astype(np.uint16) * 257)
    else:
        picture = Image.fromarray(shades).convert("RGB" if kind == "CMYK" else "L").convert(kind)
    file = tmp_path / ("a.tif" if kind in ("CMYK", "I;16") else "a.png")
    picture.save(file)
    values = pictures.read_picture(file)
    assert values.shape[:2] == (8, 9)
    assert values.min() >= 0
    assert values.max() <= 1
    if kind not in ("1", "CMYK"):
        np.testing.assert_allclose(pictures.grey(values), shades / 255, atol=0.01)


@pytest.mark.slow
def test_training_on_a_folder_of_pictures(tmp_path, capsys):
    for i in range(10):
        Image.fromarray(np.uint8(np.roll(scene(40, 40), i, 0) * 255)).save(tmp_path / f"{i}.png")
    out = str(tmp_path / "mine.safetensors")
    command = ["train", "deblur", "--data", str(tmp_path), "--out", out, "--steps", "1"]
    command += ["--batch", "2", "--horizon", "20", "--set", "size=32"]
    assert main(command) == 0
    card = pl.load(out).card
    assert card["rule"]["kind"] == "banded"
    assert card["family"]["folder"] == str(tmp_path)
    assert "mine" in capsys.readouterr().out


def test_a_blur_that_is_wider_than_the_picture_is_refused_at_once():
    with pytest.raises(InputError, match="no larger: make its width smaller"):
        deblur(np.full((40, 50), 0.5), gaussian_kernel(10.0))
