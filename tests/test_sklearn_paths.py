"""Paths, their pictures, and weights of the columns in the penalty."""

import numpy as np
import pytest
import scipy.sparse

from proxlearn.errors import InputError
from proxlearn.sklearn import (
    GroupLasso,
    GroupLassoCV,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    SparseGroupLasso,
    SparseGroupLassoCV,
    plot_cv,
    plot_path,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 12))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.standard_normal(60)
    return X, y, rng.integers(0, 3, 60)


GROUPS = {"groups": [[0, 3], [1, 2, 4], [5, 6, 7, 8], [9, 10, 11]], "weights": "sqrt"}


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4])
def test_the_path_of_groups_is_that_of_its_fits(data, layout, l1_ratio):
    X, y, w = data
    options = GROUPS | {"l1_ratio": l1_ratio}
    alphas, coefs, gaps, counts = SparseGroupLasso.path(
        layout(X), y, **options, alphas=5, sample_weight=w, tol=1e-10, return_n_iter=True
    )
    assert coefs.shape == (12, 5)
    assert not coefs[:, 0].any()
    assert coefs[:, 1].any()
    assert len(counts) == 5
    for alpha, coef, gap in zip(alphas, coefs.T, gaps, strict=True):
        model = SparseGroupLasso(alpha, **options, fit_intercept=False, tol=1e-10).fit(X, y, w)
        np.testing.assert_allclose(coef, model.coef_, atol=1e-7)
        assert 0 <= gap <= 1e-9 * np.var(y)


def test_the_path_of_groups_checks_its_arguments(data):
    X, y, _ = data
    assert GroupLasso.path is GroupLassoCV.path
    with pytest.raises(InputError, match="l1_ratio is 2"):
        GroupLasso.path(X, y, l1_ratio=2)
    with pytest.raises(InputError, match="groups is 5"):
        GroupLasso.path(X, y, groups=5)
    with pytest.raises(ValueError, match="NaN"):
        GroupLasso.path(X, np.full(60, np.nan))


def lines_of(figure):
    """The coefficients (n, K) of the lines in the upper axes, of columns that are not all 0."""
    return np.array(
        [line.get_ydata() for line in figure.axes[0].lines if len(line.get_xdata()) > 2]
    )


@pytest.mark.parametrize(
    "model",
    [
        LassoCV(alphas=5, penalty_weights=np.arange(12) % 4, positive=True),
        GroupLassoCV(alphas=5, **GROUPS),
        SparseGroupLassoCV(alphas=5, l1_ratio=[0.2, 0.8], **GROUPS),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
def test_a_picture_of_a_path_ends_at_the_fit(data, model, layout):
    pytest.importorskip("matplotlib")
    X, y, w = data
    X = X + 3.0  # for the intercept
    model.fit(X, y, w)
    figure = plot_path(model, layout(X), y, sample_weight=w)
    drawn = lines_of(figure)
    chosen = np.argmin(np.abs(figure.axes[0].lines[0].get_xdata() - model.alpha_))
    at_alpha = np.sort(drawn[:, chosen])
    expected = np.sort(model.coef_[model.coef_ != 0])
    np.testing.assert_allclose(at_alpha[np.abs(at_alpha) > 1e-8], expected, atol=1e-3)


def test_pictures_of_several_targets_show_lengths(data):
    pytest.importorskip("matplotlib")
    X, y, w = data
    Y = np.column_stack([y, 2 * y + X[:, 5]])
    model = MultiTaskLassoCV(alphas=4).fit(X, Y, w)
    drawn = lines_of(plot_path(model, X, Y, sample_weight=w))
    exact = MultiTaskLasso(model.alphas_[-1], tol=1e-10).fit(X, Y, w)
    np.testing.assert_allclose(
        np.sort(drawn[:, -1]), np.sort(np.linalg.norm(exact.coef_, axis=0)), atol=1e-4
    )
    assert len(plot_cv(model).axes) == 2


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_logistic_regression_has_weights_of_the_columns(data, classes, l1_ratio):
    """A weight of v is a column divided by v with l1 alone, and by its square root with l2."""
    X, y, w = data
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    v = np.linspace(0.5, 2.0, 12)
    options = {"C": 0.5, "l1_ratio": l1_ratio, "tol": 1e-12}
    model = LogisticRegression(**options, penalty_weights=v).fit(X, labels, w)
    same = LogisticRegression(**options, penalty_weights=np.ones(12)).fit(X, labels, w)
    plain = LogisticRegression(**options).fit(X, labels, w)
    np.testing.assert_allclose(same.coef_, plain.coef_, atol=1e-5)
    if l1_ratio in (0.0, 1.0):
        unit = v if l1_ratio == 1.0 else np.sqrt(v)
        scaled = LogisticRegression(**options).fit(X / unit, labels, w)
        np.testing.assert_allclose(model.coef_, scaled.coef_ / unit, atol=1e-4)
    assert np.abs(model.coef_ - plain.coef_).max() > 1e-3
    free = LogisticRegression(
        C=1e-4, l1_ratio=max(l1_ratio, 0.5), penalty_weights=[0.0] + [1.0] * 11
    ).fit(X, labels, w)
    assert free.coef_[:, 0].any()
    assert not free.coef_[:, 1:].any()


def test_logistic_regression_cv_has_weights_of_the_columns(data):
    X, y, _ = data
    v = np.linspace(0.0, 2.0, 12)
    options = {"penalty_weights": v, "tol": 1e-9}
    new = {"scoring": "neg_log_loss", "use_legacy_attributes": False}
    for labels in (y > 0, np.digitize(y, [-1, 1])):
        cv = LogisticRegressionCV(Cs=[0.1], cv=3, l1_ratios=(1.0,), **options, **new).fit(X, labels)
        alone = LogisticRegression(C=0.1, l1_ratio=1.0, **options).fit(X, labels)
        np.testing.assert_allclose(cv.coef_, alone.coef_, atol=1e-5)
        assert cv.coefs_paths_[..., 0].all()
    with pytest.raises(InputError, match=r"penalty_weights has shape \(3,\)"):
        LogisticRegression(penalty_weights=[1.0, 2.0, 3.0]).fit(X, y > 0)
