"""The page in a real browser: what a reader sees and can do with it."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

import proxlearn as pl
from browser import browser
from proxlearn.evaluation.comparison import compare
from proxlearn.evaluation.report import page, parquet
from proxlearn.evaluation.report.curves import COLOURS

pytestmark = pytest.mark.slow

OPTIMIZERS = ["ista", "fista", "fista-restart", "lasso"]
PHONE = (360, 740)

# Share of the canvas whose pixels have the colour of method j.
COLOURED = """
const plot = document.querySelectorAll("figure.plot")[arguments[0]].plot;
const canvas = plot.box.querySelector("canvas");
const { place } = plot.panel.methods[arguments[1]];
const colour = getComputedStyle(document.documentElement).getPropertyValue(`--c${place % 11}`);
const hex = colour.match(/\\w\\w/g);
const wanted = hex.map((h) => parseInt(h, 16));
const copy = new OffscreenCanvas(canvas.width, canvas.height);
const context = copy.getContext("2d", { willReadFrequently: true });
context.drawImage(canvas, 0, 0);
const { data } = context.getImageData(0, 0, copy.width, copy.height);
let count = 0;
for (let i = 0; i < data.length; i += 4)
  count += wanted.every((c, k) => Math.abs(data[i + k] - c) < 12) && data[i + 3] > 200;
return count;
"""
PLOTS = """
return [...document.querySelectorAll("figure.plot")].map(({ plot }) => ({
  methods: plot.panel.methods.map((m) => m.label),
  values: plot.panel.methods.map((_, j) => plot.u.data[j + 1].filter((v) => v !== null).length),
  shown: plot.u.series.slice(1, plot.panel.methods.length + 1).map((s) => s.show),
  label: plot.u.axes[0].label, x: [...plot.u.data[0]], bands: plot.u.bands.length,
  range: [plot.u.scales.x.min, plot.u.scales.x.max], width: plot.u.width,
}));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A real comparison, and an experiment of two panels with one instance and a diverging run."""
    folder = tmp_path_factory.mktemp("page")
    problem = pl.families.GaussianLasso(m=40, n=80, nonzeros=8).sample(6, 0)
    result = compare(problem, OPTIMIZERS, max_iter=120)
    rows = [
        parquet.columns_of(
            {"experiment": "a", "setting": "", "optimizer": n, "seed": 0, "version": "1"},
            run.objective.numpy(),
            result.relative_gap(n).numpy(),
            run.grad_evals.numpy() * (1 + (n == "ista")),
            run.seconds.numpy(),
        )
        for n, run in result.runs.items()
    ]
    parquet.save(rows, folder / "a.parquet")
    (folder / "a.json").write_text(json.dumps({"paper": "Fig. 1", "count": 6, "title": "T <1>"}))
    K = np.arange(2001.0)[:, None]
    with np.errstate(over="ignore"):
        gaps = {"falls": 0.5 * 0.99**K, "grows": 0.5 * 3.0**K}
    both = {"one": gaps, "two": {"quick": 0.5 ** (K + 1)}}
    rows = [
        parquet.columns_of(
            {"experiment": "b", "setting": s, "optimizer": n, "seed": 0, "version": "1"},
            gap, gap, K, K[:, 0] / 100,
        )
        for s, runs in both.items()
        for n, gap in runs.items()
    ]  # fmt: skip
    parquet.save(rows, folder / "b.parquet")
    claims = [{"claim": "c" * 60, "paper": "21", "ours": "20", "verdict": "reproduced"}]
    (folder / "claims.json").write_text(json.dumps(claims))
    page.write_page(folder)
    return folder


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@pytest.fixture
def shown(window, folder):
    """The page, freshly opened at the size of a desktop in light colours; its console is silent."""
    window.resize(1200, 900)
    window.prefer("light")
    window.open(folder / "index.html")
    window.run("localStorage.clear()")
    window.open(folder / "index.html")
    yield window
    assert window.log() == []


def test_every_plot_has_its_curves(shown):
    plots = shown.run(PLOTS)
    assert [p["methods"] for p in plots] == [OPTIMIZERS, ["falls", "grows"], ["quick"]]
    for i, plot in enumerate(plots):
        assert all(plot["shown"])
        assert min(plot["values"]) > 20
        for j in range(len(plot["methods"])):
            assert shown.run(COLOURED, i, j) > 30
    assert [p["bands"] for p in plots] == [4, 0, 0]


def test_nothing_is_fetched(shown):
    assert shown.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []


def test_the_axis_is_switched(shown):
    labels = []
    for value in ("g", "t", "k"):
        shown.click(f"figure.plot input[value={value}]")
        plot = shown.run(PLOTS)[0]
        labels.append(plot["label"])
        assert plot["x"] == sorted(plot["x"])
        assert min(plot["values"]) > 20
        if value == "g":
            assert plot["x"][-1] == 240  # ista counts twice here
    assert labels == ["gradients", "milliseconds a problem", "iterations"]


def test_a_logarithmic_axis(shown):
    shown.click("figure.plot input[value=log]")
    assert shown.run(PLOTS)[0]["range"] == [1, 120]
    shown.click("figure.plot input[value=linear]")
    assert shown.run(PLOTS)[0]["range"] == [0, 120]


def test_the_plot_ends_where_all_curves_are_at_the_floor(shown):
    ranges = [plot["range"] for plot in shown.run(PLOTS)]
    assert ranges == [[0, 120], [1, 2000], [0, 39]]  # a long axis is logarithmic; 0.5^40 < 1e-12
    shown.run(
        "const u = document.querySelector('figure.plot').plot.u;"
        "u.setScale('x', { min: 10, max: 20 })"
    )
    assert shown.run(PLOTS)[0]["range"] == [10, 20]


def test_median_and_mean(shown):
    shown.click("figure.plot input[value=mean]")
    plot = shown.run(PLOTS)[0]
    assert plot["bands"] == 0
    mean = shown.run("return document.querySelector('figure.plot').plot.u.data[1]")
    kept = shown.run("return document.querySelector('figure.plot').plot.panel.methods[0].mean.v")
    assert mean == kept
    assert not shown.run(
        "return [...document.querySelectorAll('figure.plot')].slice(1)"
        ".some((f) => f.querySelector('input[value=mean]'))"
    )


def test_methods_are_hidden_and_shown(shown):
    before = shown.run(COLOURED, 0, 1)
    shown.click(".methods label:nth-child(2) input")
    assert shown.run(PLOTS)[0]["shown"] == [True, False, True, True]
    assert shown.run(COLOURED, 0, 1) < before / 5
    shown.type(".methods label:nth-child(2) input", " ")  # by the keyboard
    assert all(shown.run(PLOTS)[0]["shown"])
    assert shown.run(COLOURED, 0, 1) == before
    shown.click(".tools button:nth-child(2)")
    assert not any(shown.run(PLOTS)[0]["shown"])
    shown.click(".tools button:nth-child(1)")
    assert all(shown.run(PLOTS)[0]["shown"])


def test_values_under_the_cursor(shown):
    shown.run(
        "const u = document.querySelector('figure.plot').plot.u;"
        "u.setCursor({ left: u.valToPos(10, 'x'), top: 20 })"
    )
    assert shown.run("return document.querySelector('.readout').textContent") == "at 10 iterations"
    texts = shown.run(
        "return [...document.querySelectorAll('.methods output')].map((o) => o.textContent)"
    )
    values = shown.run(
        "return document.querySelector('figure.plot').plot.u.data.slice(1, 5).map((d) => d[10])"
    )
    assert [float(t) for t in texts[:4]] == pytest.approx(values, rel=0.01)


def test_dark_colours(shown):
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = shown.run(paper)
    shown.click("#theme")
    dark = shown.run(paper)
    assert dark != light
    assert shown.run(COLOURED, 0, 0) > 30  # drawn again in the colours of the dark page
    shown.click("#theme")
    assert shown.run(paper) == light
    shown.run("localStorage.clear(); delete document.documentElement.dataset.theme")
    shown.prefer("dark")
    assert shown.run(paper) == dark


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(shown, theme):
    """Contrast of at least 4.5 for text and 2.2 for curves, by the WCAG's formula."""
    shown.prefer(theme)

    def value(variable):
        script = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])"
        return shown.run(script, variable).strip()

    def light(variable):
        parts = re.findall(r"\w\w", value(variable))
        linear = [((int(p, 16) / 255 + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722])) + 0.05

    def contrast(one, two="--page"):
        a, b = sorted([light(one), light(two)])
        return b / a

    texts = {v: contrast(v) for v in ("--text", "--quiet", "--link", "--yes", "--no", "--partly")}
    curves = {f"--c{i}": contrast(f"--c{i}") for i in range(len(COLOURS))}
    assert min(texts.values()) > 4.5, texts
    assert min(curves.values()) > 2.2, curves
    if theme == "light":  # the colours of the pictures
        assert [value(name).upper() for name in curves] == list(COLOURS)


def test_a_phone_needs_no_sideways_scrolling(shown):
    shown.resize(*PHONE, phone=True)
    wide = "return [document.documentElement.scrollWidth, innerWidth]"
    assert shown.run(wide) == [360, 360]
    shown.run("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    assert shown.run(wide) == [360, 360]
    assert all(p["width"] <= 360 for p in shown.run(PLOTS))
    small = shown.run(
        "return [...document.querySelectorAll('button, .choices label, .methods label')]"
        ".filter((e) => e.getBoundingClientRect().height < 28).length"
    )
    assert small == 0


def test_every_control_has_a_name(shown):
    nameless = shown.run(
        "return [...document.querySelectorAll('input, button, figure, [role=region], [role=img]')]"
        ".filter((e) => !(e.labels?.[0]?.textContent || e.textContent || e.ariaLabel)).length"
    )
    assert nameless == 0
    duplicates = shown.run(
        "const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
        "return ids.length - new Set(ids).size"
    )
    assert duplicates == 0


def test_without_scripts_the_tables_remain(window, folder):
    window.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.open(folder / "index.html")
        tables = window.run("return document.querySelectorAll('table').length")
        notice = window.run("return document.querySelector('.notice')?.textContent || ''")
    finally:
        window.devtools("Emulation.setScriptExecutionDisabled", value=False)
    assert tables == 1 + 2 * 3
    assert "need JavaScript" in notice


def test_the_console_is_listened_to(window, tmp_path):
    bad = Path(tmp_path / "bad.html")
    bad.write_text("<script>nothing.at.all</script>")
    window.open(bad)
    messages, until = [], time.monotonic() + 20
    while not messages and time.monotonic() < until:  # a busy browser reports late
        messages = window.log()
    assert any("nothing is not defined" in message for message in messages)
