"""
Cross-validation
================

`LassoCV` has scikit-learn's parameters and attributes. A fold is a vector of sample weights, so
that all folds share X; each follows its path over alpha with the working set of the last value. The
picture is drawn by `plot_cv`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import proxlearn as pl
from proxlearn.sklearn import LassoCV, plot_cv

X, y = load_diabetes(return_X_y=True)
rng = np.random.default_rng(0)
X = np.column_stack([X, rng.standard_normal((len(X), 90)) / np.sqrt(len(X))])  # noise beside it

model = LassoCV(cv=5, tol=1e-8).fit(X, y)
kept = np.flatnonzero(model.coef_)
print(f"alpha {model.alpha_:.3f}: {np.sum(kept < 10)} of 10 columns of the data, ")
print(f"{np.sum(kept >= 10)} of 90 columns of noise; certified gap {model.dual_gap_:.1e}")

# %%
# The chosen model is a LASSO like any other: solving it directly gives the same coefficients.

centred = X - X.mean(0)
solution = pl.solve(pl.lasso(centred, y - y.mean(), lam=len(y) * model.alpha_), tol=1e-10)
print(solution)
assert np.allclose(solution.x, model.coef_, atol=1e-3 * np.abs(model.coef_).max())

figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
plot_cv(model, axes=axes)
plt.show()
