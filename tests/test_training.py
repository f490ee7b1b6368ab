"""Training: it learns, survives what goes wrong, and is the same however it is run."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

import proxlearn as pl
from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import describe, read_tensors, weights, write_tensors
from proxlearn.problems.operators import Dense
from proxlearn.problems.penalties import L1
from proxlearn.problems.smooth import LeastSquares
from proxlearn.training import snapshot
from proxlearn.training.ranks import Ranks
from proxlearn.training.snapshot import completed
from proxlearn.training.training_loop import Training
from proxlearn.training.validation import score
from training_worker import CONFIG, FAMILY

WORKER = Path(__file__).parent / "training_worker.py"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHELASTIC_ERROR_FILE": ""}


@pytest.fixture(autouse=True)
def one_thread():
    """As in the worker: sums of several threads end in other bits."""
    torch.set_num_threads(1)


def worker(*arguments, ranks=None, check=True):
    """Run the worker, alone or as several ranks under torchrun."""
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    if ranks:
        # PyTorch's own threads can abort when a process ends (seen once, SIGABRT, on a busy
        # machine); a restart goes on from the checkpoint after that as after a SIGKILL.
        runner = ["-m", "torch.distributed.run", "--standalone", "--max-restarts=3"]
        command = [sys.executable, *runner, f"--nproc-per-node={ranks}", *command[1:]]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
    return done


def same_bits(one, other):
    a, b = weights(pl.load(one).rule), weights(pl.load(other).rule)
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "loss"), [("pa", "objective"), ("compact", "log-gap"), ("pba12", "objective")]
)
def test_a_short_training_lowers_the_validation_score(rule, loss):
    config = replace(CONFIG, rule=rule, loss=loss, steps=15, horizon=20, unroll=10, batch=16)
    scores = []
    trained = pl.train(FAMILY, config, watch=lambda report: scores.append(report.validation))
    untrained = Training(FAMILY, config, Ranks(), "cpu")
    untrained.validate()
    assert trained.card["training"]["validation_score"] < untrained.validation - 0.1
    assert len(scores) == 15
    assert trained.card["status"] == "finished"


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    for name, seed in [("a", 0), ("b", 0), ("c", 1)]:
        pl.train(FAMILY, replace(CONFIG, steps=2, seed=seed), out=tmp_path / f"{name}.safetensors")
    assert same_bits(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert not same_bits(tmp_path / "a.safetensors", tmp_path / "c.safetensors")


def test_training_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    pl.train(FAMILY, replace(CONFIG, steps=1))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.slow
def test_a_killed_training_refuses_another_configuration_and_resumes_to_the_same_bits(tmp_path):
    whole, killed = tmp_path / "whole.safetensors", tmp_path / "killed.safetensors"
    pl.train(FAMILY, CONFIG, out=whole, checkpoint_seconds=0)
    done = worker(killed, "--kill-rank", 0, "--once", tmp_path / "marker", check=False)
    assert done.returncode == -9
    assert not killed.exists()
    assert (tmp_path / "killed.resume").exists()
    with pytest.raises(InputError, match="another family or configuration"):
        pl.train(FAMILY, replace(CONFIG, lr=0.5), out=killed, resume=True)
    pl.train(FAMILY, CONFIG, out=killed, resume=True, checkpoint_seconds=0)
    assert same_bits(killed, whole)
    assert not (tmp_path / "killed.resume").exists()
    log = (tmp_path / "killed.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in log] == list(range(1, CONFIG.steps + 1))
    assert not [f for f in os.listdir(tmp_path) if f.endswith(".partial")]


@pytest.mark.parametrize("rule", ["pa", "l2o-dm"])
def test_the_score_of_objectives_is_their_mean_and_costs_one_evaluation_an_iteration(rule):
    config = replace(CONFIG, rule=rule, loss="objective", score="objective", horizon=12, unroll=4)
    training = Training(FAMILY, config, Ranks(), "cpu")
    problem = training.problems(0, 8, 0)
    optimum, products = training.optimum(problem), []
    forward = problem.f.A.forward

    def count(x):
        products.extend([1] * (x.ndim == 2))  # which calls itself with one more axis
        return forward(x)

    object.__setattr__(problem.f.A, "forward", count)
    with torch.no_grad():
        found = score(training.optimizer, training.config, problem, optimum)
        spent = len(products)
        state, values = training.optimizer.init(problem, torch.zeros(8, problem.n)), []
        for _ in range(12):
            state = training.optimizer.step(problem, state)
            values.append(problem.objective(state.y).mean())
    assert found == float(torch.stack(values).mean().log10())
    assert spent == 12 + 1  # the iterations, and the last y


class BothRanks(Training):
    """One process that draws, for every step, the problems of two ranks."""

    def problems(self, stream, count, rank):
        parts = [super(BothRanks, self).problems(stream, count // 2, r) for r in (0, 1)]
        A, b, lam = (
            torch.cat([pick(p) for p in parts])
            for pick in (lambda p: p.f.A.A, lambda p: p.f.b, lambda p: p.r.lam)
        )
        return pl.Problem(LeastSquares(Dense(A), b), L1(lam))


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """The file of a training by two ranks that nothing disturbed."""
    out = tmp_path_factory.mktemp("ranks") / "two.safetensors"
    worker(out, ranks=2)
    return out


@pytest.mark.slow
def test_two_ranks_equal_one_with_the_double_batch(two_ranks):
    two = json.loads(two_ranks.with_suffix(".jsonl").read_text().splitlines()[-1])
    # Validation draws from its own stream in both, so only the training problems are doubled.
    one = BothRanks(FAMILY, replace(CONFIG, batch=2 * CONFIG.batch), Ranks(), "cpu")
    one.validate = lambda: None
    while one.step < CONFIG.steps:
        one.minibatch()
    final = Training(FAMILY, CONFIG, Ranks(), "cpu")
    final.rule.load_state_dict(one.rule.state_dict())
    final.validate()
    assert two["validation"] == pytest.approx(final.validation, rel=1e-4)


@pytest.mark.slow
def test_a_killed_rank_restarts_from_the_checkpoint_and_finishes(two_ranks, tmp_path):
    kill = ["--kill-rank", 1, "--once", tmp_path / "marker"]
    worker(tmp_path / "killed.safetensors", "--resume", *kill, ranks=2)
    assert (tmp_path / "marker").exists()
    assert same_bits(tmp_path / "killed.safetensors", two_ranks)
    assert pl.load(tmp_path / "killed.safetensors").card["training"]["ranks"] == 2


@pytest.mark.slow
@dataclass(frozen=True)
class Poisoned(pl.families.GaussianLasso):
    """Every problem after the first `good` batches holds NaN."""

    good: int = 3
    drawn: list = field(default_factory=list)

    def build(self, A, b):
        self.drawn.append(0)
        return super().build(A, b * float("nan") if len(self.drawn) > self.good else b)


def test_bad_minibatches_are_skipped_counted_and_end_with_the_last_good_weights():
    family = Poisoned(m=10, n=20, nonzeros=2, good=4)
    trained = pl.train(family, replace(CONFIG, steps=100, validate_every=2))
    assert trained.card["status"] == "diverged"
    assert trained.card["training"]["skipped_minibatches"] == 20
    assert all(bool(w.isfinite().all()) for w in weights(trained.rule).values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": "papa"}, "unknown rule 'papa'"),
        ({"horizon": 10, "unroll": 3}, "multiple"),
        ({"steps": 0}, "steps is 0"),
        ({"lr": -1.0}, "lr is -1"),
        ({"loss": "l2"}, "unknown loss"),
        ({"score": "l2"}, "unknown score"),
        ({"layerwise": True}, "one segment, and unroll 5 is not horizon 10"),
        ({"settings": {"hiden": 3}}, "settings"),
    ],
)
def test_a_bad_configuration_is_one_clear_line(change, words):
    with pytest.raises(InputError, match=words) as error:
        replace(CONFIG, **change).new_rule()
    assert "\n" not in str(error.value)


def test_a_committed_training_is_made_again(tmp_path):
    """`python tests/training_worker.py tests/data/tiny.safetensors` made the committed weights."""
    pl.train(FAMILY, CONFIG, out=tmp_path / "again.safetensors")
    again = pl.load(tmp_path / "again.safetensors")
    committed = pl.load(Path(__file__).parent / "data" / "tiny.safetensors")
    # The committed card is older than some settings, which have their defaults in it.
    assert describe(again.rule) == describe(committed.rule)
    assert committed.card["rule"]["settings"].items() <= again.card["rule"]["settings"].items()
    assert again.card["family"] == committed.card["family"]
    assert again.card["config"] == completed(committed.card["config"])
    # The same bits on the same kind of processor; elsewhere sums are rounded in another order,
    # and Adam's first steps of 0.01 amplify that where a gradient is nearly zero.
    score = committed.card["training"]["validation_score"]
    assert again.card["training"]["validation_score"] == pytest.approx(score, abs=0.02)
    for name, weight in weights(committed.rule).items():
        assert torch.allclose(weights(again.rule)[name], weight, atol=0.02)


def test_the_score_of_the_paper_s_code_is_the_mean_objective_at_y():
    run = Training(FAMILY, replace(CONFIG, score="objective"), Ranks(), "cpu")
    run.validate()
    problem, _ = run.hold_out(0)
    state, seen = run.optimizer.init(problem, torch.zeros(8, 20)), []
    with torch.no_grad():
        for _ in range(CONFIG.horizon):
            state = run.optimizer.step(problem, state)
            seen.append(problem.objective(state.y))
    assert run.validation == pytest.approx(torch.stack(seen).mean().log10().item(), abs=1e-6)


SUPERVISED = pl.TrainConfig.paper(
    rule="step-lista",
    settings={"layers": 6, "rows": 10, "columns": 20},
    loss="distance",
    layerwise=True,
    steps=80,
    batch=16,
    horizon=6,
    unroll=6,
    lr=5e-2,
    reference=100,
    score="last-gap",
    validation=16,
)


def test_a_layerwise_training_lengthens_its_segment_layer_by_layer():
    run = Training(FAMILY, SUPERVISED, Ranks(), "cpu")
    lengths = []
    for run.step in range(SUPERVISED.steps):
        lengths.append(run.length())
        assert run.segments() == 1
    assert lengths == sorted(lengths)
    assert set(lengths) == set(range(1, 7))
    assert lengths.index(6) <= 60
    ordinary = Training(FAMILY, CONFIG, Ranks(), "cpu")
    assert ordinary.length() == CONFIG.unroll


@pytest.mark.slow
def test_the_supervised_loss_moves_the_layers_and_they_come_closer():
    trained = pl.train(FAMILY, SUPERVISED)
    problem = FAMILY.sample(64, 5)
    best = pl.solve(problem, "fista-restart", tol=2e-5, max_iter=2000).x

    def missed(rule):
        state = rule.optimizer().init(problem, torch.zeros(64, 20))
        with torch.no_grad():
            for _ in range(6):
                state = rule.optimizer().step(problem, state)
        return ((state.x - best).square().sum(-1) / best.square().sum(-1)).mean().item()

    assert missed(trained.rule) < 0.7 * missed(SUPERVISED.new_rule())
    assert trained.rule.log_theta.abs().amax() > 1  # by more than one factor e


def test_a_checkpoint_from_before_a_setting_existed_resumes(tmp_path):
    out = tmp_path / "old.safetensors"
    run = Training(FAMILY, CONFIG, Ranks(), "cpu")
    run.minibatch()
    snapshot.write(run, out)
    tensors, metadata = read_tensors(tmp_path / "old.resume")
    state = json.loads(metadata["training"])
    for name in ("score", "layerwise"):
        del state["identity"]["config"][name]
    write_tensors(tmp_path / "old.resume", tensors, {"training": json.dumps(state)})
    again = Training(FAMILY, CONFIG, Ranks(), "cpu")
    snapshot.restore(again, out)
    assert again.step == 1
    other = Training(FAMILY, replace(CONFIG, score="objective"), Ranks(), "cpu")
    with pytest.raises(InputError, match="another family or configuration"):
        snapshot.restore(other, out)


def test_a_training_ends_where_validations_stand_still():
    """With a learning rate of nearly 0 the first validation stays the best one."""
    family = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
    config = pl.TrainConfig(
        steps=40, horizon=10, unroll=10, batch=4, validation=4, validate_every=2, lr=1e-30,
        stop_after=3,
    )  # fmt: skip
    seen = []
    learned = pl.train(family, config, watch=seen.append)
    assert learned.card["status"] == "finished"
    assert learned.card["training"]["steps"] == 8 == seen[-1].step
    with pytest.raises(InputError, match="stop_after"):
        pl.TrainConfig(stop_after=-1)
