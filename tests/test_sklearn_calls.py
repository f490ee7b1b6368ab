"""Calls that programs written for scikit-learn make, and that its own tests do not look at."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, r2_score

from proxlearn.errors import InputError
from proxlearn.sklearn import (
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    PoissonRegressor,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 5))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(60)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (LogisticRegression(), lambda y: y > 0),
        (LogisticRegression(l1_ratio=0.5), lambda y: y > 0),
        (HuberRegressor(alpha=1.0), lambda y: y),
        (PoissonRegressor(), lambda y: np.round(np.exp(y))),
        (Lasso(0.1), lambda y: y),
    ],
)
def test_a_number_is_the_weight_of_every_sample(data, model, target):
    X, y = data[0], target(data[1])
    alone = model.fit(X, y, 3.0).coef_
    np.testing.assert_allclose(alone, model.fit(X, y, np.full(60, 3.0)).coef_)


def test_a_number_is_the_weight_of_every_sample_of_a_cross_validation(data):
    options = {"Cs": 3, "scoring": "accuracy", "l1_ratios": (0,), "use_legacy_attributes": False}
    model = LogisticRegressionCV(**options).fit(data[0], data[1] > 0, 2.0)
    assert model.scores_.shape == (5, 1, 3)
    assert model.n_iter_.dtype == np.int32


def test_a_fit_without_checks_predicts(data):
    X, y = np.asfortranarray(data[0]), data[1]
    model = Lasso(0.1).fit(X, y, check_input=False)
    np.testing.assert_allclose(model.predict(X), Lasso(0.1).fit(X, y).predict(X))


@pytest.mark.parametrize("estimator", [LassoCV, ElasticNetCV])
def test_a_column_is_one_target_of_a_cross_validation(data, estimator):
    X, y = data
    with pytest.warns(DataConversionWarning):
        model = estimator(alphas=5).fit(X, y[:, None])
    assert np.ndim(model.intercept_) == 0
    assert model.mse_path_.shape == (5, 5)
    assert model.predict(X).shape == (60,)


def test_the_intercept_has_the_precision_of_X_and_the_gap_counts_its_rounding(data):
    X, y = data[0].astype(np.float32) + 3, data[1] > 0
    model = LogisticRegression(C=0.5).fit(X, y)
    assert model.intercept_.dtype == model.coef_.dtype == np.float32
    exact = LogisticRegression(C=0.5, tol=1e-13).fit(X.astype(np.float64), y)

    def objective(one):
        w, c = one.coef_[0].astype(float), float(one.intercept_[0])
        margins = np.where(y, 1, -1) * (X.astype(float) @ w + c)
        return 0.5 * np.logaddexp(0, -margins).sum() + 0.5 * w @ w

    above = objective(model) - objective(exact)
    assert above <= model.dual_gap_ + 1e-14
    assert model.dual_gap_ <= 1e-4 * objective(model)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_scikit_learns(data, rng, weighted):
    X, y = data
    w = rng.uniform(size=60) if weighted else None
    for target in (y, y.astype(np.float32), np.column_stack([y, 2 - y]), y.tolist()):
        model = Lasso(0.1).fit(X, target)
        assert np.isclose(
            model.score(X, target, w), r2_score(target, model.predict(X), sample_weight=w)
        )
    for target in (y > 0, np.where(y > 0, "b", "a"), np.round(y), np.where(y > 0, 1.0, -1.0)):
        model = LogisticRegression().fit(X, target)
        expected = accuracy_score(target, model.predict(X), sample_weight=w)
        assert np.isclose(model.score(X, target, w), expected)
    assert Lasso(0.1).fit(X, y).score(X, np.ones(60)) == 0.0


def test_scores_of_wrong_targets_are_errors(data):
    X, y = data
    for model, target in ((Lasso(0.1), y), (LogisticRegression(), y > 0)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, target).score(X, target[:-1])
    with pytest.raises(ValueError, match="NaN"):
        Lasso(0.1).fit(X, y).score(X, np.full(60, np.nan))
    with pytest.raises(ValueError, match="continuous"):
        LogisticRegression().fit(X, y > 0).score(X, y)


def test_strings_are_not_predicted(data):
    X, y = data
    model = Lasso(0.1).fit(X, y)
    with pytest.raises(ValueError, match="numeric"):
        model.predict(X.astype(str))
    theirs = linear_model.Lasso(0.1).fit(X, y)
    whole = np.round(X).astype(int)
    for other in (whole, X.astype(np.float16), scipy.sparse.csr_array(whole)):
        assert model.predict(other).dtype == theirs.predict(other).dtype
        np.testing.assert_allclose(model.predict(other), theirs.predict(other), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Lasso(warm_start="yes"), "warm_start is 'yes'"),
        (LassoCV(n_jobs="all"), "n_jobs is 'all'"),
        (LogisticRegression(class_weight={0: -1, 1: 1}), "class_weight is .*expected weights >= 0"),
    ],
)
def test_values_that_are_not_allowed(data, model, words):
    with pytest.raises(InputError, match=words):
        model.fit(data[0], (data[1] > 0).astype(int))


def test_a_class_for_nearly_every_sample_gives_scikit_learns_warning(data):
    with pytest.warns(UserWarning, match="number of unique classes"):
        LogisticRegression().fit(data[0], np.arange(60))


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-8])
def test_constant_targets_are_fitted_by_huber(data, value):
    model = HuberRegressor().fit(data[0], np.full(60, value))
    np.testing.assert_allclose(model.predict(data[0]), value)


def test_the_last_fit_may_have_other_columns_or_tasks(data):
    X, y = data
    for model, target in (
        (Lasso(0.1, warm_start=True), y),
        (MultiTaskLasso(0.1, warm_start=True), np.column_stack([y, y])),
        (LogisticRegression(warm_start=True), y > 0),
    ):
        assert model.fit(X, target).fit(X[:, :3], target).coef_.shape[-1] == 3


def test_masks_of_folds_have_the_length_of_the_data(data):
    X, y = data
    held_out = np.arange(60) < 20
    model = LassoCV(alphas=3, cv=[(~held_out, held_out)]).fit(X, y)
    expected = LassoCV(alphas=3, cv=[(np.arange(20, 60), np.arange(20))]).fit(X, y)
    np.testing.assert_array_equal(model.mse_path_, expected.mse_path_)
    with pytest.raises(InputError, match=r"a mask of shape \(59,\); expected \(60,\)"):
        LassoCV(cv=[(~held_out[:-1], held_out[:-1])]).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-4, 10.0])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_huber_from_a_joint_newton_step_is_huber_by_scales(
    rng, monkeypatch, fit_intercept, alpha, offset
):
    X = rng.standard_normal((200, 12)) + offset * fit_intercept
    y = X[:, 0] - X[:, 1] + rng.standard_t(1.5, 200) + offset
    w = rng.integers(0, 3, 200).astype(float)
    options = {"alpha": alpha, "fit_intercept": fit_intercept, "tol": 1e-9}
    made = HuberRegressor(**options).fit(X, y, w)
    monkeypatch.setattr("proxlearn.sklearn.huber_regressor.joint_start", lambda *_: None)
    slow = HuberRegressor(**options).fit(X, y, w)
    assert made.n_iter_ < slow.n_iter_
    np.testing.assert_allclose(made.scale_, slow.scale_, rtol=1e-7)
    np.testing.assert_allclose(made.coef_, slow.coef_, atol=1e-6)
