"""Bad input of every kind ends in one clear line: what was given, what was expected."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import aslinearoperator

import proxlearn as pl
from proxlearn.errors import InputError, unknown

M, N = 4, 6
A = np.random.default_rng(0).standard_normal((M, N))
b = np.arange(M) / 7
LABELS = [0, 1, 1, 0]
NAN = np.full((M, N), np.nan)


class NoShape:
    def matvec(self, x):
        return x

    rmatvec = matvec


BAD_A = {
    "scalar": (1.0, r"A has shape \(\); expected \(m, n\)"),
    "vector": (b, r"A has shape \(4,\); expected \(m, n\)"),
    "four-axes": (np.ones((1, 1, 1, 1)), r"A has shape \(1, 1, 1, 1\)"),
    "no-rows": (np.ones((0, N)), r"A has shape \(0, 6\); expected at least one row"),
    "no-columns": (np.ones((M, 0)), r"A has shape \(4, 0\); expected at least one row"),
    "empty-batch": (np.ones((0, M, N)), "empty batch"),
    "empty-list": ([], r"A has shape \(0,\)"),
    "nan": (NAN, "A holds 24 values that are NaN or infinite"),
    "inf": (np.where(A[0, 0] == A, np.inf, A), "A holds 1 values that are NaN or infinite"),
    "nan-tensor": (torch.tensor(NAN), "A holds 24 values"),
    "nan-sparse": (sp.csr_array(NAN), "A holds 24 values"),
    "nan-sparse-tensor": (torch.tensor(NAN).to_sparse(), "A holds 24 values"),
    "overflow-in-half": (np.full((M, N), np.inf, dtype=np.float16), "A holds 24 values"),
    "masked": (np.ma.masked_array(A, mask=A[0, 0] == A), "A has masked entries; expected a number"),
    "complex": (A * 1j, "A has dtype complex128; expected real numbers"),
    "complex-tensor": (torch.tensor(A * 1j), "A has dtype torch.complex128; expected real"),
    "complex-sparse": (sp.csr_array(A * 1j), "A has dtype complex128; expected real"),
    "complex-operator": (aslinearoperator(A * 1j), "A has dtype complex128; expected real"),
    "strings": ([["a", "b"]], "A has dtype <U1; expected real numbers"),
    "objects": (np.full((M, N), None), "A has dtype object; expected real numbers"),
    "none": (None, "A has dtype object"),
    "dates": (np.full((M, N), "2020", dtype="M8[Y]"), "A has dtype datetime64"),
    "ragged": ([[1, 2], [3]], "A is not a rectangular array of numbers"),
    "sparse-vector": (sp.coo_array(np.ones(M)), r"A is sparse with shape \(4,\)"),
    "sparse-batch": (torch.ones(2, M, N).to_sparse(), r"A is sparse with shape \(2, 4, 6\)"),
    "sparse-empty": (sp.csr_array((0, N)), r"A has shape \(0, 6\); expected at least one row"),
    "operator-without-shape": (NoShape(), r"A has matvec and rmatvec but no shape \(m, n\)"),
}
BAD_B = {
    "scalar": (3.0, r"b has shape \(\); expected \(4,\)"),
    "short": (b[:3], r"b has shape \(3,\); expected \(4,\) to match A with shape \(4, 6\)"),
    "column": (b[:, None], r"b has shape \(4, 1\); expected .* is it transposed\?"),
    "three-axes": (b[None, None], r"b has shape \(1, 1, 4\); expected \(4,\)"),
    "empty-batch": (np.ones((0, M)), r"b has shape \(0, 4\); expected \(4,\)"),
    "empty": ([], r"b has shape \(0,\); expected \(4,\)"),
    "nan": ([np.nan, 0, 0, 1], "b holds 1 values that are NaN or infinite"),
    "strings": (list("abcd"), "b has dtype <U1; expected real numbers"),
    "complex": (b * 1j, "b has dtype complex128; expected real numbers"),
    "none": (None, "b has dtype object; expected real numbers"),
    "ragged": ([[1, 2, 3, 4], [1]], "b is not a rectangular array"),
    "sparse-tensor": (torch.ones(M).to_sparse(), "b is sparse; expected a dense array"),
    "scipy-sparse": (sp.csr_array(np.ones((1, M))), "b has dtype object"),
}
BAD_LAM = [0, 0.0, -1, -0.5, np.nan, np.inf, -np.inf, None, "x", 1j, [], [[1.0]], [1.0, -1.0]]
BAD_LAM += [np.ones((2, 2)), -np.ones(500), [0.1, np.nan], {"lam": 1}, torch.tensor(-1.0)]
BAD_GROUPS = {
    "short": ([0, 1], r"groups has shape \(2,\); expected \(6,\)"),
    "matrix": (np.zeros((2, 3)), r"groups has shape \(2, 3\); expected \(6,\)"),
    "gap": ([0, 0, 0, 2, 2, 2], "expected groups numbered 0, 1"),
    "from-one": ([1, 1, 1, 2, 2, 2], "expected groups numbered 0, 1"),
    "negative": ([-2, 0, 0, 1, 1, 1], "expected groups numbered 0, 1"),
    "fraction": ([0, 0, 0.5, 1, 1, 1], "expected groups numbered 0, 1"),
    "strings": (list("aabbcc"), "groups has dtype <U1"),
    "nan": ([0, 0, np.nan, 1, 1, 1], "groups holds 1 values"),
    "none": (None, "groups has dtype object"),
    "nobody": ([-1] * 6, "groups has no group; expected at least one"),
    "overlapping": ([[0, 1, 2], [2, 3]], "coordinate 2 is in two groups"),
    "twice": ([[0, 1, 1]], "coordinate 1 is in two groups, or twice in group 0"),
    "empty": ([[0, 1], []], "group 1 is empty; expected at least one coordinate"),
    "outside": ([[0, 1], [6]], "group 1 holds coordinate 6; expected numbers from 0 to 5"),
    "below": ([[0, -1]], "group 0 holds coordinate -1; expected numbers from 0 to 5"),
    "fractions": ([[0, 0.5]], "group 0 is not a list of whole numbers"),
    "ragged strings": ([["a"], [0]], "group 0 has dtype <U1"),
    "nested": ([[[0]], [[1]]], "group 0 is not a list of whole numbers"),
}
MAKERS = {
    "lasso": lambda A, b: pl.lasso(A, b, 0.1),
    "elastic_net": lambda A, b: pl.elastic_net(A, b, 0.1, 0.1),
    "nnls": pl.nnls,
    "simplex_ls": pl.simplex_ls,
    "group_lasso": lambda A, b: pl.group_lasso(A, b, 0.1, np.arange(N)),
    "logistic": lambda A, b: pl.logistic(A, b, 0.1),
    "softmax": lambda A, b: pl.softmax(A, b, 0.1),
}


def rejects(match, function, *args, **kwargs):
    with pytest.raises(InputError, match=match) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 250


@pytest.mark.parametrize("case", BAD_A)
def test_bad_matrix(case):
    for make in MAKERS.values():
        rejects(BAD_A[case][1], make, BAD_A[case][0], LABELS)


@pytest.mark.parametrize("case", BAD_B)
def test_bad_target(case):
    for make in MAKERS.values():
        rejects(BAD_B[case][1], make, A, BAD_B[case][0])


@pytest.mark.parametrize("lam", BAD_LAM, ids=lambda v: str(v)[:9])
def test_bad_lam(lam):
    positive = r"lam is .*; expected a number > 0, or one an instance \(B,\)"
    rejects(positive, pl.lasso, A, b, lam)
    rejects(positive, pl.logistic, A, LABELS, lam)
    rejects(positive, pl.softmax, A, LABELS, lam)
    rejects(positive, pl.group_lasso, A, b, lam, np.arange(N))
    rejects("lam2 is .*; expected a number > 0", pl.elastic_net, A, b, 0.1, lam)
    rejects("radius is .*; expected a number > 0", pl.simplex_ls, A, b, lam)
    if not isinstance(lam, (int, float)) or lam != 0:  # an elastic net takes lam = 0
        rejects("lam is .*; expected a number >= 0", pl.elastic_net, A, b, lam, 0.1)


@pytest.mark.parametrize("case", BAD_GROUPS)
def test_bad_groups(case):
    rejects(BAD_GROUPS[case][1], pl.group_lasso, A, b, 0.1, BAD_GROUPS[case][0])


def test_bad_weights():
    rejects("weights has negative entries", pl.lasso, A, b, 0.1, weights=-np.ones(N))
    rejects(r"weights has shape \(5,\); expected \(6,\)", pl.lasso, A, b, 0.1, weights=np.ones(5))
    rejects("weights holds 6 values", pl.elastic_net, A, b, 0.1, 1, weights=np.full(N, np.inf))
    rejects(r"expected \(12,\)", pl.softmax, A, LABELS, 0.1, weights=np.ones(N))
    groups = [0, 0, 0, 1, 1, 1]
    rejects("negative", pl.group_lasso, A, b, 0.1, groups, weights=[1, -1])
    sparse = pl.sparse_group_lasso
    rejects("l1_ratio is 1.5; expected numbers from 0 to 1", sparse, A, b, 0.1, groups, 1.5)
    rejects("l1_ratio is -1; expected a number >= 0", sparse, A, b, 0.1, groups, -1)
    rejects(r"l1_weights has shape \(2,\)", sparse, A, b, 0.1, groups, l1_weights=[1, 1])
    rejects(r"\(3,\); expected \(2,\)", pl.group_lasso, A, b, 0.1, groups, weights=[1, 1, 1])


def test_bad_labels():
    rejects("labels such as -1, 1; expected only 0 and 1", pl.logistic, A, [-1, 1, 1, -1], 0.1)
    rejects("labels such as 0, 0.5", pl.logistic, A, [0, 0.5, 1, 1], 0.1)
    rejects("b holds -1; expected counts", pl.poisson, A, [0, 3, -1, 0], 0.1)
    rejects("delta is 0; expected a number > 0", pl.huber, A, b, 0.1, 0)
    rejects("class numbers 0, 1, 2", pl.softmax, A, [0, 1, -1, 0], 0.1)
    rejects("class numbers 0, 1, 2", pl.softmax, A, [0, 1, 1.5, 0], 0.1)
    rejects("labels up to 2 and classes is 2", pl.softmax, A, [0, 1, 2, 0], 0.1, classes=2)
    rejects("at least two classes", pl.softmax, A, [0, 0, 0, 0], 0.1)
    rejects("classes is 'a'; expected a whole number", pl.softmax, A, LABELS, 0.1, classes="a")
    rejects("classes is 2.5; expected a whole number", pl.softmax, A, LABELS, 0.1, classes=2.5)


def test_batches_that_do_not_match():
    many = np.ones((3, M, N))
    two = np.zeros((2, M))
    rejects("A has 3 instances and b has 2", pl.lasso, many, two, 0.1)
    rejects("f has 2 instances and r has 3", pl.lasso, A, two, [0.1, 0.2, 0.3])
    rejects("lam has 2 instances and weights has 3", pl.lasso, A, b, [1, 2], np.ones((3, N)))
    rejects("lam has 2 instances and lam2 has 3", pl.elastic_net, A, b, [1, 2], [1, 2, 3])


def test_unknown_names_list_the_known():
    error = unknown("optimizer", "fsta", ["ista", "fista"])
    assert str(error) == "unknown optimizer 'fsta'; known are: fista, ista"
    assert isinstance(error, ValueError)


def test_huge_class_numbers_are_refused_before_memory_is_asked_for():
    rejects("labels up to 1000000000000 in 4 rows", pl.softmax, A, [0, 1, 1e12, 0], 0.1)
    rejects("labels up to 100000000 in 4 rows", pl.softmax, A, [0, 1, 1e8, 0], 0.1)
    rejects("classes is 1000000000", pl.softmax, A, LABELS, 0.1, classes=10**9)
    rejects("classes is 1000000000000", pl.softmax, A, [0, 1, 2, 0], 0.1, classes=10**12)
    assert pl.softmax(A, [0, 1, 500, 0], 0.1).f.classes == 501
    assert pl.softmax(A, [0, 1, 2, 0], 0.1, classes=5000).f.classes == 5000


PROBLEM = pl.lasso(A, b, 0.1)
FAMILY = pl.families.GaussianLasso(m=4, n=6, nonzeros=2)
WRONG_TYPES = {
    "solve-array": (lambda: pl.solve(A), "problem is of type ndarray; expected a Problem"),
    "solve-none": (lambda: pl.solve(None), "problem is of type NoneType; expected a Problem"),
    "solve-family": (lambda: pl.solve(FAMILY), "problem is of type GaussianLasso"),
    "path-array": (lambda: pl.path(A), "problem is of type ndarray; expected a Problem"),
    "optimum-array": (lambda: pl.optimum(A), "problem is of type ndarray; expected a Problem"),
    "compare-array": (lambda: pl.compare(A, ["ista"], 5), "problem is of type ndarray"),
    "optimizer-number": (lambda: pl.solve(PROBLEM, 5), "optimizer is of type int; expected"),
    "optimizer-none": (lambda: pl.solve(PROBLEM, None), "optimizer is of type NoneType"),
    "optimizer-class": (lambda: pl.solve(PROBLEM, pl.optimizers.Adam), "optimizer is of type type"),
    "compare-optimizer": (lambda: pl.compare(PROBLEM, {"x": 5}, 5), "optimizer is of type int"),
    "train-problem": (lambda: pl.train(PROBLEM), "family is of type Problem; expected a Family"),
    "train-array": (lambda: pl.train(A), "family is of type ndarray; expected a Family"),
    "train-class": (lambda: pl.train(pl.families.GaussianLasso), "family is of type ABCMeta"),
    "train-config": (lambda: pl.train(FAMILY, "pa"), "config is of type str; expected a Train"),
    "train-device": (lambda: pl.train(FAMILY, device="meta"), "device 'meta' is not available"),
    "train-cuda": (lambda: pl.train(FAMILY, device="cuda:99"), "device 'cuda:99' is not available"),
    "steps-text": (lambda: pl.TrainConfig(steps="5"), "steps is '5'; expected a whole number"),
    "steps-fraction": (lambda: pl.TrainConfig(steps=1.5), "steps is 1.5; expected a whole number"),
    "lr-text": (lambda: pl.TrainConfig(lr="fast"), "lr is 'fast'; expected a number > 0"),
    "config-seed": (lambda: pl.TrainConfig(seed=10**30), "expected a whole number from 0 to"),
    "family-seed": (lambda: FAMILY.sample(1, 10**30), "expected a whole number from 0 to"),
    "family-seed-text": (lambda: FAMILY.sample(1, "x"), "seed is 'x'; expected a whole number"),
    "max-iter-list": (lambda: pl.solve(PROBLEM, max_iter=[5]), r"max_iter is \[5\]"),
    "tol-array": (lambda: pl.solve(PROBLEM, tol=np.ones((3, 3))), r"tol is \[\[1. 1. 1.\] \[1. 1"),
    "classes-array": (lambda: pl.softmax(A, b > 0, 1.0, np.ones((3, 3))), "classes is array"),
    "callback": (lambda: pl.solve(PROBLEM, callback=3), "callback is 3; expected a function"),
    "load-none": (lambda: pl.load(None), "the checkpoint is None; expected a file's"),
    "tol-overflow": (lambda: pl.solve(PROBLEM, tol=10**400), "tol is 1000"),
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_arguments_of_a_wrong_type_are_one_line(case):
    call, match = WRONG_TYPES[case]
    with pytest.raises(InputError, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


BAD_FAMILIES = {
    "GaussianLasso": [{"m": -1}, {"m": 0}, {"n": 2.5}, {"m": 10**30}, {"nonzeros": 501}],
    "GaussianElasticNet": [{"lam2": -1}, {"lam": float("nan")}, {"nonzeros": -1}],
    "GaussianGroupLasso": [{"size": 0}, {"size": 7}, {"nonzeros": 101}, {"size": 501}],
    "GaussianNnls": [{"noise": -1}, {"nonzeros": 251}, {"n": True}],
    "GaussianBox": [{"bound": 0}, {"bound": "wide"}],
    "GaussianSimplex": [{"nonzeros": 0}],
    "GaussianLogistic": [{"m": -1}, {"nonzeros": 51}, {"lam": 0}],
    "GaussianSoftmax": [{"classes": 1}, {"nonzeros": 41}, {"m": 0}],
    "GaussianLeastSquares": [{"spread": 0}, {"m": -5}, {"noise": float("inf")}],
    "GaussianRidgeLogistic": [{"flipped": 2}, {"ridge": -1}, {"n": 0}],
    "WeightedMedian": [{"k": 0}, {"n": -1}, {"scale": float("nan")}],
    "WideLasso": [{"fewest": 0}, {"rows": 10}, {"lam_low": 0}, {"lam_high": 0.001}, {"m": -1}],
    "WideSoftmax": [{"classes": 1}, {"classes": -3}],
}


@pytest.mark.parametrize("name", BAD_FAMILIES)
def test_parameters_that_a_family_cannot_have(name):
    family = getattr(pl.families, name)
    for change in BAD_FAMILIES[name]:
        with pytest.raises(InputError, match=r"of .* is .*; expected") as caught:
            family(**change)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250
    assert family().sample(1, 0).batch == 1
