"""Experiments: their definitions, the steps of the paper, and what is recorded of a method."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse
import torch

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.evaluation import experiments
from proxlearn.evaluation.experiments import record, runner, sources
from proxlearn.evaluation.experiments.experiment import FromData, Scale, Setting, digest, label
from proxlearn.evaluation.experiments.sources import TRAINING_NOTE
from proxlearn.evaluation.experiments.steps import (
    STEPPED,
    both_steps,
    published,
    published_step,
    stepped,
)
from proxlearn.evaluation.report import parquet
from proxlearn.methods.checkpoint import Learned, build
from proxlearn.methods.scheme import View
from tiny_experiment import LASSO, LOGISTIC, tiny

ALL = [experiments.get(name) for name in experiments.NAMES]


@pytest.mark.parametrize("experiment", ALL, ids=experiments.NAMES)
def test_every_experiment_is_well_formed(experiment):
    assert experiments.get(experiment.name) is experiment
    assert experiment.quick.count <= experiment.paper.count
    assert experiment.quick.iterations <= experiment.paper.iterations
    names = [s.name for s in experiment.settings]
    assert len(set(names)) == len(names)
    if experiment.measure == "gap":
        for setting in experiment.settings:
            assert "fista-restart" in setting.optimizers
    for setting in experiment.settings:
        labels = [experiment.label(n) for n in setting.optimizers]
        assert len(set(labels)) == len(labels), labels


def test_only_named_settings_of_logistic_experiments_have_the_published_step():
    with_both = {e.name for e in ALL if any(s.step == "published" for s in e.settings)}
    assert with_both == {"logistic", "ionosphere", "spambase", "cifar10", "cross"}
    for e in ALL:
        for s in e.settings:
            assert (s.step == "published") == (s.name == "published step")
            if s.step == "published":
                assert all(stepped(n) or published(n) for n in s.optimizers)
                assert set(STEPPED) <= set(s.optimizers)
            elif e.name in with_both:
                assert not any(published(n) for n in s.optimizers)


def test_the_note_on_training_is_that_of_the_cards():
    def trained(name):
        config = pl.load(name).card["config"]
        return f"{config['steps']} minibatches of {config['batch']} problems"

    for family in ("lasso", "logistic"):
        assert trained(f"{family}-pa") in TRAINING_NOTE
        for name in ("l2o-dm", "rnnprop"):
            short = (
                trained(f"{family}-{name}").replace("minibatches ", "").removesuffix(" problems")
            )
            assert f"on {short}." in TRAINING_NOTE


def test_labels():
    assert label("lasso-pa") == label("logistic-pa") == "L2O-PA"
    assert label("lasso-l2o-dm") == "L2O-DM"
    assert label("fista-restart") == "FISTA with restart"
    assert label("mine.safetensors") == "mine.safetensors"
    assert label("published-logistic-pa-1") == "L2O-PA, published, seed 1"
    assert label("published-small-lasso-pba-2") == "L2O-PBA, published, seed 2"
    assert label("published-adamhd") == "AdamHD, published"
    assert label("logistic-pa-rescaled") == "L2O-PA in units of 1/‖A‖"


@pytest.mark.parametrize("name", ["fista-restart", "adamhd", "lasso"])
def test_a_record_is_the_bare_method(name):
    """Nothing helps an optimizer on its way: no safeguard, no polish, no early end."""
    problem, optimizer = LASSO.block(0, 3, 0), pl.optimizers.get(name)
    found = record.record_gap(problem, optimizer, 25)
    state = optimizer.init(problem, torch.zeros(3, 20))
    for k in range(26):
        exact = problem.to(torch.float64).objective(state.x.double())
        np.testing.assert_allclose(found["objective"][k], exact, rtol=1e-9)
        with torch.no_grad():
            state = optimizer.step(problem, state)
    assert found["gradients"][-1].tolist() == [25 * optimizer.gradients] * 3


def test_the_clock_stands_still_while_objectives_are_computed(monkeypatch):
    problem = LASSO.block(0, 2, 0)
    real = type(problem).objective

    def slow(self, x):
        import time

        time.sleep(0.02)
        return real(self, x)

    monkeypatch.setattr(type(problem), "objective", slow)
    assert record.record_gap(problem, pl.optimizers.get("ista"), 20)["seconds"][-1] < 0.2


def test_a_method_that_breaks_down_keeps_its_last_value():
    @dataclass(frozen=True)
    class Exploding:
        gradients = 1

        def init(self, problem, x0):
            return pl.optimizers.get("ista").init(problem, x0)

        def step(self, problem, state):
            state = pl.optimizers.get("ista").step(problem, state)
            return replace(state, x=state.x * (float("nan") if state.k == 4 else 1))

    found = record.record_gap(LASSO.block(0, 2, 0), Exploding(), 10)
    assert found["objective"].shape == (11, 2)
    assert np.isfinite(found["objective"]).all()
    assert (found["objective"][3:] == found["objective"][3]).all()
    assert (found["objective"][2] != found["objective"][3]).all()


def test_an_instance_is_the_same_in_every_block():
    many, one = LASSO.block(0, 4, 7), LASSO.block(2, 3, 7)
    assert torch.equal(many.select(torch.tensor([2])).f.A.A, one.f.A.A)
    assert torch.equal(many.f.b[2:3], one.f.b)
    assert not torch.equal(one.f.b, LASSO.block(2, 3, 8).f.b)


def test_blocks_of_the_large_experiment_stay_below_the_memory_that_is_promised():
    large = experiments.get("lasso-large")
    (setting,) = large.settings
    numbers = setting.problems.family.m * setting.problems.family.n * large.block
    assert numbers * (4 + 8 + 8) < 3 * 2**30  # float32, its float64 copy, and one in the making


def test_published_step():
    problem = LOGISTIC.block(0, 3, 0).to(torch.float64)
    changed = published_step(problem)
    norm = torch.linalg.matrix_norm(problem.f.A.A, 2)
    torch.testing.assert_close(changed.lipschitz(), norm, rtol=1e-6, atol=0)
    torch.testing.assert_close(problem.lipschitz(), norm**2 / (4 * 30), rtol=1e-6, atol=0)
    x = torch.ones(3, 6, dtype=torch.float64)
    assert torch.equal(changed.objective(x), problem.objective(x))
    with pytest.raises(InputError, match="f is LeastSquares"):
        published_step(LASSO.block(0, 1, 0))


@pytest.mark.slow
def test_both_steps_run_and_only_the_step_differs(tmp_path):
    settings = both_steps(LOGISTIC, ("adam", "ista", "fista-restart"))
    outcome = runner.run(tiny(settings=settings), "quick", tmp_path)
    rows = parquet.read(outcome.rows)
    pairs = set(zip(rows["setting"], rows["optimizer"], strict=True))
    assert pairs == {
        ("right step", "adam"),
        ("right step", "ista"),
        ("right step", "fista-restart"),
        ("published step", "ista"),
        ("published step", "fista-restart"),
    }
    last = (rows["instance"] == -1) & (rows["optimizer"] == "ista") & (rows["iteration"] == 30)
    gap = {s: rows["gap"][last & (rows["setting"] == s)].item() for s, _ in pairs}
    assert gap["right step"] < 0.1 * gap["published step"]
    start = (rows["instance"] == -1) & (rows["iteration"] == 0)
    assert len(set(rows["objective"][start].tolist())) == 1


def test_other_optimizers_run_with_the_published_step_only_if_it_is_theirs(tmp_path):
    experiment = tiny(settings=both_steps(LOGISTIC, ("ista", "fista-restart")))
    outcome = runner.run(experiment, "quick", tmp_path, optimizers=["adam", "fista"])
    rows = parquet.read(outcome.rows)
    assert set(zip(rows["setting"], rows["optimizer"], strict=True)) == {
        ("right step", "adam"),
        ("right step", "fista"),
        ("published step", "fista"),
    }


def test_norms_of_the_biases(tmp_path):
    rule = build(
        {"kind": "recurrent", "settings": {"learns": "pba12"}}, torch.Generator().manual_seed(0)
    )
    Learned(rule).save(tmp_path / "pba12.safetensors")
    name = str(tmp_path / "pba12.safetensors")
    experiment = tiny(
        settings=(Setting("", LASSO, (name,)),), measure="bias", quick=Scale(3, 6), y="norms"
    )
    outcome = runner.run(experiment, "quick", tmp_path / "out", optimizers=[name])
    rows = parquet.read(outcome.rows)
    assert set(rows["optimizer"]) == {"b1", "b2"}
    assert json.loads(outcome.card.read_text())["y"] == "norms"
    # b1 of the first iteration, from the rule itself
    problem = LASSO.block(0, 3, 0)
    x = torch.zeros(3, 20)
    view = View(problem, 0, x, x, problem.f.evaluate(x))
    with torch.no_grad():
        coefficients, _ = rule(view, rule.init(problem, x))
    first = (rows["iteration"] == 0) & (rows["instance"] == -1)
    for which in ("b1", "b2"):
        expected = getattr(coefficients, which).norm(dim=-1).mean().item()
        found = rows["gap"][first & (rows["optimizer"] == which)].item()
        assert found == pytest.approx(expected, rel=1e-5)
        assert found > 0


def test_norms_are_of_one_rule(tmp_path):
    with pytest.raises(InputError, match="looks at one rule; 2 were given"):
        runner.run(tiny(measure="bias"), "quick", tmp_path, optimizers=["ista", "fista"])


@pytest.mark.parametrize("points", [1, 3, 64])
def test_objectives_are_those_of_the_iterates_however_many_wait(monkeypatch, points):
    monkeypatch.setattr(record, "POINTS", points)
    problem, fista = LASSO.block(0, 2, 0), pl.optimizers.get("fista")
    rows = record.record_gap(problem, fista, 7)
    exact = problem.to(torch.float64)
    for k in (0, 2, 3, 7):
        x = pl.solve(problem, fista, tol=0, max_iter=k, safeguard=False, polish=False).x
        np.testing.assert_allclose(rows["objective"][k], exact.objective(x.double()), rtol=1e-12)
    assert rows["gradients"].tolist() == [[k, k] for k in range(8)]
    assert (np.diff(rows["seconds"]) >= 0).all()


def test_norms_need_a_rule_of_the_scheme():
    with pytest.raises(InputError, match="need a rule of the scheme"):
        record.record_bias(LASSO.block(0, 1, 0), pl.optimizers.get("adam"), 3)


def test_patches_in_the_units_of_the_training_are_the_same_problems():
    family = pl.families.GaussianLasso(m=30, n=40, nonzeros=4)
    generator = torch.Generator().manual_seed(3)
    A = 7 * torch.randn(12, 20, generator=generator, dtype=torch.float64)
    b = torch.randn(5, 12, generator=generator, dtype=torch.float64)
    problem = pl.lasso(A, b, 2.0)
    changed = sources.in_units_of(family, problem)
    usual = family.sample(64, 0).lipschitz().mean().item()
    assert changed.lipschitz()[0].item() == pytest.approx(usual, rel=1e-3)
    assert changed.r.lam.unique().tolist() == pytest.approx([family.lam])
    before, after = pl.solve(problem), pl.solve(changed)
    ratio = after.objective / before.objective
    torch.testing.assert_close(ratio, ratio[:1].expand(5))  # F is t^2 times what it was
    assert ((before.x != 0) == (after.x != 0)).all()


def test_problems_of_the_same_size_with_other_numbers_have_another_key():
    generator = torch.Generator().manual_seed(0)
    A, b = torch.randn(6, 4, generator=generator), torch.randn(3, 6, generator=generator)
    given = [(A, b, 0.1), (2 * A, b, 0.1), (A, 2 * b, 0.1), (A, b, 0.2)]
    problems = [FromData(lambda data=data: pl.lasso(*data), "some") for data in given]
    assert len({p.key() for p in problems}) == len(given)
    assert problems[0].key() == FromData(lambda: pl.lasso(A, b, 0.1), "the same").key()
    with pytest.raises(TypeError, match="a Sparse in a problem has no hash"):
        digest(pl.lasso(scipy.sparse.csr_array(A.numpy()), b, 0.1))
