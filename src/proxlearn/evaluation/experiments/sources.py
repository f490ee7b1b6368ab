"""The problems that experiments share."""

import math
from functools import cache

import torch

from proxlearn.evaluation.experiments.experiment import FromData, FromFamily
from proxlearn.problems import datasets
from proxlearn.problems.constructors import lasso, logistic, softmax
from proxlearn.problems.ksvd import ksvd
from proxlearn.problems.operators import Dense
from proxlearn.problems.problem import Problem
from proxlearn.training.families import GaussianLasso, GaussianLogistic

LASSOS, LOGISTICS = "gaussian-lasso", "gaussian-logistic"
"""Families that rules are trained on."""
TRAINING_NOTE = (
    "L2O-PA was trained on 500 minibatches of 64 problems, as in the paper; L2O-DM and RNNprop on "
    "less than there, on 150 of 16."
)

LASSO = FromFamily(GaussianLasso(), "LASSO 250x500, 50 non-zeros, lambda 0.1, float32", LASSOS)
LASSO_BLOCK = 16
"""Of these at a time: they and the states of learned rules then stay in the cache, and an
iteration of L2O-PA takes 0.6 ms an instance in place of 0.9."""
SMALL_LASSO = FromFamily(
    GaussianLasso(m=100, n=200, nonzeros=20),
    "LASSO 100x200, 20 non-zeros, lambda 0.1, float32",
    LASSOS,
)
LARGE_LASSO = FromFamily(
    GaussianLasso(m=2500, n=5000, nonzeros=500),
    "LASSO 2500x5000, 500 non-zeros, lambda 0.1, float32",
    LASSOS,
)
LARGER_LASSO = FromFamily(
    GaussianLasso(m=1000, n=2000, nonzeros=200),
    "LASSO 1000x2000, 200 non-zeros, lambda 0.1, float32",
    LASSOS,
)
LOGISTIC = FromFamily(
    GaussianLogistic(),
    "logistic regression, 1000 samples, 50 features, 20 non-zeros, lambda 0.1, float32",
    LOGISTICS,
)


def _spambase() -> Problem:
    A, b = datasets.spambase()
    return logistic(datasets.standardise(A), b, 0.1)


def _ionosphere() -> Problem:
    A, b = datasets.ionosphere()
    return logistic(datasets.standardise(A), b, 0.1)


@cache
def _patches() -> Problem:
    signals = datasets.bsds_patches(count=1000, size=8, seed=0)
    dictionary = ksvd(signals, atoms=128, sparsity=6, rounds=10, seed=0)
    return lasso(dictionary.atoms, signals, 0.5)


def in_units_of(family: GaussianLasso, problem: Problem) -> Problem:
    """LASSO problems with one A and one lambda in units where L and lambda are those of a family.

    A is multiplied by s, b by t and lambda by s t: the minimiser is t/s times what it was, and
    relative gaps stay what they are.
    """
    f, lam = problem.f.linear_loss(), problem.r.level()
    assert f is not None
    assert f.name == "squares"
    assert isinstance(f.A, Dense)
    assert lam is not None
    assert problem.r.is_l1
    usual = float(family.sample(64, 0).lipschitz().mean())
    s = math.sqrt(usual / float(problem.lipschitz()[0]))
    t = family.lam / (s * float(lam[0, 0]))
    return lasso(s * f.A.A, t * f.b, family.lam)


def _pictures(per_class: int) -> Problem:
    A, b = datasets.cifar10(per_class=per_class)
    return softmax((A / A.norm(dim=1, keepdim=True)).to(torch.float32), b, 1e-4, classes=10)


SPAMBASE = FromData(
    _spambase, "Spambase, 4601 samples, 57 standardised features, lambda 0.1, float64", LOGISTICS
)
IONOSPHERE = FromData(
    _ionosphere,
    "Ionosphere, 351 samples, 34 standardised features, lambda 0.1, float64",
    LOGISTICS,
)
PATCHES = FromData(
    _patches,
    "LASSO 64x128: 8x8 patches of BSDS500 in a K-SVD dictionary of theirs, lambda 0.5, float64",
    LASSOS,
)
SCALED_PATCHES = FromData(
    lambda: in_units_of(GaussianLasso(), _patches()),
    "the same with A, b and lambda scaled such that L and lambda are those of the training",
    LASSOS,
)
PICTURES = FromData(
    lambda: _pictures(500), "CIFAR-10, 5000 pictures of norm 1, 10 classes, lambda 1e-4, float32"
)
FEWER_PICTURES = FromData(
    lambda: _pictures(50), "CIFAR-10, 500 pictures of norm 1, 10 classes, lambda 1e-4, float32"
)
