"""
Figure 1 of the paper, in seconds
=================================

The paper's first figure asks which coefficients are worth learning: the step p alone, the momentum
a alone, both, or also b and the biases. The shipped variants of its rule are here run again on few
fresh problems; ``proxlearn reproduce ablation --scale paper`` runs it at the paper's size, and
:doc:`the page of results </results>` shows that.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl

VARIANTS = {
    "lasso-p": "p",
    "lasso-a": "a",
    "lasso-pa": "p and a",
    "lasso-pba": "p, b and a",
    "lasso-pba12": "all",
}
known = [name for name in VARIANTS if pl.zoo.has(name)]
problem = pl.families.GaussianLasso().sample(8, 0)
result = pl.compare(problem, ["ista", "fista", *known], max_iter=100)
for name in result.runs:
    print(f"{VARIANTS.get(name, name):12} {result.iterations_to(name, 1e-3)} iterations to 1e-3")

solution = pl.solve(problem.to(torch.float64), "lasso-pa", tol=1e-6)
print(solution)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name in result.runs:
    style = {"linewidth": 2} if name in VARIANTS else {"color": "0.6", "linestyle": "--"}
    axes.semilogy(result.mean_gap(name).clamp(min=1e-9), label=VARIANTS.get(name, name), **style)
axes.set(xlabel="iteration", ylabel="mean relative gap", ylim=(1e-8, 10), xlim=(0, 100))
axes.legend(frameon=False, title="learned")
plt.show()
