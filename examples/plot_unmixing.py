"""
Unmixing on the simplex
=======================

A pixel of a hyperspectral picture is a mixture: its spectrum is a sum of the spectra of what it
shows, with fractions that are not negative and add up to 1. One least-squares problem on the
simplex for each of 1,600 pixels, all with the same spectra, solved as one batch.
"""

import matplotlib.pyplot as plt
import torch

import proxlearn as pl

SIDE, BANDS, MATERIALS = 40, 60, 6
generator = torch.Generator().manual_seed(0)

# %%
# Spectra: three bumps each, a row for each material. Fractions: soft blobs in a square.

bands = torch.linspace(0, 1, BANDS, dtype=torch.float64)
centres, widths = torch.rand(2, MATERIALS, 3, 1, generator=generator, dtype=torch.float64)
spectra = (
    (-((bands - centres) ** 2) / (0.03 + 0.12 * widths) ** 2).exp().sum(1)
)  # (materials, bands)
line = torch.linspace(0, 1, SIDE, dtype=torch.float64)
where = torch.cartesian_prod(line, line)
blobs = torch.rand(MATERIALS, 2, generator=generator, dtype=torch.float64)
truth = (-25 * torch.cdist(where, blobs) ** 2).softmax(1)  # (pixels, materials)
truth = torch.where(truth > 0.05, truth, 0.0)
truth /= truth.sum(1, keepdim=True)
noise = torch.randn(SIDE**2, BANDS, generator=generator, dtype=torch.float64)
pixels = truth @ spectra + 0.01 * noise

# %%
# A set is a penalty that is infinite outside of it. The gap is that of Frank and Wolfe.

problem = pl.simplex_ls(spectra.T, pixels)
solution = pl.solve(problem, "fista-restart", tol=1e-4, max_iter=5000)
print(solution)
print(f"largest error of a fraction: {(solution.x - truth).abs().max():.3f}")

figure, axes = plt.subplots(2, MATERIALS, figsize=(10, 3.7), layout="constrained")
for row, (fractions, title) in enumerate([(truth, "true"), (solution.x, "found")]):
    for j in range(MATERIALS):
        picture = axes[row, j].imshow(fractions[:, j].reshape(SIDE, SIDE).numpy(), vmin=0, vmax=1)
        axes[row, j].set_title(f"{title} fraction {j + 1}", fontsize="small")
        axes[row, j].axis("off")
figure.colorbar(picture, ax=axes, shrink=0.8)
plt.show()
