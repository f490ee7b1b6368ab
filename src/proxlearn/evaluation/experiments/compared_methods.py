"""The optimizers of an experiment: which they are, and with which values they are run.

Beside the names that the whole package knows there are those of the presets: published-adam and
published-adamhd with the values of the authors' code, the weights of `trainings`, and
logistic-pa-rescaled, the shipped rule with p in the paper's unit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from proxlearn import zoo
from proxlearn.errors import InputError
from proxlearn.evaluation import competitors, tuning
from proxlearn.evaluation.experiments import weights
from proxlearn.evaluation.experiments.experiment import Experiment, Problems
from proxlearn.evaluation.experiments.presets import PUBLISHED
from proxlearn.evaluation.experiments.trainings import TRAININGS
from proxlearn.methods import optimizers as registry
from proxlearn.methods.checkpoint import Learned, load
from proxlearn.methods.optimizers import Adam, Optimizer
from proxlearn.methods.rules.learned_rule import unit_step
from proxlearn.names import RESCALED
from proxlearn.training import families

VALUES = {f"{PUBLISHED.name}-{name}": values for name, values in PUBLISHED.adam.items()}
"""Adam and AdamHD with the published values, by name."""


SAMPLE = 64
"""Problems of the training family from which the factor between the units is taken."""


def missing(experiment: Experiment) -> list[str]:
    """The models that the experiment needs and that are not there."""
    return [name for name in experiment.optimizers() if not _there(name)]


def _there(name: str) -> bool:
    known = name in registry.NAMES or name in VALUES or zoo.has(name.removesuffix(RESCALED))
    return known or weights.find(name) is not None


def chosen(
    experiment: Experiment, given: Sequence[str] | None, scale: str = "paper"
) -> tuple[str, ...]:
    """The names of all optimizers, each of which is there, before any work is done.

    Of the trainings of the presets those that are not finished are left out, and at the quick scale
    all but the first seed: `left_out` says which.
    """
    if given is None:
        needed = [name for name in missing(experiment) if name not in TRAININGS]
        if needed:
            raise InputError(
                f"{experiment.name} needs the models {', '.join(needed)}, which are not there: "
                f"train them (python -m proxlearn.zoo {needed[0]}), or name others with "
                "--optimizers"
            )
        return tuple(
            name for name in experiment.optimizers() if _there(name) and _in_scale(name, scale)
        )
    if not given:
        raise InputError("no optimizers were given; expected at least one name")
    if experiment.measure == "bias" and len(given) > 1:
        raise InputError(f"{experiment.name} looks at one rule; {len(given)} were given")
    for name in given:
        get(name)
    return tuple(dict.fromkeys(given))


def _in_scale(name: str, scale: str) -> bool:
    return scale == "paper" or name not in TRAININGS or TRAININGS[name].seed == 0


def left_out(experiment: Experiment, given: Sequence[str] | None, scale: str) -> list[str]:
    """A line about the optimizers of the experiment that `chosen` leaves out, if there are any."""
    if given is not None:
        return []
    untrained = [name for name in missing(experiment) if _in_scale(name, scale)]
    lines = []
    if untrained:
        lines.append(f"Not run, as these are not trained yet: {', '.join(untrained)}.")
    if not all(_in_scale(name, scale) for name in experiment.optimizers()):
        lines.append("The quick scale runs the first seed of every training.")
    return lines


def get(name: str) -> Optimizer:
    """The optimizer of a name, also of those that only the experiments know."""
    if name in VALUES:
        return Adam(**VALUES[name])
    if name.endswith(RESCALED):
        return rescaled(load(name.removesuffix(RESCALED)))
    found = weights.find(name)
    return registry.get(name if found is None else str(found))


def rescaled(learned: Learned) -> Learned:
    """A rule with p in units of 1/||A|| in place of 1/L, on its training problems the same.

    The unit is c/||A|| with c the mean of ||A||/L over problems that the rule was trained on. On
    those it changes nothing but the spread of a few percent; elsewhere it decides how long the
    steps can be.
    """
    parameters = dict(learned.card["family"])
    family = families.NAMES[families.name_of(parameters.pop("name")) or ""](**parameters)
    problem = family.sample(SAMPLE, 0)
    factor = float((unit_step(problem, "lipschitz") / unit_step(problem, "norm")).mean())
    settings = replace(learned.rule.settings, unit="norm", unit_scale=factor)
    rule = type(learned.rule)(settings)
    rule.load_state_dict(learned.rule.state_dict())
    return Learned(rule, learned.card)


def made(names: Iterable[str], problems: Problems) -> dict[str, Optimizer]:
    """Optimizers for these problems: Adam and AdamHD tuned on what the rules were trained on."""
    names, family = list(names), problems.trained_on or ""
    tuned = competitors.named([name for name in names if name in tuning.GRIDS], family)
    return {name: tuned[name] if name in tuned else get(name) for name in names}


def notes(names: Iterable[str], problems: Problems) -> list[str]:
    """A line for each of Adam and AdamHD: its values and where they are from."""
    family, lines = problems.trained_on or "", []
    for name in names:
        if name in tuning.GRIDS:
            lines += competitors.notes([name], family) or [
                f"{name}: default values, as it was not tuned for such problems"
            ]
        elif name in VALUES:
            values = ", ".join(f"{key} {value:g}" for key, value in VALUES[name].items())
            lines.append(f"{name}: {values}, as in the code of the paper")
    return lines
