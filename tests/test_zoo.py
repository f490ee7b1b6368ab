"""The shipped models: cards that agree with the recipes, and weights that do what the cards say."""

import json

import pytest

import proxlearn as pl
from proxlearn import zoo
from proxlearn.evaluation.comparison import compare
from proxlearn.evaluation.model_results import LEVELS, TESTS, suite_of
from proxlearn.training.recipes import LOW_LAMBDA, RECIPES
from proxlearn.training.snapshot import completed, describe_config, describe_family

REQUIRED = {"name", "command", "licence", "rule", "family", "config", "status", "training",
            "versions", "results", "format"}  # fmt: skip


@pytest.mark.parametrize("name", zoo.names())
def test_the_card_agrees_with_the_recipe(name):
    card = pl.load(name).card
    family, config = RECIPES[name]
    assert set(card) >= REQUIRED
    assert card["name"] == name
    assert card["status"] == "finished"
    assert card["family"] == json.loads(json.dumps(describe_family(family)))
    assert completed(card["config"]) == json.loads(json.dumps(describe_config(config)))
    assert set(card["results"]) == set(suite_of(name))
    for test, result in card["results"].items():
        assert test in TESTS
        assert set(result) == {name, "fista-restart"}


# Of another family, or slow; `imaging` has tests of its own with pictures.
LEFT_OUT = ("logistic", "lowlambda-l2o-dm", "lowlambda-rnnprop", "imaging")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in zoo.names() if not n.startswith(LEFT_OUT)])
def test_the_weights_do_on_fresh_problems_what_the_card_says(name):
    learned = pl.load(name)
    expected = learned.card["results"][suite_of(name)[0]][name]
    family = LOW_LAMBDA if name.startswith("lowlambda") else pl.families.GaussianLasso()
    problem = family.sample(24, 77)
    most = max(k or 20 for k in expected)
    result = compare(problem, {name: learned}, max_iter=most + most // 5 + 10)
    for eps, k in zip(LEVELS, expected, strict=True):
        found = result.iterations_to(name, eps)
        if k is None:  # the card says that this one does not get there
            assert found is None
            continue
        assert found is not None
        # The mean over 24 problems is that of 1,024 up to a few iterations.
        assert abs(found - k) <= 2 + 0.15 * k


def test_a_shipped_model_is_an_optimizer_by_name():
    for name in zoo.names():
        sizes = {} if name.endswith("lista") else {"m": 20, "n": 40, "nonzeros": 3}
        problem = pl.families.GaussianLasso(**sizes).sample(2, 0)
        x = pl.solve(problem, name, tol=0, max_iter=3).x
        assert x.isfinite().all()


def test_every_recipe_has_an_own_name_and_a_test():
    for name in RECIPES:
        assert suite_of(name)
        assert name not in pl.optimizers.NAMES
