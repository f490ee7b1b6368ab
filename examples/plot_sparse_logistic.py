"""
Sparse logistic regression
==========================

Which words tell spam from other mail? An l1 penalty keeps few of them, and the smaller its weight
lambda, the more. All lambdas are solved as one batch that shares the data.

With PROXLEARN_DATA naming a folder that holds Spambase, that is used, otherwise the breast cancer
data that comes with scikit-learn.
"""

import os

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_breast_cancer

import proxlearn as pl

if os.environ.get("PROXLEARN_DATA"):
    A, b = pl.datasets.spambase()
else:
    A, b = (torch.from_numpy(part) for part in load_breast_cancer(return_X_y=True))
A = pl.datasets.standardise(A)
lambda_max = (A.T @ (0.5 - b.double())).abs().max() / len(b)  # above it x = 0
lam = lambda_max * torch.logspace(0, -2, 16, dtype=torch.float64)
problem = pl.logistic(A, b, lam)

# %%
# Gradients until the certified relative gap is 1e-6, for every lambda. No real data was in the
# training of ``logistic``.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name in ("fista-restart", "logistic"):
    bare = pl.solve(problem, name, max_iter=5000, polish=False)
    print(f"{name:14} {bare}")
    axes.loglog(lam / lambda_max, bare.grad_evals, "o-", markersize=3, label=name)
axes.set(xlabel="lambda / lambda_max", ylabel="gradients to a certified gap of 1e-6")
axes.legend()
plt.show()

# %%
# The path: each line is the weight of one feature.

path = pl.solve(problem, "logistic", max_iter=5000)
print(f"{'exact end':14} {path}")
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(lam / lambda_max, path.x, linewidth=1)
axes.set(xlabel="lambda / lambda_max", ylabel="weight")
axes.set_title(f"{(path.x[-1] != 0).sum()} of {problem.n} features at the smallest lambda")
plt.show()
