"""Pictures behind operators, which the paper does not have: what is learned there beside FISTA."""

from dataclasses import replace

from proxlearn.evaluation.experiments.experiment import Experiment, FromFamily, Scale, Setting
from proxlearn.training.families import Deblur, Inpaint, Mri, Pictures, Tomography

CLASSIC = ("fista-restart", "fista", "ista")
OPERATORS: dict[str, tuple[Pictures, str, tuple[str, ...]]] = {
    "deblurring": (Deblur(), "blur", ("imaging-splitting", "imaging")),
    "MRI": (Mri(), "Fourier samples", ("imaging-splitting", "imaging")),
    "inpainting": (Inpaint(), "missing pixels", ("imaging-splitting", "imaging")),
    "tomography": (Tomography(angles=32), "projections", ("imaging",)),
}
"""For each setting the family, its operator in words, and what was learned for it."""


def _setting(name: str) -> Setting:
    family, words, learned = OPERATORS[name]
    real = replace(family, size=64, wavelet="db4", folder="bsds500", split="test")
    drawn = replace(family, size=32, wavelet="db4")
    return Setting(
        name,
        FromFamily(real, f"{words}: 64x64 pieces of test pictures of BSDS500, db4, float32"),
        (*learned, *CLASSIC),
        quick=FromFamily(drawn, f"{words}: drawn pictures, 32x32, db4, float32"),
    )


EXPERIMENT = Experiment(
    name="photographs",
    paper_figure="",
    title="Pictures behind operators",
    settings=tuple(map(_setting, OPERATORS)),
    quick=Scale(count=2, iterations=60),
    paper=Scale(count=8, iterations=400),
    optimum_gap=1e-5,
    levels=(1e-2, 1e-3),
    labels={"imaging-splitting": "Douglas-Rachford, learned", "imaging": "learned step a band"},
    notes=(
        "Not in the paper. The gap is that of F; a certificate of it comes later, and is what "
        "docs/imaging.md counts.",
    ),
)
