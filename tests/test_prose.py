"""The code in README runs and prints what it says; links of README and CONTRIBUTING exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


README = list(zip(blocks("README.md", "python"), blocks("README.md", "text"), strict=True))


@pytest.mark.parametrize(("code", "expected"), README, ids=range(len(README)))
def test_readme_prints_what_it_says(code, expected):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == expected


@pytest.mark.parametrize(("name", "least"), [("README.md", 10), ("CONTRIBUTING.md", 2)])
def test_links_exist(name, least):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text("utf-8"))
    ours = [link for link in links if not link.startswith("https://")]
    assert len(ours) >= least
    assert not [link for link in ours if not (ROOT / link).is_file()]
