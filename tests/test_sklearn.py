"""scikit-learn's own checks of every estimator, and agreement with scikit-learn's answers."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import nnls
from sklearn import datasets, decomposition, linear_model
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

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
    MultiTaskLasso,
    MultiTaskLassoCV,
    NonNegativeLeastSquares,
    PoissonRegressor,
    SimplexRegressor,
    SparseCoder,
    SparseGroupLasso,
    SparseGroupLassoCV,
)
from versions import MIXED

NEW_DEFAULTS = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": False}
"""Arguments of LogisticRegressionCV whose defaults change in later versions of scikit-learn."""

ESTIMATORS = [
    Lasso(alpha=0.1),
    ElasticNet(alpha=0.1),
    Lasso(alpha=0.1, positive=True),
    ElasticNet(alpha=0.1, positive=True),
    NonNegativeLeastSquares(),
    LassoCV(alphas=3, eps=0.01, cv=2),
    ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=3, eps=0.01, cv=2),
    LogisticRegression(),
    LogisticRegression(C=0.5, l1_ratio=1.0),
    LogisticRegression(C=0.5, l1_ratio=0.5),
    LogisticRegressionCV(Cs=[0.01, 1.0], cv=2, **NEW_DEFAULTS),
    SparseCoder(transform_alpha=0.1, random_state=0),
    GroupLasso(alpha=0.1),
    GroupLassoCV(alphas=3, eps=0.01, cv=2),
    SparseGroupLasso(alpha=0.1),
    SparseGroupLassoCV(l1_ratio=[0.2, 0.8], alphas=3, eps=0.01, cv=2),
    HuberRegressor(),
    HuberRegressor(alpha=0.1, l1_ratio=0.5),
    LassoIC(noise_variance=1.0, alphas=5),
    PoissonRegressor(),
    PoissonRegressor(alpha=0.1, l1_ratio=1.0),
    MultiTaskLasso(alpha=0.1),
    MultiTaskLassoCV(alphas=3, eps=0.01, cv=2),
    MultiTaskElasticNet(alpha=0.1),
    MultiTaskElasticNetCV(l1_ratio=[0.5, 0.9], alphas=3, eps=0.01, cv=2),
    SimplexRegressor(),
]


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        # Samples of weight two and repeated samples agree to 1e-7 only where both are solved well.
        tol = 1e-10 if is_classifier(estimator) else 1e-12
        # Rounding hides smaller gaps of Huber's loss at the tiny scale of this nearly exact fit.
        tol = 1e-7 if isinstance(estimator, HuberRegressor) else tol
        estimator = clone(estimator).set_params(tol=tol)
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    return datasets.load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def breast_cancer():
    return datasets.load_breast_cancer(return_X_y=True)


def same(ours, theirs, atol=1e-6):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol, rtol=1e-6)


def weights(X, kind):
    if kind == "plain":
        return None
    w = np.random.default_rng(0).uniform(0, 3, X.shape[0])
    w[::7] = 0
    return w


EXACT = {"tol": 1e-14, "max_iter": 1_000_000}


@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_lasso_on_diabetes(diabetes, alpha, layout, kind):
    X, y = diabetes
    w = weights(X, kind)
    ours = Lasso(alpha, tol=1e-12).fit(layout(X), y, w)
    theirs = linear_model.Lasso(alpha, **EXACT).fit(X, y, w)
    same(ours, theirs)
    assert ours.dual_gap_ <= 1e-12 * 0.5 * np.average((y - y.mean()) ** 2, weights=w)
    np.testing.assert_allclose(ours.predict(layout(X[:5])), theirs.predict(X[:5]), rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.9])
def test_elastic_net_on_diabetes(diabetes, l1_ratio, fit_intercept):
    X, y = diabetes
    options = {"alpha": 0.1, "l1_ratio": l1_ratio, "fit_intercept": fit_intercept}
    ours = ElasticNet(**options, tol=1e-14).fit(X, y)
    same(ours, linear_model.ElasticNet(**options, **EXACT).fit(X, y))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_positive_coefficients_are_scikit_learns(diabetes, l1_ratio, layout, kind):
    X, y = diabetes
    w = weights(X, kind)
    options = {"alpha": 0.05, "l1_ratio": l1_ratio, "positive": True}
    ours = ElasticNet(**options, tol=1e-13).fit(layout(X), y, w)
    theirs = linear_model.ElasticNet(**options, **EXACT).fit(X, y, w)
    same(ours, theirs)
    assert (ours.coef_ >= 0).all()
    free = linear_model.ElasticNet(alpha=0.05, l1_ratio=l1_ratio, **EXACT).fit(X, y, w)
    assert (free.coef_ < -1e-3).any()  # the constraint does something
    assert ours.dual_gap_ <= 1e-13 * 0.5 * np.average((y - y.mean()) ** 2, weights=w)


def test_positive_without_a_penalty_is_non_negative_least_squares(diabetes):
    X, y = diabetes
    ours = Lasso(alpha=0, positive=True, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, NonNegativeLeastSquares(tol=1e-12).fit(X, y).coef_)


def test_examples_of_scikit_learns_documentation():
    lasso = Lasso(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [0, 1, 2])
    # Documented as 0.85 and 0; the two columns are equal, so that any division of 0.85 is optimal.
    np.testing.assert_allclose([lasso.coef_.sum(), lasso.intercept_], [0.85, 0.15], atol=1e-6)
    assert (lasso.coef_ >= 0).all()
    X, y = datasets.load_iris(return_X_y=True)
    assert round(LogisticRegression().fit(X, y).score(X, y), 3) == 0.973


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_logistic_regression_on_breast_cancer(breast_cancer, C, kind):
    X, y = breast_cancer
    X, w = StandardScaler().fit_transform(X), weights(X, kind)
    ours = LogisticRegression(C=C, tol=1e-14).fit(X, y, w)
    theirs = linear_model.LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12)
    same(ours, theirs.fit(X, y, w))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    sparse = LogisticRegression(C=C, tol=1e-14).fit(scipy.sparse.csr_array(X), y, w)
    same(sparse, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_sparse_logistic_regression_on_breast_cancer(breast_cancer, l1_ratio):
    X, y = breast_cancer
    X = StandardScaler().fit_transform(X)
    options = {"C": 0.1, "l1_ratio": l1_ratio}
    theirs = linear_model.LogisticRegression(
        **options, **MIXED, solver="saga", tol=1e-12, max_iter=50_000
    )
    same(LogisticRegression(**options, tol=1e-13).fit(X, y), theirs.fit(X, y))


def test_class_weights_are_scikit_learns(breast_cancer):
    X, y = breast_cancer
    X = StandardScaler().fit_transform(X)
    ours = LogisticRegression(class_weight="balanced", tol=1e-14).fit(X, y)
    theirs = linear_model.LogisticRegression(
        class_weight="balanced", solver="newton-cholesky", tol=1e-12
    )
    same(ours, theirs.fit(X, y))


@pytest.mark.slow
def test_logistic_regression_on_digits():
    X, y = datasets.load_digits(return_X_y=True)
    ours = LogisticRegression(C=0.01, tol=1e-15).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.01, solver="newton-cholesky", tol=1e-12)
    same(ours, theirs.fit(X, y))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.slow
def test_sparse_logistic_regression_on_digits():
    X, y = datasets.load_digits(n_class=3, return_X_y=True)
    X = X / 16
    options = {"C": 0.1, "l1_ratio": 1.0}
    theirs = linear_model.LogisticRegression(
        **options, **MIXED, solver="saga", tol=1e-12, max_iter=50_000
    )
    same(LogisticRegression(**options, tol=1e-13).fit(X, y), theirs.fit(X, y))


@pytest.mark.slow
def test_a_gap_exists_where_classes_are_nearly_separated():
    X, y = datasets.load_digits(n_class=5, return_X_y=True)
    model = LogisticRegression(C=1e4).fit(X / 16, y)
    assert np.isfinite(model.dual_gap_)
    assert model.score(X / 16, y) == 1.0


def test_no_penalty(breast_cancer):
    X, y = breast_cancer
    X = StandardScaler().fit_transform(X[:, :3])
    ours = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    theirs = linear_model.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12)
    same(ours, theirs.fit(X, y))


def test_several_targets_are_fits_of_their_own(diabetes):
    X, y = diabetes
    both = Lasso(0.1, tol=1e-12).fit(X, np.column_stack([y, -2 * y + X[:, 0]]))
    same_first = Lasso(0.1, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(both.coef_[0], same_first.coef_, atol=1e-6)
    assert both.coef_.shape == (2, 10)
    assert both.dual_gap_.shape == (2,)


def test_non_negative_least_squares_is_scipys(diabetes):
    X, y = diabetes
    ours = NonNegativeLeastSquares(fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, nnls(X, y)[0], atol=1e-6)
    theirs = linear_model.LinearRegression(positive=True).fit(X, y)
    same(NonNegativeLeastSquares(tol=1e-12).fit(scipy.sparse.csr_array(X), y), theirs)


@pytest.mark.slow
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_lasso_cv_is_scikit_learns(diabetes, kind, positive):
    X, y = diabetes
    w = weights(X, kind)
    options = {"alphas": 10, "cv": 4, "tol": 1e-10, "positive": positive}
    ours = LassoCV(**options).fit(X, y, w)
    theirs = linear_model.LassoCV(**options, max_iter=100_000).fit(X, y, w)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-9)


@pytest.mark.slow
def test_logistic_regression_cv_is_scikit_learns(breast_cancer):
    X, y = breast_cancer
    X = StandardScaler().fit_transform(X)
    options = {"Cs": [0.01, 0.1, 1.0], "cv": KFold(3), "scoring": "neg_log_loss"}
    ours = LogisticRegressionCV(**options, l1_ratios=(0.0, 0.5), use_legacy_attributes=False).fit(
        X, y
    )
    with warnings.catch_warnings():  # about defaults that change in later versions
        warnings.simplefilter("ignore", FutureWarning)
        theirs = linear_model.LogisticRegressionCV(
            **options, **MIXED, l1_ratios=(0.0, 0.5), solver="saga", tol=1e-8, max_iter=20_000
        ).fit(X, y)
    expected = theirs.scores_  # by class, and (folds, Cs, l1_ratios), before version 1.10
    expected = expected[1].swapaxes(1, 2) if isinstance(expected, dict) else expected
    np.testing.assert_allclose(ours.scores_, expected, rtol=1e-3)
    assert ours.scores_.shape == (3, 2, 3)
    np.testing.assert_allclose(ours.C_, np.squeeze(theirs.C_))
    np.testing.assert_allclose(ours.l1_ratio_, np.squeeze(theirs.l1_ratio_))


def test_sparse_codes_are_scikit_learns():
    random = np.random.default_rng(0)
    D, X = random.standard_normal((12, 6)), random.standard_normal((20, 6))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    coder = SparseCoder(D, transform_alpha=0.3, tol=1e-12)
    theirs = decomposition.SparseCoder(
        D, transform_algorithm="lasso_lars", transform_alpha=0.3, transform_max_iter=10_000
    )
    codes = coder.fit_transform(X)
    np.testing.assert_allclose(codes, theirs.fit_transform(X), atol=1e-6)
    np.testing.assert_allclose(coder.inverse_transform(codes), codes @ D)
    with pytest.raises(InputError, match="dictionary has shape"):
        coder.fit(X[:, :4])


def test_a_dictionary_is_learned():
    random = np.random.default_rng(0)
    atoms = np.eye(8)[:4]
    X = random.uniform(1, 2, (60, 1)) * atoms[random.integers(4, size=60)]
    coder = SparseCoder(n_components=4, transform_alpha=0.01, random_state=0).fit(X)
    assert coder.components_.shape == (4, 8)
    codes = coder.transform(X)
    assert ((np.abs(codes) > 1e-6).sum(1) == 1).all()
    np.testing.assert_allclose(coder.inverse_transform(codes), X, atol=0.02)


def test_pipelines_searches_clones_and_pickles(diabetes):
    X, y = diabetes
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Lasso()), {"lasso__alpha": [0.1, 1.0, 10.0]}, cv=3
    ).fit(X, y)
    assert search.best_params_["lasso__alpha"] in (0.1, 1.0)
    assert search.best_score_ > 0.4
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    assert not hasattr(clone(search.best_estimator_[-1]), "coef_")


def test_a_warm_start_begins_at_the_last_fit(diabetes):
    X, y = diabetes
    model = Lasso(0.1, warm_start=True).fit(X, y)
    assert model.n_iter_ > 0
    assert model.fit(X, y).n_iter_ == 0


def test_too_few_iterations_are_said(breast_cancer):
    X = np.random.default_rng(0).standard_normal((60, 400))
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        Lasso(0.01, max_iter=1).fit(X, X[:, :20].sum(1))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        LogisticRegression(C=100, l1_ratio=1, max_iter=1).fit(*breast_cancer)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (Lasso(alpha=-1), "alpha is -1"),
        (Lasso(tol=-1), "tol is -1"),
        (Lasso(max_iter=0), "max_iter is 0"),
        (Lasso(max_iter=1.5), "max_iter is 1.5; expected a whole number"),
        (Lasso(fit_intercept="no"), "fit_intercept is 'no'; expected True or False"),
        (LogisticRegression(positive=2), "positive is 2"),
        (LogisticRegression(fit_intercept=None), "fit_intercept is None"),
        (ElasticNetCV(l1_ratio=[]), r"l1_ratio is \[\]"),
        (LogisticRegressionCV(**NEW_DEFAULTS | {"l1_ratios": []}), r"l1_ratios is \[\]"),
        (ElasticNet(l1_ratio=2), "l1_ratio is 2"),
        (LassoCV(alphas=[-1.0]), r"alphas\[0\] == -1.0, must be >= 0"),
        (LassoCV(alphas=[]), "alphas is"),
        (Lasso(penalty_weights=[1.0]), r"penalty_weights has shape \(1,\)"),
        (LassoCV(penalty_weights=[-1.0] * 6), "penalty_weights holds negative"),
        (LogisticRegression(C=0), "C is 0"),
        (LogisticRegressionCV(Cs=[-1.0], **NEW_DEFAULTS), "Cs is"),
        (LogisticRegressionCV(**NEW_DEFAULTS | {"l1_ratios": [2]}), "l1_ratios is"),
        (SparseCoder(transform_alpha=0), "transform_alpha is 0"),
    ],
    ids=str,
)
def test_bad_parameters_get_one_line(estimator, words):
    X, y = np.eye(6), np.arange(6) % 2
    with pytest.raises(InputError, match=words):
        estimator.fit(X, y)


def test_sparse_data_stay_sparse(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("a sparse matrix was made dense")

    X = scipy.sparse.random_array((200, 3000), density=0.01, rng=0, format="csr")
    y = X[:, [0, 1, 2]].sum(1) * 3
    monkeypatch.setattr(type(X), "toarray", refuse)
    assert Lasso(1e-3).fit(X, y).dual_gap_ < 1e-3
    assert LogisticRegression(l1_ratio=1.0).fit(X, y > y.mean()).coef_.shape == (1, 3000)
