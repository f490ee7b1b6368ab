"""``proxlearn deblur``: sharpen a blurred picture."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from proxlearn import checks, names
from proxlearn.cli.options import MaxIter, Tol
from proxlearn.errors import InputError
from proxlearn.filenames import check_not_input, check_output, replacing, shown

KINDS = ("gaussian", "disk", "motion")


def deblur(
    picture: Annotated[str, typer.Argument(help="The blurred picture, such as photo.png.")],
    out: Annotated[str, typer.Option(help="Write the sharp picture here, such as sharp.png.")],
    blur: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS), help="gaussian, disk (out of focus) or motion (camera moved)."
        ),
    ] = "gaussian",
    width: Annotated[
        float,
        typer.Option(help="Pixels: standard deviation, radius of the disk, length of the motion."),
    ] = 2.0,
    angle: Annotated[float, typer.Option(help="Direction of the motion in degrees.")] = 0.0,
    lam: Annotated[
        float | None, typer.Option(help="Weight of the penalty; by default a tenth of the noise.")
    ] = None,
    basis: Annotated[str, typer.Option(help="Wavelet: haar, db2, ..., db8.")] = "db4",
    optimizer: Annotated[str, typer.Option(help="auto, or a method such as fista-restart.")] = (
        "auto"
    ),
    tol: Tol = 1e-2,
    max_iter: MaxIter = 1000,
    force: Annotated[
        bool, typer.Option("--force", help="Write to --out even if that is the input.")
    ] = False,
) -> int:
    """Sharpen a blurred picture: find one that is sparse in wavelets and whose blur fits.

    Each colour is a problem of its own. The kind and the width of the blur have to be known or
    guessed; a width that is too large shows as ripples at edges.
    """
    _check(picture, out, blur, basis, optimizer, lam, tol, max_iter, force)
    from proxlearn import imaging
    from proxlearn.cli.progress import watching
    from proxlearn.problems.pictures import read_picture, write_picture

    kernels = {
        "gaussian": lambda: imaging.gaussian_kernel(width),
        "disk": lambda: imaging.disk_kernel(width),
        "motion": lambda: imaging.motion_kernel(width, angle),
    }
    kernel = kernels[blur]()
    blurred = read_picture(picture)
    with watching() as show:

        def tell(progress: Any) -> None:
            show(f"iteration {progress.iteration}", progress.iteration, max_iter)

        sharp, solution = imaging.deblur(
            blurred, kernel, lam, basis=basis, tol=tol, max_iter=max_iter, optimizer=optimizer,
            callback=tell,
        )  # fmt: skip
    with replacing(out) as partial:
        write_picture(partial, sharp)
    gap = float((solution.gap / solution.objective.clamp(min=1e-300)).max())  # both 0 if black
    iterations = int(solution.iterations.max())
    print(
        f"{blurred.shape[0]} x {blurred.shape[1]} pixels, {iterations} iterations, "
        f"{solution.seconds:.1f} s; certified: at most {gap:.1e} of the objective from optimal"
    )
    print(f"wrote {out}")
    if not solution.solved:
        print(f"warning: the gap is above {tol:g}; raise --max-iter or --tol", file=sys.stderr)
    return 0 if solution.solved else 1


def _check(
    picture: str,
    out: str,
    blur: str,
    basis: str,
    optimizer: str,
    lam: float | None,
    tol: float,
    max_iter: int,
    force: bool,
) -> None:
    """Refuse wrong arguments before PyTorch is imported."""
    checks.check_choice("blur", blur, KINDS)
    checks.check_choice("wavelet", basis, names.WAVELETS)
    checks.check_limits(tol, max_iter)
    checks.check_optimizer(optimizer, names.AUTO)
    if lam is not None and not 0 < lam < float("inf"):
        raise InputError(f"lam is {lam}; expected a number > 0, such as 0.001")
    if not Path(picture).is_file():
        raise InputError(f"{shown(picture)} is not a file; expected a picture such as photo.png")
    check_output(out, names.PICTURE_ENDINGS)
    check_not_input(out, [picture], force)
