"""How Sphinx builds the documentation: ``make docs``. Needs no network."""

import json
import re
import shutil
from importlib.metadata import version as installed
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert as to_mathml

HERE = Path(__file__).parent

project = "proxlearn"
author = copyright = "the proxlearn developers"
version = release = installed("proxlearn")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",  # lists of parameters from numpydoc sections
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "results", "benchmarks-table.md"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "proxlearn"
html_static_path = ["_static"]
html_css_files = ["proxlearn.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "results": [], "gallery/*": []}
html_theme_options = {
    "logo": {"text": f"proxlearn {version}"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# The page of results is one HTML file that needs nothing around it.
RESULTS = HERE / "results"
if (RESULTS / "index.html").is_file():
    tags.add("results")  # noqa: F821 (Sphinx defines it)

html_math_renderer = "mathml"  # MathML, which browsers draw themselves: no script, no network
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"  # not what programs print
napoleon_google_docstring = False
napoleon_use_param = False  # words of a type, such as (m, n), are no references
napoleon_use_rtype = False
suppress_warnings = ["ref.python"]  # the m of a type (m, n) is no attribute of that name
default_role = "code"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_inherit_docstrings = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"(^|/)(?!plot_)\w+\.py$",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}

_CODE = re.compile(r"(``.+?``|`.+?`)")


def as_rest(app, what, name, obj, options, lines):
    """Docstrings are plain text with code in backticks: escape what reST would read as markup.

    Sections of numpydoc are left to napoleon, which comes after this.
    """
    out: list[str] = []
    sections = False
    for before, line in zip(["", *lines], lines, strict=False):
        if re.fullmatch(r"-{4,}", line.strip()):
            sections = True
            out.append(line)
        elif sections and not line.startswith((">>>", "...")) and not _doctest(out):
            out.append(_escaped(line))
        else:
            if line.startswith("    ") and not before.strip() and not _inside_block(out):
                out += ["::", ""]
            verbatim = line.startswith((" ", ">>>", "...")) or _doctest(out)
            out.append(line if verbatim else _escaped(line))
    lines[:] = out


def _escaped(line: str) -> str:
    """The line with backslashes before stars, bars and trailing underscores that are no code."""
    parts = _CODE.split(line)
    parts[::2] = [re.sub(r"([*|\\]|_\b)", r"\\\1", text) for text in parts[::2]]
    return "".join(parts)


def _inside_block(out: list[str]) -> bool:
    """True where the last line that is not blank belongs to an indented block, or announces one."""
    last = next((line for line in reversed(out) if line.strip()), "")
    return last.startswith("    ") or last.endswith("::")


def _doctest(out: list[str]) -> bool:
    """True in the output below a >>> line."""
    for line in reversed(out):
        if not line.strip():
            return False
        if line.startswith(">>>"):
            return True
    return False


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what scikit-learn puts into the classes that derive from its own."""
    foreign = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return True if foreign else None


def markdown_table(head, rows):
    """A table of texts, in which nothing is markup."""
    cells = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *cells])


def insert_results(app, name, source):
    """Fill the tables of the page of results from the committed cards and verdicts."""
    if name != "results" or not (RESULTS / "index.html").is_file():
        return
    claims = json.loads((RESULTS / "claims.json").read_text(encoding="utf-8"))
    columns = ("claim", "paper", "ours", "restarted_fista", "verdict", "note")
    head = ["claim", "paper", "ours", "FISTA with restart", "verdict", ""]
    table = markdown_table(head, [[claim[c] for c in columns] for claim in claims])
    cards = [json.loads(f.read_text(encoding="utf-8")) for f in sorted(RESULTS.glob("*.json"))]
    ran = sorted((c for c in cards if isinstance(c, dict)), key=lambda card: card["order"])
    rows = [[c["paper"], f"`{c['command']}`", c["count"], c["iterations"]] for c in ran]
    runs = markdown_table(["paper", "command", "problems", "iterations"], rows)
    source[0] = source[0].replace("<!-- claims -->", table).replace("<!-- runs -->", runs)


def copy_results(app, error):
    """Put the page of results beside the others."""
    if error is None and (RESULTS / "index.html").is_file():
        ignored = shutil.ignore_patterns(".cache", "*.parquet", "*.json")
        shutil.copytree(RESULTS, Path(app.outdir) / "results", ignore=ignored, dirs_exist_ok=True)


def inline_mathml(translator, node):
    """Write inline mathematics as MathML."""
    translator.body.append(to_mathml(node.astext()))
    raise SkipNode


def block_mathml(translator, node):
    """Write displayed mathematics as MathML; it scrolls by itself where the page is narrow."""
    formula = to_mathml(node.astext(), display="block")
    # The converter writes the variable of a minimum as a subscript, which stands beside it.
    formula = re.sub(r"<msub>(<mo>min</mo>.*?)</msub>", r"<munder>\1</munder>", formula)
    translator.body.append(f'<div class="formula">{formula}</div>\n')
    raise SkipNode


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", insert_results)
    app.connect("build-finished", copy_results)
    app.connect("autodoc-process-docstring", as_rest, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip_foreign)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline_mathml, None), block_renderers=(block_mathml, None)
    )
