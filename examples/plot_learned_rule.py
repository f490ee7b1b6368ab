"""
What a learned rule does
========================

A rule chooses a step p and a momentum a for every coordinate in every iteration. FISTA takes
p = 1/L for all of them and the same a. Here is what two learned rules choose on fresh problems:
the compact rule and the paper's LSTM.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl
from proxlearn.methods.rules.observed import Observed
from proxlearn.methods.scheme import Rule

problem = pl.families.GaussianLasso().sample(16, 1, dtype=torch.float64)
ITERATIONS = 40
RULES = {
    "fista-restart": pl.rules.Fista(restart=True),
    "lasso": pl.load("lasso").rule,
    "lasso-pa": pl.load("lasso-pa").rule,
}


def choices(rule: Rule) -> dict[str, torch.Tensor]:
    """p L and a of all coordinates that are not 0, iteration by iteration: three quantiles."""
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    seen: dict[str, list[torch.Tensor]] = {"p L": [], "a": []}

    def look(view, coefficients):
        active = view.x != 0 if view.k else torch.ones_like(view.x, dtype=torch.bool)
        relative = coefficients.p / view.problem.safe_step()
        for values, shown in zip(seen.values(), (relative, coefficients.a), strict=True):
            values.append(torch.quantile(shown.expand_as(view.x)[active], levels))

    optimizer = pl.Scheme(Observed(rule, look))
    pl.solve(problem, optimizer, tol=0, max_iter=ITERATIONS, safeguard=False)
    return {what: torch.stack(values) for what, values in seen.items()}


# %%
# Lines are medians over coordinates and problems, bands hold 80% of them. The LSTM goes to p = 2/L,
# the largest that its activation lets it choose. The compact rule may go further and does: several
# times 1/L, in waves, and with large differences between coordinates. No proof allows that for all
# problems at once; on this family it pays.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for name, rule in RULES.items():
    for panel, (what, quantiles) in zip(axes, choices(rule).items(), strict=True):
        low, middle, high = quantiles.T
        panel.plot(middle, label=name)
        panel.fill_between(range(ITERATIONS), low, high, alpha=0.2)
        panel.set(xlabel="iteration", ylabel=what)
axes[0].legend()
plt.show()
