"""
Total variation
===============

A picture of few edges, of which a camera out of focus saw one pixel in three. Total variation
penalises the differences of neighbouring pixels: flat parts stay flat and edges stay sharp, where
wavelets leave ripples.

``pl.imaging.total_variation`` solves it with a certified gap, for blurs, masks, Fourier samples,
projections, and their products. The dual point that proves the gap is made feasible by one Poisson
equation, so that no inner iteration has to be trusted.
"""

# %%
import matplotlib.pyplot as plt
import torch

import proxlearn as pl
from proxlearn.imaging import Blur, Mask, gaussian_kernel, total_variation
from proxlearn.problems.pictures import phantom

generator = torch.Generator().manual_seed(13)
picture = phantom(128, generator).double()
seen = torch.rand(128, 128, generator=generator) < 1 / 3
A = Mask(seen.double()) @ Blur(gaussian_kernel(1.5), (128, 128))
noise = 0.005 * torch.randn(1, 128 * 128, generator=generator).double()
data = A.forward(picture.reshape(1, -1)) + noise * seen.reshape(1, -1)

variation = total_variation(A, data[0], 1e-3, shape=(128, 128), tol=1e-3)
wavelets = pl.solve(pl.sparse_recovery(A, data[0], 1e-3, basis="db4", shape=(128, 128)), tol=1e-2)
print(wavelets)
print(variation)


# %%
# Of the two, total variation is closer to the picture.
def panel(name, solution):
    """A title, a picture, and what stands below it."""
    error = float((solution.image - picture).square().mean().sqrt())
    gap = float(solution.gap[0] / solution.objective[0])
    return name, solution.image, f"error {error:.3f}, certified gap {gap:.1e}"


panels = [
    ("the picture", picture, ""),
    ("one pixel in three, blurred", data.reshape(128, 128), ""),
    panel("db4 wavelets", wavelets),
    panel("total variation", variation),
]
figure, axes = plt.subplots(1, 4, figsize=(12, 3.5))
for axis, (name, image, below) in zip(axes, panels, strict=True):
    axis.imshow(image.numpy(), cmap="gray", vmin=0, vmax=1)
    axis.set_title(name, fontsize=10)
    axis.set_xlabel(below)
    axis.set_xticks([])
    axis.set_yticks([])
figure.tight_layout()
