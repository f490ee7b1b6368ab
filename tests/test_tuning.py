"""Tuning: fair problems, the right choice, records that say how they were made."""

import json
import math

import pytest

import proxlearn as pl
from leaves import same
from proxlearn.cli import main
from proxlearn.evaluation import competitors, tuning
from proxlearn.evaluation.comparison import compare, optimum
from proxlearn.evaluation.model_results import TEST_SEED
from proxlearn.methods.optimizers import Adam

SMALL = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
RECORDS = sorted(tuning._RECORDS.glob("*.json"))
PAIRS = [(o, f) for o in ("adam", "adamhd") for f in ("gaussian-lasso", "gaussian-logistic")]


def small(grid, **options):
    return tuning.tune("adam", SMALL, grid, **{"count": 3, "iterations": 20, **options})


def test_the_score_is_that_of_a_comparison():
    record = small({"alpha": (0.01, 0.1)}, seed=5)
    problem = SMALL.sample(3, tuning.STREAM + 5)
    methods = {str(alpha): Adam(alpha=alpha) for alpha in (0.01, 0.1)}
    result = compare(problem, methods, 20, optimum(problem))
    for trial in record["trials"]:
        expected = result.mean_gap(str(trial["alpha"]))[1:].log10().mean().item()
        assert trial["score"] == pytest.approx(expected, abs=1e-4)


def test_the_least_score_is_chosen_and_an_edge_is_named():
    record = small({"alpha": (1e-4, 0.05, 5.0), "beta1": (0.9,)})
    assert record["chosen"] == {"alpha": 0.05, "beta1": 0.9}
    assert record["edge"] == []
    assert len(record["trials"]) == 3
    wide = small({"alpha": (1e-5, 1e-4, 0.05)})
    assert wide["chosen"] == {"alpha": 0.05}
    assert wide["edge"] == ["alpha"]


def test_a_breakdown_scores_worst():
    trials = small({"alpha": (0.05, 1e30)})["trials"]
    assert trials[1]["score"] == pytest.approx(math.log10(tuning.WORST))


def test_seeds_give_other_problems_and_the_same_again():
    grid = {"alpha": (0.05,)}
    assert small(grid, seed=1) == small(grid, seed=1)
    assert small(grid, seed=1)["trials"] != small(grid, seed=2)["trials"]


def test_validation_problems_are_no_test_problems():
    # A generator looks at 32 bits of its seed: STREAM must not wrap around onto small numbers.
    assert tuning.STREAM + tuning.LARGEST_SEED < 2**32
    assert tuning.STREAM > TEST_SEED + 10**6
    ours = SMALL.sample(1, tuning.STREAM)
    assert not any(same(ours, SMALL.sample(1, seed)) for seed in (0, TEST_SEED))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fista", SMALL), "unknown optimizer to tune 'fista'"),
        (("adam", "lasso"), "unknown family 'lasso'"),
        (("adam", SMALL, {"alfa": (1.0,)}), "unknown parameter 'alfa'"),
        (("adam", SMALL, {}), "the grid is empty"),
        (("adam", SMALL, {"alpha": ()}), "the grid is empty"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(pl.InputError, match=words) as caught:
        tuning.tune(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**31}, "seed is 2147483648"),
        ({"iterations": 0}, "iterations is 0"),
        ({"count": 0}, "batch is 0"),
    ],
)
def test_bad_numbers(options, words):
    with pytest.raises(pl.InputError, match=words):
        small({"alpha": (0.1,)}, **options)


def test_records_are_those_of_the_paper_s_families():
    assert [file.stem for file in RECORDS] == sorted(f"{o}-{f}" for o, f in PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "family"), PAIRS)
def test_a_record_is_whole_and_chosen_inside_its_grid(optimizer, family):
    record = tuning.record(optimizer, family)
    assert (record["optimizer"], record["family"]) == (optimizer, family)
    assert record["command"].startswith(f"proxlearn tune {optimizer} {family} --count ")
    assert record["edge"] == []
    assert len(record["trials"]) == math.prod(len(v) for v in record["grid"].values())
    for name, values in record["grid"].items():
        assert min(values) < record["chosen"][name] < max(values)
    best = min(record["trials"], key=lambda trial: trial["score"])
    assert record["chosen"].items() <= best.items()
    default = pl.optimizers.get(optimizer)
    chosen = tuning.tuned(optimizer, family)
    assert isinstance(chosen, Adam)
    assert chosen == Adam(**record["chosen"])
    # On problems of neither the validation nor the test set the choice holds too.
    problem = pl.families.get(family).sample(4, 77)
    result = compare(problem, {"default": default, "tuned": chosen}, record["iterations"])
    means = {name: result.mean_gap(name)[1:].log10().mean() for name in result.runs}
    assert means["tuned"] <= means["default"]  # AdamHD's default is the choice for LASSO


def test_a_missing_record_is_named():
    assert tuning.record("adam", "gaussian-nnls") is None
    assert tuning.record("fista", "../tuned/adam-gaussian-lasso") is None
    with pytest.raises(pl.InputError, match=r"'adam-gaussian-nnls'; known are: adam-gaussian"):
        tuning.tuned("adam", "gaussian-nnls")


def test_comparisons_use_the_tuned_values(capsys):
    methods = competitors.named(["adam", "fista", "adamhd"], "gaussian-lasso")
    assert list(methods) == ["adam", "fista", "adamhd"]
    assert methods["adam"] == tuning.tuned("adam", "gaussian-lasso")
    assert methods["adamhd"] == tuning.tuned("adamhd", "gaussian-lasso")
    assert competitors.named(["adam"], "gaussian-elastic-net") == {"adam": Adam()}
    command = ["compare", "gaussian-logistic", "--count", "2", "--max-iter", "5", "--optimizers"]
    assert main([*command, "adam,fista"]) == 0
    alpha = tuning.tuned("adam", "gaussian-logistic").alpha
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "tuned" in line]
    assert line.startswith(f"adam: alpha {alpha:g}, ")
    assert line.endswith("tuned on 16 other problems of gaussian-logistic, 1000 iterations")
    assert main([*command, "fista"]) == 0
    assert "tuned" not in capsys.readouterr().out


def test_command_line(tmp_path, capsys):
    out = tmp_path / "record.json"
    command = ["tune", "adam", "gaussian-logistic", "--count", "2", "--max-iter", "5"]
    assert main([*command, "--set", "alpha=0.001,0.01", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    record = json.loads(out.read_text("utf-8"))
    assert record["grid"] == {"alpha": [0.001, 0.01]}
    assert record["command"] == (
        "proxlearn tune adam gaussian-logistic --count 2 --max-iter 5 --seed 0 "
        "--set alpha=0.001,0.01"
    )
    assert f"wrote {out}" in printed.out
    assert f"warning: alpha = {record['chosen']['alpha']:g} is at an end" in printed.err
    assert main([*record["command"].split()[1:], "--out", str(out)]) == 0
    assert json.loads(out.read_text("utf-8")) == record


def test_command_line_bad_input(capsys):
    assert main(["tune", "fista", "gaussian-lasso"]) == 2
    assert "unknown optimizer to tune 'fista'; known are: adam, adamhd" in capsys.readouterr().err
    assert main(["tune", "adam", "gaussian-lasso", "--set", "alpha=x"]) == 2
    assert "--set alpha=x is not a list of numbers" in capsys.readouterr().err


@pytest.mark.parametrize("optimizer", tuning.GRIDS)
def test_the_grid_contains_the_published_values(optimizer):
    published, grid = tuning.PUBLISHED[optimizer], tuning.GRIDS[optimizer]
    assert set(published) == set(grid)
    for name, value in published.items():
        assert value in grid[name]
    Adam(**published)


def test_the_step_of_adamhd_has_a_lower_bound():
    problem = SMALL.sample(3, 0)
    x0 = problem.nearest_to_zero()

    def smallest(**settings):
        optimizer = Adam(alpha=0.5, hyper=0.1, **settings)
        state, seen = optimizer.init(problem, x0), []
        for _ in range(20):
            state = optimizer.step(problem, state)
            seen.append(state.memory.alpha.min().item())
        return min(seen)

    assert smallest() < 0
    assert smallest(least=1e-8) == pytest.approx(1e-8)
