"""What the regressors offer beyond scikit-learn's: weights of the columns, alphas by target."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context, decomposition, linear_model
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GroupKFold

from proxlearn.errors import InputError
from proxlearn.sklearn import (
    ElasticNet,
    ElasticNetCV,
    GroupLasso,
    GroupLassoCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LassoIC,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    PoissonRegressor,
    SimplexRegressor,
    SparseCoder,
    SparseGroupLasso,
    SparseGroupLassoCV,
    lasso_path,
    plot_cv,
    plot_path,
)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("positive", [False, True])
def test_weights_of_columns_are_a_scaling_of_the_columns(diabetes, layout, positive):
    X, y = diabetes
    weights = np.random.default_rng(0).uniform(0.5, 2, X.shape[1])
    options = {"positive": positive, "tol": 1e-12}
    weighted = Lasso(0.1, penalty_weights=weights, **options).fit(layout(X), y)
    scaled = Lasso(0.1, **options).fit(layout(X / weights), y)
    np.testing.assert_allclose(weighted.coef_, scaled.coef_ / weights, atol=1e-6)
    cv = LassoCV(cv=3, alphas=5, penalty_weights=weights, **options).fit(layout(X), y)
    same = LassoCV(cv=3, alphas=5, **options).fit(layout(X / weights), y)
    np.testing.assert_allclose(cv.alphas_, same.alphas_)
    np.testing.assert_allclose(cv.mse_path_, same.mse_path_, rtol=1e-6)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
def test_a_column_of_weight_zero_is_not_penalised(diabetes, layout):
    X, y = diabetes
    weights = np.ones(10)
    weights[2] = 0
    model = ElasticNet(1.0, penalty_weights=weights, tol=1e-10).fit(layout(X), y)
    residual = y - model.predict(layout(X))
    assert abs(X[:, 2] @ residual) < 1e-6 * np.linalg.norm(y)
    cv = LassoCV(cv=3, alphas=4, penalty_weights=weights).fit(layout(X), y)
    largest = Lasso(cv.alphas_[0], penalty_weights=weights, tol=1e-10).fit(layout(X), y)
    assert np.flatnonzero(np.abs(largest.coef_) > 1e-6).tolist() == [2]
    smaller = Lasso(0.98 * cv.alphas_[0], penalty_weights=weights, tol=1e-10).fit(layout(X), y)
    assert np.count_nonzero(smaller.coef_) == 2


@pytest.mark.parametrize("Estimator", [LassoCV, ElasticNetCV])
def test_each_target_has_its_own_alpha(diabetes, Estimator):
    X, y = diabetes
    noise = np.random.default_rng(0).standard_normal(len(y))
    Y = np.column_stack([y, 50 * noise, 0.1 * y + noise])
    options = {"cv": 3, "alphas": 6} | ({} if Estimator is LassoCV else {"l1_ratio": [0.5, 1.0]})
    model = Estimator(**options).fit(X, Y)
    alone = [Estimator(**options).fit(X, target) for target in Y.T]
    for name in ("alpha_", "alphas_", "mse_path_", "coef_", "intercept_"):
        expected = np.stack([getattr(one, name) for one in alone])
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-6, atol=1e-8)
    assert len(set(model.alpha_)) == 3
    assert model.predict(X).shape == Y.shape


def test_groups_reach_the_splitter(diabetes):
    X, y = diabetes
    groups = np.arange(len(y)) % 3
    with config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        model = LassoCV(cv=cv, alphas=3).fit(X, y, groups=groups)
    given = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_allclose(model.mse_path_, LassoCV(cv=given, alphas=3).fit(X, y).mse_path_)


def test_gaps_along_the_path(diabetes):
    model = LassoCV(cv=3, alphas=7, tol=1e-5).fit(*diabetes)
    assert model.gap_path_.shape == (7,)
    assert (model.gap_path_ <= 1e-5).all()


def test_an_alpha_of_zero_in_a_grid(diabetes):
    X, y = diabetes
    alphas, coefs, _ = lasso_path(X, y - y.mean(), alphas=[1.0, 0.0])
    assert alphas.tolist() == [1.0, 0.0]
    least = np.linalg.lstsq(X, y - y.mean())[0]
    np.testing.assert_allclose(coefs[:, 1], least, rtol=1e-4)


LISTS = [[0, 1], [2, 5, 4], [3, 6], [7, 8, 9]]
LABELS = ["a", "a", "b", "c", "b", "b", "c", "d", "d", "d"]


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
def test_group_lasso_is_celers(diabetes, layout):
    celer = pytest.importorskip("celer")
    X, y = diabetes
    theirs = celer.GroupLasso(groups=LISTS, alpha=0.1, tol=1e-12).fit(X, y)
    for groups in (LISTS, LABELS):
        ours = GroupLasso(0.1, groups=groups, tol=1e-10).fit(layout(X), y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.dual_gap_ < 1e-8


def test_group_estimators_with_groups_of_one_are_the_lasso(diabetes):
    X, y = diabetes
    lasso = Lasso(0.1, tol=1e-12).fit(X, y)
    for model in (GroupLasso(0.1), SparseGroupLasso(0.1), SparseGroupLasso(0.1, l1_ratio=1)):
        np.testing.assert_allclose(model.set_params(tol=1e-12).fit(X, y).coef_, lasso.coef_)
    cv = GroupLassoCV(alphas=5, cv=3).fit(X, y)
    np.testing.assert_allclose(cv.mse_path_, LassoCV(alphas=5, cv=3).fit(X, y).mse_path_, rtol=1e-6)


@pytest.mark.parametrize("weights", [None, "sqrt", [1.0, 2.0, 0.5, 1.5]])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_the_first_alpha_of_a_group_path_is_the_smallest_without_coefficients(
    diabetes, weights, ratio
):
    X, y = diabetes
    options = {"groups": LISTS, "weights": weights, "l1_ratio": ratio}
    alpha = SparseGroupLassoCV(**options, alphas=2, cv=2).fit(X, y).alphas_[0]
    assert not SparseGroupLasso(alpha * (1 + 1e-9), **options).fit(X, y).coef_.any()
    assert SparseGroupLasso(0.99 * alpha, **options).fit(X, y).coef_.any()


def test_a_group_cross_validation_chooses_for_each_target(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, np.random.default_rng(0).standard_normal(len(y))])
    options = {"groups": LISTS, "alphas": 5, "cv": 3, "l1_ratio": [0.2, 0.8]}
    both = SparseGroupLassoCV(**options).fit(X, Y)
    for k in range(2):
        alone = SparseGroupLassoCV(**options).fit(X, Y[:, k])
        assert both.alpha_[k] == alone.alpha_
        np.testing.assert_allclose(both.coef_[k], alone.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("groups", "words"),
    [(3, "groups is 3"), ([[0, 1], [1]], "exactly one"), ([0, 1], "groups has 2 labels")],
)
def test_bad_groups_get_one_line(diabetes, groups, words):
    with pytest.raises(InputError, match=words):
        GroupLasso(groups=groups).fit(*diabetes)
    with pytest.raises(InputError, match="weights is"):
        GroupLasso(weights="size").fit(*diabetes)


def huber_objective(model, X, y, alpha, epsilon=1.35):
    z = np.abs(y - model.predict(X)) / model.scale_
    H = np.where(z <= epsilon, z**2, 2 * epsilon * z - epsilon**2)
    return model.scale_ * (len(y) + H.sum()) + alpha * np.sum(model.coef_**2)


@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_huber_regression_is_scikit_learns(diabetes, alpha):
    X, y = diabetes
    y = y.copy()
    y[:20] += 2000
    ours = HuberRegressor(alpha=alpha).fit(X, y)
    theirs = linear_model.HuberRegressor(alpha=alpha, max_iter=10_000, tol=1e-9).fit(X, y)
    best, reached = (huber_objective(m, X, y, alpha) for m in (ours, theirs))
    assert best <= reached * (1 + 1e-12)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1.0)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-3)
    np.testing.assert_array_equal(ours.outliers_, theirs.outliers_)
    sparse = HuberRegressor(alpha=alpha).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, ours.coef_, rtol=1e-5)


def test_huber_regression_with_l1_is_sparse(diabetes):
    X, y = diabetes
    model = HuberRegressor(alpha=5.0, l1_ratio=1.0).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 10
    again = HuberRegressor(alpha=5.0, l1_ratio=1.0, warm_start=True).fit(X, y)
    assert again.fit(X, y).n_iter_ <= 2


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_poisson_regression_is_scikit_learns(diabetes, layout, alpha):
    X, y = 20 * diabetes[0], np.floor(diabetes[1] / 20)
    w = np.random.default_rng(0).uniform(0, 2, len(y))
    ours = PoissonRegressor(alpha=alpha).fit(layout(X), y, w)
    theirs = linear_model.PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=10_000).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5)
    np.testing.assert_allclose(ours.predict(layout(X)), theirs.predict(X), rtol=1e-4)
    assert ours.score(layout(X), y) == pytest.approx(theirs.score(X, y), rel=1e-4)


def test_poisson_regression_with_l1_is_sparse(diabetes):
    X, y = 20 * diabetes[0], np.floor(diabetes[1] / 20)
    model = PoissonRegressor(alpha=0.5, l1_ratio=1.0, warm_start=True).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 10
    assert model.fit(X, y).n_iter_ == 0
    with pytest.raises(InputError, match="y holds -1"):
        model.fit(X, np.full(len(y), -1.0))


@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_information_criteria_are_those_of_scikit_learn(diabetes, criterion):
    X, y = diabetes
    theirs = linear_model.LassoLarsIC(criterion=criterion).fit(X, y)
    inner = theirs.alphas_[theirs.alphas_ > 1e-6]
    ours = LassoIC(criterion, alphas=inner, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_)
    np.testing.assert_allclose(
        ours.criterion_, theirs.criterion_[: len(inner)], atol=6.2
    )  # one non-zero
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    extended = LassoIC("ebic").fit(X, y)
    assert extended.alpha_ >= LassoIC("bic").fit(X, y).alpha_
    with pytest.raises(InputError, match="give noise_variance"):
        LassoIC().fit(X[:8], y[:8])


@pytest.mark.parametrize("algorithm", ["lasso_cd", "lasso_lars", "threshold", "omp", "lars"])
@pytest.mark.parametrize("split_sign", [False, True])
def test_algorithms_of_sparse_codes_are_scikit_learns(algorithm, split_sign):
    random = np.random.default_rng(0)
    D, X = random.standard_normal((12, 6)), random.standard_normal((20, 6))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X[np.abs(X) < 0.5] = 0
    options = {"transform_algorithm": algorithm, "split_sign": split_sign}
    if algorithm in ("omp", "lars"):
        options["transform_n_nonzero_coefs"] = 3
    else:
        options["transform_alpha"] = 0.3
    ours = SparseCoder(D, **options).fit(X)
    theirs = decomposition.SparseCoder(D, **options, transform_max_iter=100_000).fit_transform(X)
    atol = 1e-3 if algorithm == "lasso_cd" else 1e-6
    np.testing.assert_allclose(ours.transform(X), theirs, atol=atol)
    np.testing.assert_allclose(ours.transform(scipy.sparse.csr_array(X)), ours.transform(X))
    assert len(ours.get_feature_names_out()) == theirs.shape[1]


@pytest.mark.slow
def test_pictures(diabetes):
    X, y = diabetes
    path = plot_path(LassoIC("bic").fit(X, y))
    above, below = path.axes
    assert len(above.lines) >= 10
    assert (np.ravel(below.lines[0].get_ydata()) < 1e-6).all()
    model = ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=10, cv=3).fit(X, y)
    drawn = plot_cv(model).axes[0].lines
    np.testing.assert_allclose(drawn[1].get_ydata(), model.mse_path_[1].mean(axis=1))
    own = plot_path(model, X, y).axes[0].lines
    assert len(own[0].get_xdata()) == 10
    with pytest.raises(InputError, match="without its data"):
        plot_path(model)
    with pytest.raises(InputError, match="plot_cv got Lasso"):
        plot_cv(Lasso().fit(X, y))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_multi_task_regression_is_scikit_learns(diabetes, l1_ratio, layout, precision):
    X, y = diabetes
    X, Y = X.astype(precision), np.column_stack([y, X[:, 2] * 1000 - y, np.sqrt(y)])
    options = {"alpha": 0.5, "l1_ratio": l1_ratio}
    tol = 1e-10 if precision == np.float64 else 1e-6
    ours = MultiTaskElasticNet(**options, tol=tol).fit(layout(X), Y)
    theirs = linear_model.MultiTaskElasticNet(**options, tol=1e-10, max_iter=100_000)
    theirs.fit(X.astype(np.float64), Y)
    assert ours.coef_.dtype == precision
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5 * size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4)
    left = Y - ours.predict(X.astype(np.float64))
    lengths = np.sqrt(np.square(ours.coef_).sum(axis=0)).sum()
    ridge = 0.25 * (1 - l1_ratio) * np.square(ours.coef_).sum()
    objective = 0.5 * np.square(left).sum() / len(Y) + 0.5 * l1_ratio * lengths + ridge
    assert ours.dual_gap_ <= 1e-6 * objective


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
def test_weights_of_multi_task_regression_are_repeated_samples(diabetes, layout):
    X, y = diabetes
    Y = np.column_stack([y, np.sqrt(y)])
    w = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), w)
    once = MultiTaskElasticNet(0.1, tol=1e-12).fit(layout(X), Y, w)
    often = MultiTaskElasticNet(0.1, tol=1e-12).fit(layout(X[repeated]), Y[repeated])
    np.testing.assert_allclose(once.coef_, often.coef_, rtol=1e-4)
    np.testing.assert_allclose(once.intercept_, often.intercept_, rtol=1e-6)


def test_a_multi_task_cross_validation_is_scikit_learns(diabetes):
    X, y = diabetes
    Y = np.column_stack([y, np.sqrt(y)])
    options = {"l1_ratio": [0.5, 1.0], "alphas": 8, "cv": 3, "tol": 1e-8}
    ours = MultiTaskElasticNetCV(**options).fit(X, Y)
    theirs = linear_model.MultiTaskElasticNetCV(**options, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)
    assert (ours.alpha_, ours.l1_ratio_) == pytest.approx((theirs.alpha_, theirs.l1_ratio_))
    assert ours.gap_path_.max() <= 1e-8


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("at_most", [False, True])
def test_shares_of_spectra_are_found(layout, at_most):
    random = np.random.default_rng(0)
    spectra, shares = random.uniform(size=(50, 6)), random.dirichlet(np.ones(6), 20)
    shares = 0.8 * shares if at_most else shares
    pixels, w = spectra @ shares.T, random.uniform(0.5, 2, 50)
    model = SimplexRegressor(at_most=at_most, tol=1e-12).fit(layout(spectra), pixels, w)
    np.testing.assert_allclose(model.coef_, shares, atol=1e-6)
    np.testing.assert_allclose(model.predict(spectra), pixels, atol=1e-6)
    one = SimplexRegressor(radius=2.0).fit(layout(spectra), pixels[:, 0] + 1.0)
    assert one.coef_.sum() == pytest.approx(2.0)
    assert one.coef_.min() >= 0


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_logistic_regression_with_positive_coefficients(diabetes, classes, l1_ratio):
    X, y = diabetes
    y = np.digitize(y, np.quantile(y, [0.5] if classes == 2 else [0.3, 0.6]))
    model = LogisticRegression(l1_ratio=l1_ratio, positive=True).fit(X, y)
    assert model.coef_.min() == 0 < model.coef_.max()
    if classes == 2:
        free = np.flatnonzero(model.coef_[0])
        alone = LogisticRegression(l1_ratio=l1_ratio).fit(X[:, free], y)
        np.testing.assert_allclose(model.coef_[:, free], alone.coef_, rtol=1e-3)
    options = {"l1_ratios": (l1_ratio,), "scoring": "accuracy", "use_legacy_attributes": False}
    chosen = LogisticRegressionCV(Cs=[0.1, 1.0], cv=2, positive=True, **options).fit(X, y)
    assert chosen.coefs_paths_[..., :-1].min() == 0
    assert chosen.coef_.min() == 0


def test_huber_regression_of_an_exact_fit_far_from_1():
    """The scale fell to 1e-308, which the solver's units made 0, and the intercept overflowed."""
    X = 1e-78 * np.array([[2.3, -0.75, 0.74, 0.64], [0.0, 0.0, -2.4, 0.18]])
    y = np.array([-1.08e83, -3.0e82])
    model = HuberRegressor(l1_ratio=1.0, alpha=1e-5).fit(X, y, sample_weight=[1.0, 0.0])
    assert model.intercept_ == y[0]
    assert not model.coef_.any()
