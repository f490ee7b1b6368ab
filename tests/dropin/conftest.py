"""What scikit-learn's tests expect of their surroundings."""

import re
from pathlib import Path

import numpy as np
import pytest

from dropin.exceptions import DIFFERENCES, NOT_APPLICABLE


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    return request.param


@pytest.fixture
def global_random_seed():
    return 42


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        item.add_marker(pytest.mark.slow)  # there are hundreds
        # Ours turns every warning into an error; scikit-learn's only these.
        for kind in ("error::DeprecationWarning", "error::FutureWarning", "default"):
            item.add_marker(pytest.mark.filterwarnings(kind))
        for name, reason in NOT_APPLICABLE.items():
            if re.fullmatch(name, item.name):
                item.add_marker(pytest.mark.skip(reason=f"does not apply: {reason}"))
        for name, reason in DIFFERENCES.items():
            if re.fullmatch(name, item.name):
                item.add_marker(pytest.mark.xfail(reason=f"differs: {reason}"))


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests")
