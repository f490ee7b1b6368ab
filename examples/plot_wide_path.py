"""
The path of a wide problem
==========================

2,000 columns in correlated groups and 100 samples, as genes give them. `pl.path` solves for 60
values of lambda, from the one at which all coefficients are zero to a hundredth of it. The working
set and the Gram matrix go on from each lambda to the next, and every point has its own certificate.
"""

import matplotlib.pyplot as plt
import numpy as np

import proxlearn as pl

rng = np.random.default_rng(0)
modules = rng.standard_normal((100, 50))
A = modules[:, rng.integers(0, 50, 2000)] + rng.standard_normal((100, 2000))
A = (A - A.mean(0)) / A.std(0)
truth = np.zeros(2000)
truth[rng.choice(2000, 8, replace=False)] = rng.choice([-2.0, 2.0], 8)
b = A @ truth + rng.standard_normal(100)

# %%
# The whole path is one call.

path = pl.path(pl.lasso(A, b - b.mean(), lam=1.0), n_lams=60, eps=1e-2, tol=1e-8)
solution = pl.solve(pl.lasso(A, b - b.mean(), lam=path.lams[30]), tol=1e-8)
print(f"{len(path.lams)} lambdas in {1e3 * path.seconds:.0f} ms")
print(f"largest relative gap: {(path.gap / path.objective).max():.0e}")
print(solution)
assert np.allclose(path.x[30], solution.x, atol=1e-4)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
relative = path.lams / path.lams[0]
used = (path.x != 0).any(0)
for coefficient, true in zip(path.x[:, used].T, truth[used], strict=True):
    left.plot(relative, coefficient, color="C3" if true else "0.75", zorder=2 if true else 1)
left.set(xscale="log", xlabel="lambda / lambda_max", ylabel="coefficient")
left.set_title("red: the 8 columns that b was made of", fontsize="small")
left.invert_xaxis()
right.plot(relative, (path.x != 0).sum(1))
right.set(xscale="log", xlabel="lambda / lambda_max", ylabel="non-zeros")
right.invert_xaxis()
plt.show()
