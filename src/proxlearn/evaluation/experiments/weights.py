"""Where the experiments find weights that do not come with the package: all seeds, both presets.

`trainings` makes them. They are looked for in the folder that the environment variable
PROXLEARN_WEIGHTS names, and where it is not set, in docs/results/weights of the source tree.
"""

import os
from pathlib import Path

VARIABLE = "PROXLEARN_WEIGHTS"
_OURS = Path(__file__).parents[4] / "docs" / "results" / "weights"


def folder() -> Path:
    """The folder of the weights, which need not exist."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else _OURS


def find(name: str) -> Path | None:
    """The file with the weights of a training; None where it is not there."""
    file = folder() / f"{name}.safetensors"
    return file if file.is_file() else None
