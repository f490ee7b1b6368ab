"""The presets of the paper's reproduction, and the trainings that follow from them."""

import json
import re
from collections import Counter
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import pytest
import torch

import proxlearn as pl
from proxlearn import zoo
from proxlearn.evaluation import experiments, tuning
from proxlearn.evaluation.experiments import compared_methods as methods
from proxlearn.evaluation.experiments import presets, runner, trainings, weights
from proxlearn.evaluation.experiments.experiment import FromFamily, Setting
from proxlearn.evaluation.experiments.presets import CORRECTED, PUBLISHED
from proxlearn.evaluation.experiments.steps import published_step
from proxlearn.evaluation.experiments.trainings import TRAININGS, Planned
from proxlearn.evaluation.report import parquet
from proxlearn.evaluation.report.counts import Results
from proxlearn.methods.optimizers import Adam
from proxlearn.training.ranks import Ranks
from proxlearn.training.recipes import RECIPES
from proxlearn.training.snapshot import completed, describe_config
from proxlearn.training.training_loop import Training
from tiny_experiment import tiny

SOURCE = Path(pl.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"


def test_a_preset_is_frozen():
    with pytest.raises(FrozenInstanceError):
        PUBLISHED.name = "mine"
    for field in fields(PUBLISHED):
        value = getattr(PUBLISHED, field.name)
        if not isinstance(value, str):
            with pytest.raises(TypeError):
                value["new"] = 1


def test_the_published_conventions():
    lasso, logistic = PUBLISHED.config("lasso", "pba12"), PUBLISHED.config("logistic", "pa")
    for config in (lasso, logistic):
        assert (config.steps, config.batch, config.horizon, config.unroll) == (500, 64, 100, 20)
        assert (config.schedule, config.clip, config.warmup) == ("constant", None, 0)
        assert (config.loss, config.score) == ("objective", "objective")
        rule = config.new_rule().settings
        assert (rule.unit, rule.bias_activation) == ("norm", "sigmoid")
        assert (rule.start, rule.detach_inputs, rule.looks_at) == ("fresh", True, "y")
        assert (rule.hidden, rule.layers) == (20, 2)
    assert (lasso.lr, logistic.lr) == (1e-2, 3e-3)
    assert lasso.new_rule().settings.activation == "sigmoid"
    assert logistic.new_rule().settings.activation == "softplus"
    assert PUBLISHED.step == "published"
    l2o_dm = PUBLISHED.config("lasso", "l2o-dm").new_rule().settings
    assert (l2o_dm.inputs, l2o_dm.output, l2o_dm.start) == ("plain", "elu", "fresh")
    for problems, scale in [("lasso", 0.01), ("logistic", 1.0)]:
        config = PUBLISHED.config(problems, "rnnprop")
        assert config.lr == 3e-3
        rnnprop = config.new_rule().settings
        assert (rnnprop.input_layer, rnnprop.start_scale) == ("elu", scale)


def test_the_corrected_preset_has_no_quirk_and_is_that_of_the_shipped_models():
    for problems in ("lasso", "logistic", "lowlambda"):
        shipped = pl.load(f"{problems}-pa")
        config = CORRECTED.config(problems, "pa")
        assert config.new_rule().settings == shipped.rule.settings
        family, recipe = RECIPES[f"{problems}-pa"]
        assert presets.PROBLEMS[problems] == family
        same = {"validation": 64, "validate_every": 10, "settings": recipe.settings}
        assert replace(config, **same) == recipe
    assert CORRECTED.step == "right"
    assert CORRECTED.config("lasso", "rnnprop").new_rule().settings.input_layer == "elu"


def test_unknown_problems_are_named():
    with pytest.raises(pl.InputError, match="unknown kind of problems 'ridge'"):
        PUBLISHED.config("ridge", "pa")


def test_only_the_experiments_use_the_presets():
    for file in SOURCE.rglob("*.py"):
        if file.parent.name != "experiments":
            assert "presets" not in file.read_text("utf-8"), file


def test_every_training_of_the_plan_is_there():
    assert all(planned.name == name for name, planned in TRAININGS.items())
    seeds = Counter((p.preset.name, p.problems, p.rule) for p in TRAININGS.values())
    for problems in ("lasso", "logistic", "lowlambda"):
        for rule in ("pa", "l2o-dm", "rnnprop"):
            assert seeds["published", problems, rule] == 3
            shipped = 1 if rule == "pa" else 0  # the first seed of PA is a shipped model
            assert seeds["corrected", problems, rule] + shipped == 3
    for rule in trainings.ABLATION:
        for preset in ("published", "corrected"):
            assert seeds[preset, "lasso", rule] == 1
            assert seeds[preset, "small-lasso", rule] == 2
    for rule in ("ada-lista", "step-lista"):
        assert seeds["published", "lasso", rule] == 1
    first = list(TRAININGS)[:3]
    assert set(first) == {f"published-{p}-pa-0" for p in ("lasso", "logistic", "lowlambda")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in TRAININGS if n.endswith("-0")])
def test_a_planned_training_can_begin(name):
    planned = TRAININGS[name]
    tiny = {"steps": 2, "batch": 2, "validation": 2, "validate_every": 2, "reference": 20}
    sizes = {"m": 12, "n": 20, "nonzeros": 3}
    config = replace(planned.config, **tiny)
    if planned.rule in presets.UNROLLED:
        config = replace(config, settings={**config.settings, "rows": 12, "columns": 20})
    run = Training(replace(planned.family, **sizes), config, Ranks(), "cpu")
    before = [p.detach().clone() for p in run.rule.parameters()]
    run.minibatch()
    assert run.skipped == 0
    assert any(not torch.equal(a, b) for a, b in zip(before, run.rule.parameters(), strict=True))


@pytest.fixture
def two(monkeypatch):
    """Two trainings of a second each."""
    small = {"steps": 20, "batch": 2, "horizon": 4, "unroll": 2, "validation": 2}

    class Small(Planned):
        family = pl.families.GaussianLasso(m=6, n=8, nonzeros=2)

        @property
        def config(self):
            return replace(super().config, **small)

    plan = [Small(PUBLISHED, "lasso", "pa"), Small(PUBLISHED, "lasso", "p")]
    monkeypatch.setattr(trainings, "TRAININGS", {p.name: p for p in plan})
    return [p.name for p in plan]


@pytest.mark.slow
def test_the_command_trains_skips_what_is_finished_and_says_how_long(tmp_path, capsys, two):
    assert trainings.main(["--out", str(tmp_path), two[1]]) == 0
    out = capsys.readouterr().out
    assert f"1/1 {two[1]}: 20/20 loss" in out
    assert "left" in out
    assert "for all" in out
    assert trainings.main(["--out", str(tmp_path), "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{two[0]}: not begun", f"{two[1]}: finished"]
    assert trainings.main(["--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"2/2 {two[1]}: finished before" in out
    assert f"1/2 {two[0]}: finished in" in out
    card = pl.load(tmp_path / f"{two[0]}.safetensors").card
    assert card["preset"] == "published"
    planned = trainings.TRAININGS[two[0]]
    assert card["config"] == json.loads(json.dumps(describe_config(planned.config)))
    with pytest.raises(SystemExit):
        trainings.main(["--out", str(tmp_path), "published-lasso-pq-0"])
    assert "unknown training 'published-lasso-pq-0'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_goes_on_past_a_damaged_checkpoint(tmp_path, capsys, two):
    (tmp_path / f"{two[0]}.resume").write_bytes(b"nonsense")
    assert trainings.main(["--out", str(tmp_path)]) == 1
    caught = capsys.readouterr()
    assert "is not a readable safetensors file" in caught.err
    assert (tmp_path / f"{two[1]}.safetensors").exists()
    assert trainings.main(["--out", str(tmp_path), "--list"]) == 0
    assert "begun" in capsys.readouterr().out


@pytest.mark.slow
def test_experiments_find_the_weights_of_a_preset_and_say_what_is_not_trained(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PROXLEARN_WEIGHTS", str(tmp_path))
    lasso = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
    config = replace(PUBLISHED.config("lasso", "pa"), steps=1, batch=2, validation=2)
    for seed in (0, 1):
        out = tmp_path / f"published-lasso-pa-{seed}.safetensors"
        pl.train(lasso, replace(config, seed=seed), out=out)
    names = tuple(f"published-lasso-pa-{seed}" for seed in (0, 1, 2))
    problems = FromFamily(lasso, "tiny LASSO", "gaussian-lasso")
    optimizers = ("fista-restart", "published-adamhd", *names)
    experiment = tiny(settings=(Setting("", problems, optimizers),))
    quick, paper = (methods.chosen(experiment, None, scale) for scale in ("quick", "paper"))
    assert quick == optimizers[:3]
    assert paper == optimizers[:4]
    assert methods.missing(experiment) == [names[2]]
    made = methods.made(paper, problems)
    assert made["published-adamhd"] == Adam(**tuning.PUBLISHED["adamhd"])
    assert made[names[1]].rule.settings.start == "fresh"
    card = json.loads(runner.run(experiment, "paper", tmp_path / "out").card.read_text())
    assert f"Not run, as these are not trained yet: {names[2]}." in card["notes"]
    assert any("published-adamhd: alpha 0.1, hyper 3.2e-06" in note for note in card["notes"])
    rows = parquet.read(tmp_path / "out" / "tiny.parquet")
    assert set(rows["optimizer"]) == set(paper)
    card = json.loads(runner.run(experiment, "quick", tmp_path / "quick").card.read_text())
    assert "The quick scale runs the first seed of every training." in card["notes"]
    with pytest.raises(pl.InputError, match="needs the models nothing"):
        methods.chosen(tiny(settings=(Setting("", problems, ("nothing",)),)), None)


def test_the_committed_weights_are_found_without_a_setting(monkeypatch):
    monkeypatch.delenv("PROXLEARN_WEIGHTS", raising=False)
    committed = {f.stem for f in (DOCS / "results" / "weights").glob("*.safetensors")}
    assert committed
    assert committed <= set(TRAININGS)
    for name in committed:
        assert weights.find(name).is_file()
        found = methods.get(name)
        assert (found.card["name"], found.card["status"]) == (name, "finished")
        config = json.loads(json.dumps(describe_config(TRAININGS[name].config)))
        assert completed(found.card["config"]) == config


def test_the_names_in_the_experiments_are_those_of_trainings():
    for name in experiments.NAMES:
        for optimizer in experiments.get(name).optimizers():
            if optimizer.endswith("-rescaled"):
                assert zoo.has(optimizer.removesuffix("-rescaled"))
            if optimizer.startswith(("published-", "corrected-")):
                assert optimizer in TRAININGS or optimizer in methods.VALUES


def test_a_rule_trained_in_units_of_the_right_step_runs_in_the_published_unit():
    problem = pl.families.GaussianLogistic(m=30, n=6, nonzeros=3).sample(2, 0)
    changed = published_step(problem)
    x0 = torch.zeros(2, 6)
    norm = 1 / problem.f.A.norm()[:, None]
    for preset, expected in [(CORRECTED, problem.safe_step()), (PUBLISHED, norm)]:
        rule = preset.config("logistic", "pa").new_rule()
        torch.testing.assert_close(rule.init(problem, x0).step, expected)
        torch.testing.assert_close(rule.init(changed, x0).step, norm)


def test_a_rescaled_rule_is_the_same_on_its_training_problems_and_another_elsewhere():
    own, other = pl.load("logistic-pa"), methods.get("logistic-pa-rescaled")
    assert other.rule.settings.unit == "norm"
    assert 90 < other.rule.settings.unit_scale < 120  # 4m/||A|| for 1000 x 50 normal numbers
    family = pl.families.GaussianLogistic()
    steps = [r.rule.init(family.sample(8, 5), torch.zeros(8, 50)).step for r in (own, other)]
    torch.testing.assert_close(*steps, rtol=0.1, atol=0)
    long = replace(family, m=250).sample(8, 5)
    short, longer = (r.rule.init(long, torch.zeros(8, 50)).step for r in (own, other))
    assert bool((longer > 1.5 * short).all())


@pytest.mark.slow
def test_the_page_about_the_paper_quotes_the_rows_of_ionosphere():
    results = Results(DOCS / "results")
    said = " ".join((DOCS / "paper.md").read_text("utf-8").split())

    def count(step, name, level):
        return results.to("ionosphere", step, name, level).value

    levels = (1e-3, 1e-6, 1e-8)
    ours = [count("published step", "logistic-pa-rescaled", level) for level in levels]
    assert f"take {ours[0]} / {ours[1]} iterations, and {ours[2]} to 1e-8" in said
    slow, right = (count(step, "fista", 1e-6) for step in ("published step", "right step"))
    assert f"{slow / ours[1]:.0f} times fewer than FISTA with the published step" in said
    assert f"{right / ours[1]:.1f} times fewer than FISTA with the right one" in said
    both = [
        [results.to("spambase", step, name, level).value for level in (1e-3, 1e-6)]
        for step, name in [
            ("right step", "logistic-pa"),
            ("published step", "logistic-pa-rescaled"),
        ]
    ]
    assert all(abs(a - b) <= 1 for a, b in zip(*both, strict=True))


def test_the_page_about_the_paper_has_the_numbers_of_the_published_preset():
    said = (DOCS / "paper.md").read_text("utf-8")
    for rate in (PUBLISHED.rates["lasso"], PUBLISHED.rates["logistic"]):
        assert f"{rate:.0e}".replace("e-0", "e-") in said
    section = said.partition("## As published, and corrected")[2].partition("\n## ")[0]
    conventions = re.findall(r"^- (.*(?:\n  .*)*)", section, re.M)
    assert len(conventions) == 9
    for convention in conventions:  # what it is, where the authors' code has it, and why
        assert convention.startswith("**")
        assert re.search(r"\.py`|\.sh`|the same file", convention)
        why = re.sub(r"\*\*.*?\*\*|\([^)]*\)", "", convention, flags=re.S)
        assert len(why.split()) > 8


def test_a_panel_of_trainings_is_not_run_while_none_of_them_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PROXLEARN_WEIGHTS", str(tmp_path))
    problems = FromFamily(pl.families.GaussianLasso(m=10, n=20, nonzeros=2), "tiny LASSO")
    settings = (
        Setting("a", problems, ("ista", "fista-restart")),
        Setting("b", problems, ("published-small-lasso-pa-1", "fista-restart")),
    )
    outcome = runner.run(tiny(settings=settings), "paper", tmp_path / "out")
    card = json.loads(outcome.card.read_text())
    assert [panel["setting"] for panel in card["panels"]] == ["a"]
    assert any("published-small-lasso-pa-1" in note for note in card["notes"])
