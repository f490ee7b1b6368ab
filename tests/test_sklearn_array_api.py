"""scikit-learn's checks and tests with arrays of other libraries.

SciPy reads the variable SCIPY_ARRAY_API when it is imported, and without it they are skipped. There
are some for each library that is installed, and so their number differs.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proxlearn.sklearn.cv_defaults import VERSION

HERE = Path(__file__).parent


def passed_with_array_api(file, chosen):
    """How many chosen tests of a file pass; none fails."""
    command = [sys.executable, "-m", "pytest", str(HERE / file), "-q", "-k", chosen]
    variables = os.environ | {"SCIPY_ARRAY_API": "1"}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert "SCIPY_ARRAY_API" not in ran.stdout
    return int(re.search(r"(\d+) passed", ran.stdout)[1])


@pytest.mark.slow
def test_scikit_learns_checks_of_estimators():
    assert passed_with_array_api("test_sklearn.py", "test_scikit_learn_checks and array_api") >= 20


@pytest.mark.slow
@pytest.mark.skipif(VERSION < (1, 9), reason="an older scikit-learn has no such tests")
def test_scikit_learns_tests_of_logistic_regression():
    assert passed_with_array_api("dropin/test_logistic.py", "array_api") >= 30
