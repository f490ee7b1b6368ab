"""Families of pictures: splits by picture, what is drawn, and a training that learns from them."""

import numpy as np
import pytest
import torch

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.problems import pictures
from proxlearn.training import families

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
FOUR = ("deblur", "mri", "inpaint", "tomography")


@pytest.fixture
def folder(tmp_path):
    """Twenty pictures, each of one shade that tells which it is."""
    for i in range(20):
        shade = np.full((70, 66), 10 * i, dtype=np.uint8)
        Image.fromarray(shade).save(tmp_path / f"{i:02d}.png")
    return str(tmp_path)


def shades(folder, split):
    return {round(float(p[0, 0]) * 25.5) for p in pictures.load_split(folder, split)}


def test_pictures_are_split_and_none_is_in_two_parts(folder):
    parts = [shades(folder, split) for split in pictures.SPLITS]
    assert [len(part) for part in parts] == [14, 2, 4]
    assert parts == [{*range(7), *range(10, 17)}, {7, 17}, {8, 9, 18, 19}]


@pytest.mark.parametrize("name", FOUR)
def test_a_split_of_a_family_draws_from_its_pictures(name, folder):
    family = families.NAMES[name](folder=folder, size=64, wavelet="haar")
    for split in pictures.SPLITS:
        generator = torch.Generator().manual_seed(0)
        drawn = family.of_split(split).fixed(generator).draw(generator)[2]
        assert round(float(drawn[0, 0]) * 25.5) in shades(folder, split)


@pytest.mark.parametrize("name", FOUR)
def test_measurements_are_those_of_the_picture_up_to_noise(name):
    family = families.NAMES[name](size=64, wavelet="db2", least_noise=1e-6, most_noise=1e-6)
    generator = torch.Generator().manual_seed(1)
    sized = family.fixed(generator)
    data = [part[None] for part in sized.draw(generator)]
    problem = sized.build(*data)
    truth = data[2].reshape(1, -1)
    x = sized.basis().forward(truth)
    assert problem.f.value(x) <= 1e-9 * problem.f.value(torch.zeros_like(x))


@pytest.mark.parametrize(
    ("union", "expected"),
    [
        (families.Imaging(), {"Deblur", "Mri", "Inpaint", "Tomography"}),
        (families.Invertible(), {"Deblur", "Mri", "Inpaint"}),
    ],
)
def test_batches_of_the_union_differ_in_kind(union, expected):
    drawn = [union.fixed(torch.Generator().manual_seed(s)) for s in range(40)]
    assert {type(family).__name__ for family in drawn} == expected


def test_the_invertible_families_have_proximal_operators():
    for name in ("deblur", "mri", "inpaint", "tomography"):
        problem = families.NAMES[name](size=16, wavelet="haar").sample(1, 0)
        assert problem.f.has_proximal == (name != "tomography")


@pytest.mark.slow
def test_a_short_training_lowers_the_validation_loss():
    family = families.Deblur(size=16, wavelet="haar")
    config = pl.TrainConfig(
        rule="banded", loss="log-both-gaps", steps=24, batch=4, horizon=20, unroll=20,
        validation=4, validate_every=1, lr=1e-2, reference=100, floor=1e-4,
    )  # fmt: skip
    scores = []
    pl.train(family, config, watch=lambda report: scores.append(report.validation))
    assert min(scores[6:]) < scores[0] - 0.05


@pytest.mark.slow
def test_a_short_training_finds_a_better_gamma():
    """The rule starts from a formula for photographs; a first gamma that is far off is mended."""
    family = families.Inpaint(size=16, wavelet="haar")
    config = pl.TrainConfig(
        rule="splitting", loss="log-certified-gap", score="certified-gap", steps=16, batch=4,
        horizon=40, unroll=40, validation=4, validate_every=1, lr=2e-2, reference=50,
    )  # fmt: skip
    scores = []
    pl.train(family, config, watch=lambda report: scores.append(report.validation))
    assert min(scores[4:]) < scores[0] - 0.05


WRONG = {
    "size is 40": lambda: families.Deblur(size=40),
    "expected at least 10": lambda: families.Deblur(folder=".").sample(1, 0),
    "is not a folder": lambda: families.Deblur(folder="no-such-folder").sample(1, 0),
    "unknown split 'all'": lambda: pictures.load_split(".", "all"),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_families_are_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        WRONG[text]()
    assert text in str(refused.value)


def test_pictures_smaller_than_a_piece_are_refused(folder):
    with pytest.raises(InputError, match="expected at least 80 x 80"):
        families.Inpaint(folder=folder, size=80).sample(1, 0)
