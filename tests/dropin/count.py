"""Run scikit-learn's own tests with proxlearn's classes and count them: `make dropin`.

    python tests/dropin/count.py [arguments of pytest]

Every test that applies either passes or is listed as a difference in exceptions.py. The exit code
is that of pytest.
"""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

FILES = {
    "test_coordinate_descent.py": "coordinate descent",
    "test_sparse_coordinate_descent.py": "coordinate descent, sparse",
    "test_logistic.py": "logistic regression",
}


class Counted:
    """A pytest plugin that counts the outcomes for each file."""

    def __init__(self):
        self.outcomes = {name: Counter() for name in FILES}

    def pytest_runtest_logreport(self, report):
        counts = self.outcomes[Path(report.nodeid.partition("::")[0]).name]
        if report.when == "call" and not hasattr(report, "wasxfail") and not report.skipped:
            counts[report.outcome] += 1
        elif hasattr(report, "wasxfail"):
            counts["differs" if report.skipped else "failed"] += 1
        elif report.skipped:
            reason = str(report.longrepr[2])
            counts["not applicable" if "does not apply" in reason else "left out"] += 1
        elif report.failed:
            counts["failed"] += 1


def table(outcomes):
    """A line for each file and one for all, as text."""
    kinds = ("passed", "differs", "failed", "not applicable", "left out")
    lines = [f"{'tests of scikit-learn':<28}" + "".join(f"{kind:>16}" for kind in kinds)]
    total = sum(outcomes.values(), Counter())
    for name, counts in [*((FILES[n], c) for n, c in outcomes.items()), ("all", total)]:
        lines.append(f"{name:<28}" + "".join(f"{counts[kind]:>16}" for kind in kinds))
    applicable = sum(total[kind] for kind in kinds[:3])
    share = 100 * total["passed"] / max(applicable, 1)
    lines.append(f"{total['passed']} of {applicable} applicable tests pass ({share:.1f}%)")
    lines.append("left out: scikit-learn skips them itself, mostly for missing array libraries")
    return "\n".join(lines)


def main(arguments):
    counted = Counted()
    os.environ["SCIPY_ARRAY_API"] = (
        "1"  # without it scikit-learn skips its tests of array libraries
    )
    code = pytest.main([str(Path(__file__).parent), "-q", "-rf", *arguments], plugins=[counted])
    print("\n" + table(counted.outcomes))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
