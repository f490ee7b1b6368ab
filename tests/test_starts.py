"""Starts by name: which optimizers are starts, and files of weights read without PyTorch."""

import json
import os

import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from safetensors.torch import save_file

import proxlearn as pl
from proxlearn.core.starts import CompactStart
from proxlearn.errors import InputError
from proxlearn.methods.checkpoint import Learned, build, describe, weights
from proxlearn.methods.rules import CompactRule
from proxlearn.methods.scheme import Coefficients, Scheme
from proxlearn.solving.named_starts import find_start
from test_checkpoint import HOSTILE

COMPACT = {"kind": "compact", "settings": {"hidden": 3}}


def problem():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 30))
    return pl.lasso(A, A[:, 0], 0.5)


def test_which_optimizers_are_starts():
    compact = [name for name in pl.zoo.names() if isinstance(find_start(name), CompactStart)]
    assert compact == [n for n in pl.zoo.names() if isinstance(pl.load(n).rule, CompactRule)]
    assert {"lasso", "logistic", "general"} <= set(compact)
    for name in ("lasso-pa", "ista", "adam", "no such name"):
        assert find_start(name) is None
    for optimizer in (pl.load("lasso-pa"), pl.Scheme(pl.rules.Fista()), CompactRule, object()):
        assert find_start(optimizer) is None


class Other(CompactRule):
    """A rule of a user's own: whatever it does, the core would not do it."""


def test_a_subclass_is_not_taken_for_the_rule():
    rule = Other(CompactRule.Settings(), torch.Generator().manual_seed(0))
    assert find_start(Learned(rule)) is None
    assert pl.solve(problem(), Learned(rule), max_iter=3).engine == "torch"


@pytest.mark.parametrize("optimizer", ["ista", "lasso-pa"])
def test_the_loop_begins_where_the_core_cannot(optimizer):
    """The loop takes 24 iterations, the core goes on from there, and both are counted."""
    begun = pl.solve(problem(), optimizer, max_iter=24, polish=False)
    assert not begun.solved
    whole = pl.solve(problem(), optimizer, tol=1e-9)
    assert whole.solved
    assert whole.engine == "core"
    rest = pl.solve(problem(), x0=begun.x, tol=1e-9)
    assert (whole.iterations == 24 + rest.iterations).all()
    assert (whole.x == rest.x).all()


class TooFar:
    """A rule whose steps are ten times too long, so that F rises."""

    looks_at = "y"
    gradients = 1

    def init(self, problem, x0):
        return 10 * problem.safe_step()

    def __call__(self, view, step):
        return Coefficients(p=step), step


def test_a_start_of_the_loop_that_did_not_lower_F_is_dropped():
    worse = pl.solve(problem(), Scheme(TooFar()), tol=1e-9)
    assert worse.solved
    assert (worse.x == pl.solve(problem(), tol=1e-9, x0=np.zeros(problem().n)).x).all()


def test_a_file_gives_what_the_object_gives(tmp_path):
    learned = Learned(build(COMPACT, torch.Generator().manual_seed(0)))
    file = tmp_path / "mine.safetensors"
    learned.save(file)
    by_name, by_object = pl.solve(problem(), str(file)), pl.solve(problem(), learned)
    assert by_name.engine == by_object.engine == "core"
    np.testing.assert_array_equal(by_name.x, by_object.x)
    for one, two in zip(find_start(str(file)).weights, find_start(learned).weights, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    file, found = tmp_path / "mine.safetensors", []
    for seed in (0, 1):
        Learned(build(COMPACT, torch.Generator().manual_seed(seed))).save(file)
        os.utime(file, ns=(seed, seed))
        found.append(find_start(str(file)).weights[0])
    assert not np.array_equal(*found)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_the_same_words(name, tmp_path):
    file = tmp_path / "hostile.safetensors"
    HOSTILE[name][0](Learned(build(COMPACT), {}), file)
    with pytest.raises(InputError) as expected:
        pl.load(file)
    with pytest.raises(InputError) as found:
        pl.solve(problem(), str(file))
    assert str(found.value) == str(expected.value)


def test_half_precision_is_refused_in_one_line(tmp_path):
    file, rule = tmp_path / "half.safetensors", build(COMPACT)
    tensors = {key: t.bfloat16() for key, t in weights(rule).items()}
    card = {"format": 1, "rule": describe(rule)}
    save_file(tensors, file, {"proxlearn": json.dumps(card)})
    with pytest.raises(InputError, match=r"half\.safetensors") as error:
        pl.solve(problem(), str(file))
    assert "\n" not in str(error.value)


def test_a_missing_file_names_the_shipped_models():
    with pytest.raises(InputError, match="neither a file nor a shipped model"):
        pl.solve(problem(), "no-such.safetensors")


@pytest.mark.slow
def test_a_matrix_free_problem_in_float32_ends_in_float64():
    """Float32 certifies 1e-5 or so; the rounded answer is certified by a bound in float64."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 60)).astype(np.float32)
    b = A[:, :3] @ np.ones(3, dtype=np.float32)
    given = pl.lasso(scipy.sparse.linalg.aslinearoperator(A), b, 2.0)
    solution = pl.solve(given, tol=1e-8, max_iter=3000)
    assert solution.engine == "torch"
    assert solution.solved
    assert solution.x.dtype == np.float32
    exact = pl.solve(pl.lasso(A.astype(float), b, 2.0), tol=1e-12)
    distance = given.to(torch.float64).objective(torch.from_numpy(solution.x[None]).double())
    assert 0 <= distance.item() - exact.objective.item() <= solution.gap.item() + 1e-12
    assert not pl.solve(given, tol=1e-8, max_iter=3000, polish=False).solved
