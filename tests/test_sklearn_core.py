"""The estimators on the compiled core: what they import, copy, accept and return."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pyarrow
import pytest
import scipy.sparse
from sklearn import datasets, linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.preprocessing import scale

import proxlearn.sklearn as ours
from proxlearn.core import glm as core
from proxlearn.errors import InputError
from proxlearn.sklearn import regressor, ridge

EXACT = {"tol": 1e-12, "max_iter": 100_000}
NEW = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": False}
"""Arguments of LogisticRegressionCV whose defaults change in later versions of scikit-learn."""


@pytest.fixture(scope="module")
def diabetes():
    return datasets.load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.mark.slow
def test_no_estimator_imports_torch_or_numba():
    program = """
        import sys
        import numpy as np
        from proxlearn import sklearn as ours
        X, y = np.eye(12, 4) + np.arange(12)[:, None], np.arange(12) % 2
        for name in ours.__all__:
            if not isinstance(getattr(ours, name), type):
                continue  # a function
            model = getattr(ours, name)()
            if name == "SparseCoder":
                model = model.set_params(dictionary=np.eye(4))
                model.fit(X).transform(X)
            elif name.startswith("MultiTask"):
                model.fit(X, np.column_stack([y, -y])).predict(X)
            else:
                model.fit(X, y).predict(X)
        found = {"torch", "numba"} & set(sys.modules)
        assert not found, found
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_arrays_are_used_in_place(diabetes, monkeypatch, order, precision):
    """Data of more than 1 MiB; smaller ones may be copied."""
    X = np.array(np.tile(diabetes[0], (40, 1)), order=order, dtype=precision)
    used = []

    def record(glm, *args, **options):
        used.append(glm.A)
        return core.solve_glm(glm, *args, **options)

    monkeypatch.setattr(regressor, "solve", record)
    ours.Lasso(0.1).fit(X, np.tile(diabetes[1], 40))
    assert used[0] is X


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_single_precision_stays(diabetes, breast_cancer, fit_intercept):
    X, y = diabetes
    for model in (ours.Lasso(0.1), ours.ElasticNet(0.1), ours.Lasso(0.1, positive=True)):
        model.set_params(fit_intercept=fit_intercept)
        single = model.fit(X.astype(np.float32), y)
        assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float32
        coef = single.coef_
        np.testing.assert_allclose(coef, model.fit(X, y).coef_, rtol=1e-3, atol=1e-2)
    X, y = breast_cancer
    for model in (ours.LogisticRegression(l1_ratio=1), ours.LogisticRegression()):
        model.set_params(fit_intercept=fit_intercept)
        coef = model.fit(X.astype(np.float32), y).coef_
        assert coef.dtype == np.float32
        np.testing.assert_allclose(coef, model.fit(X, y).coef_, rtol=1e-2, atol=1e-2)


def test_non_negative_least_squares_of_single_precision_is_solved_in_double(diabetes):
    X, y = diabetes
    single = X.astype(np.float32)
    model = ours.NonNegativeLeastSquares().fit(single, y)
    same = ours.NonNegativeLeastSquares().fit(single.astype(np.float64), y)
    np.testing.assert_array_equal(model.coef_, same.coef_)


def objective(model, X, y, w=None):
    ratio = getattr(model, "l1_ratio", 1.0)
    loss = 0.5 * np.average((y - model.predict(X)) ** 2, weights=w)
    first, second = np.abs(model.coef_).sum(), np.square(model.coef_).sum()
    return loss + model.alpha * (ratio * first + 0.5 * (1 - ratio) * second)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [ours.Lasso, ours.ElasticNet])
def test_the_gap_is_that_of_scikit_learns_objective(diabetes, kind, weighted):
    X, y = diabetes
    w = np.random.default_rng(0).uniform(0.5, 4, len(y)) if weighted else None
    rough, best = kind(0.1, tol=0.05).fit(X, y, w), kind(0.1, tol=1e-13).fit(X, y, w)
    missed = objective(rough, X, y, w) - objective(best, X, y, w)
    assert 0 <= missed <= rough.dual_gap_ <= 0.05 * objective(rough, X, y, w)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_the_gap_is_that_of_scikit_learns_logistic_objective(breast_cancer, l1_ratio):
    X, y = breast_cancer
    C = 0.3

    def value(model):
        loss = np.logaddexp(0, -(2 * y - 1) * model.decision_function(X)).sum()
        first, second = np.abs(model.coef_).sum(), np.square(model.coef_).sum()
        return C * loss + l1_ratio * first + 0.5 * (1 - l1_ratio) * second

    rough, best = (
        ours.LogisticRegression(C=C, l1_ratio=l1_ratio, tol=tol).fit(X, y) for tol in (0.05, 1e-12)
    )
    missed = value(rough) - value(best)
    rounding = 4 * np.finfo(float).eps * value(rough)  # of the two values computed here
    assert -1e-9 <= missed <= rough.dual_gap_ + rounding
    assert rough.dual_gap_ <= 0.05 * value(rough)


def test_a_column_of_targets_has_coefficients_without_an_axis(diabetes):
    X, y = diabetes
    model, theirs = ours.Lasso(0.1).fit(X, y[:, None]), linear_model.Lasso(0.1).fit(X, y[:, None])
    assert model.coef_.shape == theirs.coef_.shape
    assert model.intercept_.shape == theirs.intercept_.shape == (1,)
    assert model.predict(X).shape == theirs.predict(X).shape
    assert np.shape(model.dual_gap_) == np.shape(theirs.dual_gap_)


def test_sparse_coefficients(diabetes):
    model = ours.Lasso(1.0).fit(*diabetes)
    assert scipy.sparse.issparse(model.sparse_coef_)
    np.testing.assert_array_equal(model.sparse_coef_.toarray()[0], model.coef_)


def test_dense_and_sparse_fits_have_the_same_support(diabetes):
    X, y = diabetes
    dense = ours.Lasso(0.5).fit(X, y)
    for layout in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        np.testing.assert_array_equal(
            ours.Lasso(0.5).fit(layout(X), y).coef_ != 0, dense.coef_ != 0
        )


@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("positive", [False, True])
def test_paths_are_scikit_learns(diabetes, l1_ratio, positive):
    X, y = diabetes
    options = {"l1_ratio": l1_ratio, "alphas": 7, "positive": positive}
    alphas, coefs, gaps = ours.ElasticNet.path(X, y, **options, tol=1e-12)
    expected = linear_model.enet_path(X, y, **options, **EXACT)
    np.testing.assert_allclose(alphas, expected[0], rtol=1e-9)
    np.testing.assert_allclose(coefs, expected[1], atol=1e-4)
    assert gaps.shape == (7,)
    assert len(ours.Lasso.path(X, y, alphas=[1.0, 0.1], return_n_iter=True)[3]) == 2


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("l1_ratio", [0.5, [0.2, 0.9]])
@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, train_size=0.3, random_state=0)])
def test_elastic_net_cv_is_scikit_learns(diabetes, layout, l1_ratio, cv):
    X, y = diabetes
    options = {"l1_ratio": l1_ratio, "alphas": 8, "cv": cv}
    model = ours.ElasticNetCV(**options, tol=1e-10).fit(layout(X), y)
    theirs = linear_model.ElasticNetCV(**options, **EXACT).fit(X, y)
    np.testing.assert_allclose(model.alphas_, theirs.alphas_, rtol=1e-9)
    np.testing.assert_allclose(model.mse_path_, theirs.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(model.alpha_, theirs.alpha_)
    assert model.l1_ratio_ == theirs.l1_ratio_
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3)


def test_threads_change_nothing(diabetes):
    one, two = (ours.LassoCV(cv=3, alphas=20, n_jobs=jobs).fit(*diabetes) for jobs in (None, 2))
    np.testing.assert_array_equal(one.mse_path_, two.mse_path_)


def test_folds_may_be_masks_and_repeat_samples(diabetes):
    X, y = diabetes
    m = len(y)
    mask = np.arange(m) < 300
    by_mask = ours.LassoCV(cv=[(mask, ~mask)], alphas=5).fit(X, y)
    by_index = ours.LassoCV(cv=[(np.arange(300), np.arange(300, m))], alphas=5).fit(X, y)
    np.testing.assert_array_equal(by_mask.mse_path_, by_index.mse_path_)
    repeated = [(np.r_[np.arange(300), np.arange(50)], np.arange(300, m))]
    theirs = linear_model.LassoCV(cv=repeated, alphas=5, **EXACT).fit(X, y)
    model = ours.LassoCV(cv=repeated, alphas=5, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.mse_path_, theirs.mse_path_, rtol=1e-6)


def test_no_automatic_grid_without_l1(diabetes):
    with pytest.raises(InputError, match="Automatic alpha grid generation is not supported"):
        ours.ElasticNetCV(l1_ratio=0.0).fit(*diabetes)


@pytest.mark.parametrize(
    ("spelled", "same"),
    [
        ({"penalty": "l1"}, {"l1_ratio": 1.0}),
        ({"penalty": "l2"}, {"l1_ratio": 0.0}),
        ({"penalty": "elasticnet", "l1_ratio": 0.4}, {"l1_ratio": 0.4}),
        ({"penalty": None}, {"C": np.inf}),
        ({"l1_ratio": None}, {"l1_ratio": 0.0}),
    ],
    ids=str,
)
def test_both_spellings_of_the_penalty(breast_cancer, spelled, same):
    X, y = breast_cancer
    a, b = (ours.LogisticRegression(**o).fit(X[:, :3], y).coef_ for o in (spelled, same))
    np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="unknown penalty 'l3'"):
        ours.LogisticRegression("l3").fit(X, y)


@pytest.mark.parametrize(
    "name", ["Lasso", "ElasticNet", "LassoCV", "ElasticNetCV", "LogisticRegression"]
)
def test_scikit_learns_parameters_are_accepted(name):
    theirs = getattr(linear_model, name)().get_params()
    assert theirs.keys() <= getattr(ours, name)().get_params().keys()


def test_attributes_of_logistic_cross_validation_are_scikit_learns(breast_cancer):
    X, y = breast_cancer
    options = {"Cs": [0.01, 0.1], "cv": KFold(3), "l1_ratios": (0.0,), "scoring": "accuracy"}
    for more in ({}, {"refit": False}, {"use_legacy_attributes": True}):
        more = {"use_legacy_attributes": False, **more}
        model = ours.LogisticRegressionCV(**options, **more, tol=1e-12).fit(X, y)
        if not hasattr(linear_model.LogisticRegressionCV(), "use_legacy_attributes"):
            return
        theirs = linear_model.LogisticRegressionCV(
            **options, **more, solver="newton-cholesky", tol=1e-12
        ).fit(X, y)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(model.C_, theirs.C_)
        assert np.shape(model.n_iter_) == np.shape(theirs.n_iter_)
        if more["use_legacy_attributes"]:
            assert model.scores_.keys() == theirs.scores_.keys()
            np.testing.assert_allclose(model.scores_[1], theirs.scores_[1])
            np.testing.assert_allclose(model.coefs_paths_[1], theirs.coefs_paths_[1], atol=1e-5)
        else:
            np.testing.assert_allclose(model.scores_, theirs.scores_)
            np.testing.assert_allclose(model.coefs_paths_, theirs.coefs_paths_, atol=1e-5)


def test_the_score_of_cross_validation_is_by_its_scoring(breast_cancer):
    X, y = breast_cancer
    model = ours.LogisticRegressionCV(Cs=3, cv=3, **NEW | {"scoring": "neg_log_loss"}).fit(X, y)
    assert model.score(X, y) < 0
    accuracy = ours.LogisticRegressionCV(Cs=3, cv=3, **NEW).fit(X, y)
    assert accuracy.score(X, y) == np.mean(accuracy.predict(X) == y)


def test_read_only_data(diabetes):
    X, y = (a.copy() for a in diabetes)
    expected = ours.Lasso(0.1, fit_intercept=False).fit(X, y).coef_
    w = np.ones(len(y))
    for a in (X, y, w):
        a.flags.writeable = False
    for weights in (None, w):
        model = ours.Lasso(0.1, fit_intercept=False).fit(X, y, weights)
        np.testing.assert_allclose(model.coef_, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(diabetes, bad):
    for position in (0, 1):
        data = [a.copy() for a in diabetes]
        data[position].flat[7] = bad
        for model in (ours.Lasso(), ours.LassoCV()):
            with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
                model.fit(*data)


def test_names_of_features_are_forgotten_by_a_fit_without_any(diabetes):
    X, y = diabetes
    table = pyarrow.table(dict(zip("abcdefghij", X.T, strict=True)))
    model = ours.Lasso().fit(table, y)
    assert list(model.feature_names_in_) == list("abcdefghij")
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def wide(m, n, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((m, n)) * random.uniform(0.1, 3, n) + random.standard_normal(n)
    return X, X[:, 0] + 0.5 * random.standard_normal(m)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(40, 60), (90, 30)])
def test_l2_alone_with_many_columns(monkeypatch, fit_intercept, layout, precision, shape):
    """`ridge` gives what the core gives, and certifies it."""
    X, y = wide(*shape)
    X = X.astype(precision)
    w = np.random.default_rng(1).uniform(0, 2, len(y))
    w[::5] = 0
    models = {
        "real": ours.ElasticNet(1.0, l1_ratio=0, fit_intercept=fit_intercept),
        "two classes": ours.LogisticRegression(tol=5e-7, fit_intercept=fit_intercept),
        "three classes": ours.LogisticRegression(tol=5e-7, fit_intercept=fit_intercept),
        "counts": ours.PoissonRegressor(tol=5e-7, fit_intercept=fit_intercept),
    }
    targets = {"real": y, "two classes": y > 0, "three classes": np.digitize(y, [-0.5, 0.8])}
    targets["counts"] = np.floor(np.exp(np.clip(0.3 * y, -3, 3)))
    for name, model in models.items():
        monkeypatch.setattr(ridge, "MANY", {})
        expected = model.fit(layout(X), targets[name], w)
        coef, gap = expected.coef_, expected.dual_gap_
        monkeypatch.setattr(ridge, "MANY", dict.fromkeys(ridge.LOSSES, 0))
        model.fit(layout(X), targets[name], w)
        assert model.coef_.dtype == precision
        np.testing.assert_allclose(model.coef_, coef, atol=2e-3 * np.abs(coef).max())
        assert model.dual_gap_ <= max(1e-4 * (precision == np.float32), 10 * gap, 1e-5)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validation_with_l2_alone_and_many_columns(monkeypatch, layout, classes):
    X, y = wide(60, 80)
    y = np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.8])
    options = {"Cs": [0.01, 1.0], "cv": 3, "tol": 1e-10, "scoring": "neg_log_loss"}
    options = NEW | options
    monkeypatch.setattr(ridge, "MANY", {})
    expected = ours.LogisticRegressionCV(**options).fit(layout(X), y).scores_
    monkeypatch.setattr(ridge, "MANY", dict.fromkeys(ridge.LOSSES, 0))
    scores = ours.LogisticRegressionCV(**options, n_jobs=2).fit(layout(X), y).scores_
    np.testing.assert_allclose(scores, expected, rtol=1e-4)


def test_wide_non_negative_least_squares_has_the_smallest_sum():
    random = np.random.default_rng(0)
    X = random.standard_normal((8, 20))
    y = X @ random.uniform(0, 1, 20)
    model = ours.NonNegativeLeastSquares(fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(X @ model.coef_, y, atol=1e-6)
    from scipy.optimize import linprog

    least = linprog(np.ones(20), A_eq=X, b_eq=y).fun
    np.testing.assert_allclose(model.coef_.sum(), least, rtol=1e-5)


def test_no_iteration_at_all(breast_cancer):
    with pytest.warns(ConvergenceWarning):
        model = ours.LogisticRegression(max_iter=0).fit(*breast_cancer)
    assert model.n_iter_.tolist() == [0]
    assert not model.coef_.any()


def test_positive_codes():
    random = np.random.default_rng(0)
    D, X = random.standard_normal((12, 6)), random.standard_normal((5, 6))
    codes = ours.SparseCoder(D, transform_alpha=0.3, positive_code=True).fit(X).transform(X)
    for code, x in zip(codes, X, strict=True):
        alone = ours.Lasso(0.3 / 6, positive=True, fit_intercept=False).fit(D.T.copy(), x)
        np.testing.assert_allclose(code, alone.coef_, atol=1e-6)


def test_sparsified_coefficients_predict_the_same(breast_cancer):
    X, y = breast_cancer
    model = ours.LogisticRegression(C=0.1, l1_ratio=1).fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(model.sparsify().predict(X), expected)
    assert isinstance(model.densify().coef_, np.ndarray)


def test_default_fits_give_no_warnings(diabetes, breast_cancer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.LassoCV().fit(*diabetes)
        ours.LogisticRegressionCV(**NEW | {"l1_ratios": [0.0, 0.5, 1.0]}).fit(*breast_cancer)
