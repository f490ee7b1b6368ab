"""The optimizers of an experiment: which they are, and with which values they are run."""

from collections.abc import Iterable, Sequence

from proxlearn import competitors, tuning, zoo
from proxlearn import optimizers as registry
from proxlearn.errors import InputError
from proxlearn.experiments.base import Experiment, Problems
from proxlearn.optimizers import Optimizer


def missing(experiment: Experiment) -> list[str]:
    """The models that the experiment needs and that are not shipped."""
    return [n for n in experiment.optimizers() if n not in registry.NAMES and not zoo.has(n)]


def chosen(experiment: Experiment, given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of all optimizers, each of which is there, before any work is done."""
    if given is None:
        absent = missing(experiment)
        if absent:
            raise InputError(
                f"{experiment.name} needs the models {', '.join(absent)}, which are not there: "
                f"train them (python -m proxlearn.zoo {absent[0]}), or name others with "
                "--optimizers"
            )
        return experiment.optimizers()
    if not given:
        raise InputError("no optimizers were given; expected at least one name")
    if experiment.measure == "bias" and len(given) > 1:
        raise InputError(f"{experiment.name} looks at one rule; {len(given)} were given")
    for name in given:
        registry.get(name)
    return tuple(dict.fromkeys(given))


def made(names: Iterable[str], problems: Problems) -> dict[str, Optimizer]:
    """Optimizers for these problems: Adam and AdamHD tuned on what the rules were trained on."""
    return competitors.named(list(names), problems.trained_on or "")


def notes(names: Iterable[str], problems: Problems) -> list[str]:
    """A line for each of Adam and AdamHD: its values and where they are from."""
    family, lines = problems.trained_on or "", []
    for name in names:
        if name in tuning.GRIDS:
            lines += competitors.notes([name], family) or [
                f"{name}: default values, as it was not tuned for such problems"
            ]
    return lines
