"""Print the name of the best build of the compiled core that this machine's processor can run."""

import runpy
from pathlib import Path

processor = Path(__file__).resolve().parents[1] / "src" / "proxlearn" / "core" / "processor.py"
print(runpy.run_path(str(processor))["supported"]()[0])
