"""
Compressed sensing
==================

A signal with 50 non-zeros among 500 numbers is recovered from 250 random measurements. The problem
is a LASSO like those the shipped model ``lasso`` was trained on, so few iterations suffice; the
certificate says so without knowing the answer.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl

generator = torch.Generator().manual_seed(7)
A = torch.randn(250, 500, generator=generator, dtype=torch.float64)
A /= A.norm(dim=0)
truth = torch.zeros(500, dtype=torch.float64)
where = torch.randperm(500, generator=generator)[:50]
truth[where] = torch.randn(50, generator=generator, dtype=torch.float64)
problem = pl.lasso(A, A @ truth, lam=0.1)

# %%
# The learned rule beside FISTA with restart, both without the polish that would end the solve
# early: what is drawn is the certified relative gap, an upper bound on the distance from F*.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name in ("fista-restart", "lasso"):
    path = pl.solve(problem, name, tol=1e-8, max_iter=2000, polish=False, record=True)
    print(f"{name:14} {path}")
    right.semilogy(path.history.gap[:, 0] / path.objective, label=name)
right.set(xlabel="iteration", ylabel="certified relative gap")
right.legend()

# %%
# The answer itself, as `solve` gives it by default. LASSO shrinks every entry a little: a larger
# lam shrinks more and forgives more noise.

solution = pl.solve(problem, "lasso")
print(f"{'with polish':14} {solution}")
error = (solution.x - truth).norm() / truth.norm()
left.plot(truth, ".", color="0.6", label="true signal")
left.plot(solution.x, "x", markersize=4, label=f"recovered, {error:.1%} off")
left.set(xlabel="coordinate", ylabel="value")
left.legend()
plt.show()
