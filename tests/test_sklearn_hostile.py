"""Estimators on data that no one would choose: constant columns and targets, weights of zero."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model

from proxlearn.errors import InputError
from proxlearn.sklearn import (
    ElasticNet,
    GroupLasso,
    HuberRegressor,
    Lasso,
    LassoCV,
    LassoIC,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskLasso,
    NonNegativeLeastSquares,
    PoissonRegressor,
    SparseGroupLasso,
)

LAYOUTS = [np.asarray, np.asfortranarray, scipy.sparse.csr_array]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("constant", [1.0, 0.1, -2.5])
@pytest.mark.parametrize(
    "model",
    [
        NonNegativeLeastSquares(),
        Lasso(alpha=0),
        Lasso(alpha=0, positive=True),
        Lasso(alpha=0.01, penalty_weights=[1.0, 0.0, 0.0]),
        PoissonRegressor(alpha=0),
        HuberRegressor(alpha=0),
    ],
    ids=str,
)
def test_a_constant_column_beside_an_intercept_has_no_coefficient(rng, model, constant, layout):
    X = rng.standard_normal((30, 3))
    X[:, 2] = constant
    y = np.exp(0.2 * X[:, 0]) + rng.uniform(size=30)
    w = rng.integers(0, 3, 30)
    X[w == 0] = 1e3  # samples without weight may be anything
    fitted = model.fit(layout(X), y, w)
    assert fitted.coef_[2] == 0
    assert np.abs(fitted.coef_).max() < 10


def test_a_constant_column_and_logistic_regression_without_a_penalty(rng):
    X = np.column_stack([rng.standard_normal(60), np.full(60, 0.3)])
    y = X[:, 0] + rng.standard_normal(60) > 0
    for labels in (y, y.astype(int) + (X[:, 0] > 1)):
        model = LogisticRegression(C=np.inf).fit(X, labels)
        assert (model.coef_[:, 1] == 0).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "model",
    [
        Lasso(alpha=1e-34),
        ElasticNet(alpha=1e-34, l1_ratio=0.5),
        GroupLasso(alpha=1e-34, groups=2),
        SparseGroupLasso(alpha=1e-34, groups=2),
        NonNegativeLeastSquares(),
        MultiTaskLasso(alpha=1e-34),
        MultiTaskElasticNet(alpha=1e-34),
        LassoCV(cv=2),
    ],
    ids=str,
)
def test_constant_targets_are_solved(rng, model, layout):
    X, w = rng.standard_normal((40, 4)), rng.uniform(0, 3, 40)
    w[::5] = 0
    y = np.full(40, 0.1 + 0.2)
    y[::5] = 7.0  # these have no weight
    y = np.column_stack([y, -y]) if isinstance(model, MultiTaskLasso | MultiTaskElasticNet) else y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(layout(X), y, w)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X[1:2])[0], y[1])


def huber_objective(model, X, y, s):
    z = (y - X @ model.coef_ - model.intercept_) / model.scale_
    inside = np.abs(z) <= model.epsilon
    H = np.where(inside, z**2, 2 * model.epsilon * np.abs(z) - model.epsilon**2)
    return s @ (model.scale_ * (1 + H)) + model.alpha * model.coef_ @ model.coef_


def with_outliers(rng, m, n):
    X, s = rng.standard_normal((m, n)), rng.uniform(0, 2, m)
    y = X[:, 0] + rng.standard_normal(m)
    y[rng.uniform(size=m) < 0.15] += 20
    return X, y, s


@pytest.mark.parametrize("epsilon", [1.0, 1.35, 2.5])
@pytest.mark.parametrize("m", [5, 12, 60])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_huber_regression_is_no_worse_than_scikit_learns(rng, m, n, epsilon):
    X, y, s = with_outliers(rng, m, n)
    options = {"epsilon": epsilon, "alpha": 10.0 ** rng.uniform(-3, 0)}
    ours = HuberRegressor(**options).fit(X, y, s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = linear_model.HuberRegressor(**options, max_iter=10_000, tol=1e-9).fit(X, y, s)
    best = huber_objective(theirs, X, y, s)
    floor = 2e-6 * s.sum() * y.std()  # the scale of an exact fit is not 0
    assert huber_objective(ours, X, y, s) <= best * (1 + 1e-6) + floor
    assert ours.n_iter_ <= 20  # coefficients and scale in turns took up to 100 and more


def test_epsilon_one_where_no_error_is_small():
    """The scale was doubled for ever, since all errors were beyond it, and ended 27% off."""
    X = np.array([[0.0, 0], [0, 0], [-0.0825, 0], [0, 0], [0, 0.1034]])
    y, s = np.array([21.49, 1.70, 21.61, 0.94, 1.58]), np.array([1.768, 1.211, 0.519, 1.417, 0])
    model = HuberRegressor(epsilon=1.0, alpha=0.04).fit(X, y, s)
    assert huber_objective(model, X, y, s) < 92.9


def test_information_criteria_leave_out_samples_without_weight(rng):
    X, w = rng.standard_normal((60, 5)), rng.uniform(1, 2, 60)
    y = X[:, 0] + rng.standard_normal(60)
    w[::2] = 0
    all_samples = LassoIC("bic").fit(X, y, w)
    used = LassoIC("bic").fit(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_allclose(all_samples.criterion_, used.criterion_)
    np.testing.assert_allclose(all_samples.noise_variance_, used.noise_variance_)


def test_information_criteria_count_a_sample_of_weight_two_twice(rng):
    X, w = rng.standard_normal((60, 5)), rng.integers(0, 4, 60)
    y = X[:, 0] + rng.standard_normal(60)
    weighted = LassoIC("bic", tol=1e-10).fit(X, y, w)
    repeated = LassoIC("bic", tol=1e-10).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.alphas_, repeated.alphas_)
    np.testing.assert_allclose(weighted.criterion_, repeated.criterion_, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    with pytest.raises(InputError, match="X has 6e-07 samples and 5 columns"):
        LassoIC("bic").fit(X, y, np.full(60, 1e-8))


def test_answers_are_in_the_library_of_X_with_array_api_dispatch():
    """SciPy reads its variable when it is imported, so another process is needed."""
    pytest.importorskip("torch")
    script = """
import numpy as np, sklearn, torch
from proxlearn.sklearn import Lasso, LassoCV, LogisticRegression, SparseCoder
X = torch.arange(40.0).reshape(20, 2) % 7
labels = (X[:, 0] > 3).to(torch.int64)
for model, y in ((Lasso(0.1), X[:, 0]), (LassoCV(cv=2), X[:, 0]), (LogisticRegression(), labels)):
    plain = model.fit(X.numpy(), y.numpy()).predict(X.numpy())
    assert type(model.fit(X, y).predict(X)) is type(model.coef_) is np.ndarray
    with sklearn.config_context(array_api_dispatch=True):
        made = model.set_params(**({"warm_start": True} if hasattr(model, "warm_start") else {}))
        made = model.fit(X, y).fit(X=X, y=y).predict(X)
        assert type(made) is type(model.coef_) is torch.Tensor and made.dtype == y.dtype
        np.testing.assert_allclose(made, plain, rtol=1e-5)
        assert model.score(X, y) > 0.9
        try:
            model.predict(X.numpy())
            raise AssertionError("tensors were fitted, NumPy's arrays may not be predicted")
        except ValueError as error:
            assert "must use the same namespace" in str(error), error
with sklearn.config_context(array_api_dispatch=True):
    names = LogisticRegression().fit(X, np.where(labels, "high", "low")).predict(X)
    assert set(names) == {"high", "low"}
    assert type(SparseCoder(np.eye(2)).fit_transform(X)) is torch.Tensor
"""
    subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"SCIPY_ARRAY_API": "1"}, check=True
    )


def test_predictions_of_plain_arrays_are_those_that_scikit_learn_checks(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    model = Lasso(0.01).fit(X, y)
    expected = X @ model.coef_ + model.intercept_
    turned = X[:, ::-1].copy()[:, ::-1]
    for same in (X, np.asfortranarray(X), X.tolist(), turned, scipy.sparse.csc_array(X)):
        np.testing.assert_allclose(model.predict(same), expected)
    for wrong, words in ((X[:, :3], "3 features"), (X[0], "Expected 2D"), (X * np.nan, "NaN")):
        with pytest.raises(ValueError, match=words):
            model.predict(wrong)


@pytest.mark.parametrize("labels", [2, 3])
def test_a_number_as_weight_of_all_samples_weighs_the_loss(rng, labels):
    """It was ignored: the sum over the samples counted once, whatever the number was."""
    X, y = rng.normal(size=(40, 5)), rng.integers(0, labels, 40)
    model = LogisticRegression(C=0.1, tol=1e-8).fit(X, y, sample_weight=5.0)
    same = LogisticRegression(C=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-4)
    target = X[:, 0] + rng.normal(size=40)
    robust = HuberRegressor(alpha=1.0, tol=1e-8).fit(X, target, sample_weight=5.0)
    same_ = HuberRegressor(alpha=0.2, tol=1e-8).fit(X, target)
    np.testing.assert_allclose(robust.coef_, same_.coef_, atol=1e-4)


def test_a_number_as_weight_of_all_samples_is_no_array_of_a_fold(rng):
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 2, 40)
    options = {"Cs": 3, "l1_ratios": [1.0], "scoring": "accuracy", "use_legacy_attributes": False}
    weighed = LogisticRegressionCV(**options).fit(X, y, sample_weight=1.0)
    plain = LogisticRegressionCV(**options).fit(X, y)
    np.testing.assert_array_equal(weighed.scores_, plain.scores_)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Lasso(max_iter=10**30), "max_iter is 1000000000000000000000000000000; expected at most"),
        (LassoCV(n_jobs="a"), "n_jobs is 'a'; expected a number of threads"),
        (LassoCV(n_jobs=float("nan")), "n_jobs is nan; expected a number of threads"),
    ],
)
def test_counts_that_no_program_reaches_get_one_line(rng, model, words):
    with pytest.raises(InputError, match=words):
        model.fit(rng.normal(size=(20, 3)), rng.normal(size=20))


@pytest.mark.parametrize("intercept", [True, False])
def test_a_target_of_zeros_has_a_robust_fit(rng, intercept):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = HuberRegressor(fit_intercept=intercept).fit(rng.normal(size=(20, 5)), np.zeros(20))
    assert not model.coef_.any()
    assert model.intercept_ == 0
    assert 0 < model.scale_ < 1e-9
    assert model.dual_gap_ == 0


def multi_task_value(X, Y, alpha, W, c):
    X, Y, W, c = (np.asarray(v, float) for v in (X, Y, W, c))
    left = Y - X @ W.T - c
    return (left**2).sum() / (2 * len(X)) + alpha * np.sqrt((W**2).sum(0)).sum()


@pytest.mark.parametrize("level", [0.0, 1e3, 1e6])
def test_gaps_of_several_targets_count_the_rounding_of_float32_intercepts(level):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 4)).astype(np.float32)
    Y = (X @ rng.normal(size=(4, 2)) + level).astype(np.float32)
    for alpha in (1e-3, 1e-7):
        model = MultiTaskLasso(alpha=alpha, tol=1e-3).fit(X, Y)
        best = MultiTaskLasso(alpha=alpha, tol=1e-12).fit(X.astype(float), Y.astype(float))
        F, least = (
            multi_task_value(X, Y, alpha, fit.coef_, fit.intercept_) for fit in (model, best)
        )
        noise = 1e-13 * least + 1e-15 * level * np.sqrt(least)  # of residuals in float64
        assert F - least <= model.dual_gap_ + noise
        assert model.dual_gap_ <= 1e-3 * F


def test_a_separable_fit_in_float32_keeps_the_gap_it_is_solved_with():
    """Its objective is rounding of that at 0, beside which a rounded intercept costs much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (1e3, 1e20, 1e25):
            model = LogisticRegression(C=C, tol=1e-8).fit(X, y)
            W, c = np.asarray(model.coef_, float)[0], np.asarray(model.intercept_, float)[0]
            F = np.logaddexp(0, -(2 * y - 1) * (X.astype(float) @ W + c)).sum() + W @ W / (2 * C)
            allowed = max(1e-8 * F, len(y) * np.log(2) * np.finfo(float).eps)
            assert model.dual_gap_ / C <= 1.001 * allowed


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_l2_penalties_alone_at_scales_whose_squares_leave_the_range(scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 120))
    y = rng.integers(0, 3, 20)
    plain = LogisticRegression(C=1.0, tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(C=scale**-2, tol=1e-6).fit(scale * X, y)
    np.testing.assert_allclose(scale * model.coef_, plain.coef_, atol=1e-3)
