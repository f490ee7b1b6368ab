"""The page of results, as text: what it holds, that it is well formed, and what it refuses."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from proxlearn import InputError
from proxlearn.cli import main
from proxlearn.evaluation.comparison import Comparison, Run
from proxlearn.evaluation.report import curves, page, page_data, parquet
from proxlearn.evaluation.report.counts import Results
from proxlearn.evaluation.report.page_data import Curve, Experiment, Method, Panel, from_comparison

HOSTILE = "</script><script>alert('1')</script><b title=\"x\">&amp; ${title}"
VOID = {"meta", "br", "input"}


class Reader(HTMLParser):
    """Elements that are open at the end or closed out of turn, attributes, rows of tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.tags, self.rows = [], [], [], []
        self.texts = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


def falling(K, rate, B=4, seconds=0.01):
    """A run whose relative gap on instance i is (1 + i) rate^k, with F* = 1."""
    k = torch.arange(K + 1, dtype=torch.float64)
    gap = (1 + torch.arange(B, dtype=torch.float64)) * rate ** k[:, None]
    return Run(1 + gap, k[:, None].expand(-1, B), seconds * k)


@pytest.fixture(scope="module")
def comparison():
    runs = {"slow": falling(50, 0.8), "fast": falling(50, 0.5, seconds=0.1)}
    return Comparison(torch.ones(4).double(), runs)


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


def experiment(K=20, methods=2, panels=1, name="e", label="m", **card):
    k = np.arange(K + 1)
    value = 0.123456789 * 0.999**k
    curve = Curve(k, k * 1.0, k * 0.0123456, value)
    band = Curve(k, k * 1.0, k * 0.0123456, value, value / 3, value * 3)
    drawn = tuple(Method(f"{label}{i}", f"{label}{i}", curve, band, 64) for i in range(methods))
    return Experiment(name, tuple(Panel(f"s{i}", drawn, 1024) for i in range(panels)), card)


def test_the_page_is_well_formed_and_loads_nothing(comparison):
    text = page.render([from_comparison("convergence", comparison, {"title": "T", "count": 4})])
    read = Reader(text)
    assert not read.open
    assert not read.wrong
    assert text.startswith("<!DOCTYPE html>")
    identifiers = [a["id"] for _, a in read.tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes in read.tags:
        assert tag not in {"link", "img", "iframe", "base", "object", "embed"}
        assert "src" not in attributes
        assert not re.match(r"(\w+:|//)", attributes.get("href", ""))
    for style in re.findall(r"<style>(.*?)</style>", text, re.S):
        assert "url(" not in style
        assert "@import" not in style
    (policy,) = (a["content"] for t, a in read.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy


def test_hostile_names_stay_text():
    texts = dict.fromkeys(("label", "title", "command", "data", "paper"), HOSTILE)
    more = {"notes": [HOSTILE], "settings": {HOSTILE: HOSTILE}}
    bad = experiment(name='a"b<i>', panels=2, **texts, **more)
    claims = [{"claim": HOSTILE, "paper": HOSTILE, "ours": HOSTILE, "verdict": HOSTILE}]
    read, plain = Reader(page.render([bad], claims, HOSTILE)), Reader(page.render([experiment()]))
    assert not read.open
    assert not read.wrong
    assert (
        [t for t, _ in read.tags].count("script") == 3 == [t for t, _ in plain.tags].count("script")
    )
    assert not {"b", "i"} & {tag for tag, _ in read.tags}
    assert read.texts["title"] == HOSTILE
    assert [HOSTILE] * 4 in read.rows
    (panels,) = data_of(page.render([bad]))
    assert panels[0]["methods"][0]["label"] == HOSTILE + "0"


def test_tables_say_what_the_comparison_says(comparison):
    read = Reader(page.render([from_comparison("c", comparison, {"count": 4})]))
    table = {row[0]: row[1:] for row in read.rows if row and row[0] in ("method", "slow", "fast")}
    assert table["method"][0] == "iterations to 10⁻³"
    for name in ("slow", "fast"):
        k = comparison.iterations_to(name, 1e-3)
        assert table[name][0] == str(k)
        expected = 1e3 * comparison.seconds_to(name, 1e-3) / 4
        assert float(table[name][2]) == pytest.approx(expected, rel=0.01)
    assert comparison.iterations_to("slow", 1e-6) is None
    assert table["slow"][1] == table["slow"][3] == "not within 50"
    assert float(table["slow"][5]) == pytest.approx(2.5 * 0.8**50, rel=0.01)
    numbers = {row[0]: row[1:] for row in read.rows if row[0].isdigit()}
    assert list(numbers) == ["0", "1", "2", "5", "10", "20", "50"]
    assert numbers["10"] == [f"{2.5 * r**10:.3g}" for r in (0.8, 0.5)]


def test_the_loser_is_named(comparison):
    """The faster in iterations is the slower in time here, and the page says both."""
    text = page.render([from_comparison("c", comparison, {"count": 4})])
    assert "To 10⁻³: fast needs the fewest iterations, 12; slow takes the least time, " in text
    assert "To 10⁻⁶: fast needs the fewest iterations, 22; fast takes the least time, " in text


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.1, []),
        (0.5, ["10⁻³: 10 iterations against 10", "10⁻⁶: 20 iterations against 20"]),
        (0.8, ["10⁻³: 31 iterations against 10", "10⁻⁶: not within 50 against 20"]),
    ],
)
def test_a_loss_of_the_papers_rule_is_said(ratio, said):
    k = np.arange(51)
    methods = [
        Method(name, label, Curve(k, k, 0.001 * k, r**k))
        for name, label, r in [("lasso-pa", "L2O-PA", ratio), ("fista-restart", "FISTA", 0.5)]
    ]
    text = page.render([Experiment("e", (Panel("", tuple(methods), 1),), {})])
    assert re.findall(r"L2O-PA is not faster than FISTA to ([^<]+)\.", text) == said


@pytest.mark.parametrize(("ratio", "said"), [(0.98, False), (0.995, True)])
def test_a_loss_that_no_level_shows_is_said(ratio, said):
    k = np.arange(51)
    methods = [
        Method(name, label, Curve(k, k, 0.001 * k, r**k))
        for name, label, r in [("lasso-pa", "L2O-PA", ratio), ("fista-restart", "FISTA", 0.99)]
    ]
    text = page.render([Experiment("e", (Panel("", tuple(methods), 1),), {})])
    assert ("At the end the gap of L2O-PA is 0.778, that of FISTA 0.605." in text) == said


def test_the_end_of_every_instance_is_counted(tmp_path):
    """One of 70 diverges, beyond those that are kept in full: the table says so."""
    gap = np.repeat(0.5 ** np.arange(31.0)[:, None], 70, 1)
    gap[:, 69] = np.inf
    labels = {"experiment": "e", "setting": "", "optimizer": "a", "seed": 0, "version": "0"}
    parquet.save(
        [parquet.columns_of(labels, gap, gap, gap, np.arange(31.0))], tmp_path / "e.parquet"
    )
    (tmp_path / "e.json").write_text('{"count": 70}')
    experiment = page_data.read(tmp_path / "e.parquet")
    ((method,),) = (panel.methods for panel in experiment.panels)
    assert (method.instances, len(method.ends)) == (64, 70)
    assert np.isfinite(method.median.value).all()
    read = Reader(page.render([experiment]))
    assert ["a", "69 of 70"] in [[row[0], row[-1]] for row in read.rows]
    assert Results(tmp_path).share("e", "", "a", 1e-6) == "69 of 70 instances"


def test_verdicts_are_counted():
    claims = [
        {"claim": "a", "verdict": "reproduced", "note": "slower than FISTA with restart"},
        {"claim": "b", "verdict": "reproduced"},
        {"claim": "c", "verdict": "not reproduced"},
    ]
    text = page.render([], claims)
    assert "Of 3 statements: 2 reproduced, 1 not reproduced. In 1 of them FISTA with" in text
    assert "One statement: reproduced. Here FISTA with" in page.render([], claims[:1])


def test_curves_are_those_of_the_comparison(comparison):
    ((panel,),) = data_of(page.render([from_comparison("c", comparison, {"count": 4})]))
    assert [m["label"] for m in panel["methods"]] == ["slow", "fast"]
    gap = comparison.relative_gap("fast").numpy()
    fast = panel["methods"][1]
    assert fast["mean"]["v"] == pytest.approx(np.maximum(gap.mean(1), 1e-12), rel=5e-3)
    assert fast["median"]["v"] == pytest.approx(np.maximum(np.median(gap, 1), 1e-12), rel=5e-3)
    assert fast["median"]["low"] == pytest.approx(np.maximum(gap.min(1), 1e-12), rel=5e-3)
    assert fast["median"]["high"] == pytest.approx(np.maximum(gap.max(1), 1e-12), rel=5e-3)
    assert fast["mean"]["k"] == list(range(51))
    assert fast["mean"]["t"] == pytest.approx([25.0 * k for k in range(51)])


@pytest.mark.slow
def test_a_large_page_stays_small():
    many = [experiment(10_000, methods=11, panels=2, name=f"e{i}") for i in range(11)]
    text = page.render(many)
    assert len(text.encode()) < 3_000_000
    curve = data_of(text)[0][0]["methods"][0]["mean"]
    assert curve["k"][:20] == list(range(20))
    assert curve["k"][-1] == 10_000
    assert len(curve["k"]) <= curves.POINTS


def test_what_diverges_is_left_out_and_said():
    k = np.arange(4)
    value = np.array([1.0, 1e30, np.inf, np.nan])
    method = Method("bad", "bad", Curve(k, k * 1.0, k * 1.0, value))
    text = page.render([Experiment("e", (Panel("", (method,), 1),))])
    ((panel,),) = data_of(text)
    assert panel["methods"][0]["mean"]["v"] == [1, 1e30, None, None]
    assert "No method reaches 10⁻³." in text
    assert "not within 3" in text
    bad = next(row for row in Reader(text).rows if row[0] == "bad")
    assert bad[-1] == "nan"


@pytest.fixture
def folder(tmp_path):
    """Rows and cards of two experiments as `proxlearn reproduce` writes them."""
    K, B = 150, 5
    gap = (1 + np.arange(B)) * 0.9 ** np.arange(K + 1)[:, None]
    spent = np.arange(K + 1.0)[:, None] + np.zeros(B)
    for name, figure, y in (("b-first", "Fig. 2", "‖b‖"), ("a-second", "Fig. 10", None)):
        parts = [
            parquet.columns_of(
                {"experiment": name, "setting": s, "optimizer": o, "seed": 0, "version": "1"},
                1 + gap, gap / (1 + (o == "two")), spent, np.arange(K + 1) * 0.5,
            )
            for s in ("published", "right")
            for o in ("one", "two")
        ]  # fmt: skip
        parquet.save(parts, tmp_path / f"{name}.parquet")
        card = {"title": name.upper(), "paper": figure, "y": y, "count": B, "command": "x --y",
                "optimizers": [{"name": "two", "label": "Two"}, {"name": "one", "label": "One"}],
                "panels": [{"setting": "right", "count": 3, "data": "three of them"}]}  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(card))
    return tmp_path


@pytest.mark.slow
def test_a_page_shows_the_statements_about_its_experiments_only(folder):
    about = {"ours": "not measured", "paper": "21", "verdict": "not measured"}
    names = {"held": "b-first", "absent": "cifar10", "of no experiment": None}
    claims = [{"claim": claim, "experiment": name, **about} for claim, name in names.items()]
    (folder / "claims.json").write_text(json.dumps(claims))
    (folder / "a-second.parquet").unlink()
    page.write_page(folder)
    text = (folder / "index.html").read_text()
    shown = [row[0] for row in Reader(text).rows if row[1:3] == ["21", "not measured"]]
    assert shown == ["held", "of no experiment"]
    assert "Of 2 statements" in text
    assert len(json.loads((folder / "claims.json").read_text())) == 3  # all are still on file


@pytest.mark.slow
def test_a_claim_leads_to_its_figure_and_one_experiment_can_be_shown_alone(folder):
    about = {"paper": "21", "ours": "20", "verdict": "reproduced", "tight": "not reproduced"}
    weights = "published: 3 seeds, 18 to 24"
    names = ("a-second", "b-first", None)
    claims = [{"claim": str(n), "experiment": n, "weights": weights, **about} for n in names]
    (folder / "claims.json").write_text(json.dumps(claims))
    page.write_page(folder)
    read = Reader((folder / "index.html").read_text())
    links = [a["href"] for t, a in read.tags if t == "a"]
    assert links.count("#e-a-second") == links.count("#e-b-first") == 2  # contents and claims
    row = next(row for row in read.rows if row[0] == "a-second")
    assert row[1:6] == ["21", "20", "reproduced", "not reproduced", weights]
    assert page.write_page(folder, only="a-second") == folder / "a-second.html"
    alone = Reader((folder / "a-second.html").read_text())
    assert [a["id"] for t, a in alone.tags if t == "h2"] == ["claims", "e-a-second"]
    assert [row[0] for row in alone.rows if row[1:2] == ["21"]] == ["a-second"]
    with pytest.raises(InputError, match="unknown experiment 'c'"):
        page.write_page(folder, only="c")


@pytest.mark.slow
def test_report_writes_the_page_of_a_folder(folder, capsys):
    claims = [{"claim": "c", "paper": "21", "ours": None, "verdict": "not reproduced"}]
    (folder / "claims.json").write_text(json.dumps(claims))
    assert main(["report", str(folder), "--title", "Mine"]) == 0
    assert capsys.readouterr().out == f"wrote {folder / 'index.html'}\n"
    text = (folder / "index.html").read_text()
    read = Reader(text)
    assert ["c", "21", "-", "not reproduced"] in read.rows
    headings = [a["id"] for t, a in read.tags if t == "h2"]
    assert headings == ["claims", "e-b-first", "e-a-second"]
    assert text.count("three of them") == 2
    first, second = data_of(text)
    assert [p["all"] for p in first + second] == [5, 3, 5, 3]
    assert first[0]["y"] == "‖b‖"
    assert [m["label"] for m in second[0]["methods"]] == ["Two", "One"]
    one = second[0]["methods"][1]
    assert one["mean"]["v"] == pytest.approx([3 * 0.9**k for k in range(151)], rel=5e-3)
    assert one["median"]["k"] == parquet.grid(150).tolist()
    for link in [a["href"] for t, a in read.tags if t == "a" and a["href"][0] != "#"]:
        assert (folder / link).stat().st_size > 5000
    assert (folder / "a-second.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_pictures_are_the_same_bytes_again(tmp_path):
    texts = []
    for folder in (tmp_path / "1", tmp_path / "2"):
        curves.save(experiment(), folder)
        texts.append((folder / "e.svg").read_bytes())
    assert texts[0] == texts[1]


def test_without_instances_or_card_the_mean_is_shown(folder):
    rows = parquet.read(folder / "a-second.parquet")
    mean = rows["instance"] == parquet.MEAN
    parquet.save([{k: v[mean].tolist() for k, v in rows.items()}], folder / "a-second.parquet")
    (folder / "a-second.json").unlink()
    found = page_data.read(folder / "a-second.parquet")
    assert [m.label for m in found.panels[0].methods] == ["one", "two"]
    assert found.panels[0].methods[0].median is None
    assert len(found.panels[0].methods[0].mean.value) == 151


BAD = {
    "is empty": lambda f: [p.unlink() for p in f.glob("*.parquet")],
    "is no parquet file": lambda f: (f / "a-second.parquet").write_text("hello"),
    "has a card that is no JSON": lambda f: (f / "a-second.json").write_text("{"),
    "has a card of a wrong kind": lambda f: (f / "a-second.json").write_text("[]"),
    "has claims of a wrong kind": lambda f: (f / "claims.json").write_text("{}"),
    "has claims that are no mappings": lambda f: (f / "claims.json").write_text('["x"]'),
    "has an optimizer without name": lambda f: (f / "a-second.json").write_text(
        '{"optimizers": [{"label": "x"}]}'
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_folder_is_one_line(folder, what, capsys):
    BAD[what](folder)
    assert main(["report", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not (folder / "index.html").exists()


def test_without_pyarrow_the_line_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install pyarrow"):
        page.write_page(folder)
