"""
Sparse coding of image patches
==============================

Every 8 x 8 patch of a photograph becomes a combination of few atoms of a dictionary: one LASSO a
patch, all with the same matrix, solved as one batch. The dictionary is learned from the patches by
K-SVD.

With PROXLEARN_DATA naming a folder that holds BSDS500, patches of its pictures are used, otherwise
those of a photograph that comes with scikit-learn.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_sample_image

import proxlearn as pl
from proxlearn.problems.ksvd import ksvd

SIZE, COUNT = 8, 500


def patches_of_a_photograph() -> torch.Tensor:
    """Patches at random places, stretched to [0, 1], mean removed, (COUNT, SIZE * SIZE)."""
    grey = load_sample_image("china.jpg").mean(-1)
    random = np.random.default_rng(0)
    rows, columns = (random.integers(side - SIZE, size=4 * COUNT) for side in grey.shape)
    found = [grey[i : i + SIZE, j : j + SIZE] for i, j in zip(rows, columns, strict=True)]
    kept = [p for p in found if np.ptp(p) > 10][:COUNT]  # some of the sky is of one shade
    stretched = np.stack([((p - p.min()) / np.ptp(p)).ravel() for p in kept])
    return torch.from_numpy(stretched - stretched.mean(1, keepdims=True))


if os.environ.get("PROXLEARN_DATA"):
    signals = pl.datasets.bsds_patches(count=COUNT, size=SIZE)
else:
    signals = patches_of_a_photograph()
dictionary = ksvd(signals, atoms=128, sparsity=6, rounds=3, seed=0)

# %%
# The model ``general`` has seen problems of many sizes and kinds, none of them with this matrix.

problem = pl.lasso(dictionary.atoms, signals, lam=0.3)
for name in ("fista-restart", "general"):
    bare = pl.solve(problem, name, tol=1e-4, max_iter=5000, polish=False)
    print(f"{name:14} {bare}")
solution = pl.solve(problem, "general", tol=1e-4, max_iter=5000)
print(f"{'exact end':14} {solution}")

# %%
# Atoms, and patches beside what few of these atoms make of them.

rebuilt = solution.x @ dictionary.atoms.to(solution.x).T
used = (solution.x != 0).sum(1)
figure = plt.figure(figsize=(10, 4.2), layout="constrained")
atoms, pairs = figure.subfigures(1, 2)
for axes, atom in zip(atoms.subplots(5, 8).flat, dictionary.atoms.T, strict=False):
    axes.imshow(atom.reshape(SIZE, SIZE).numpy(), cmap="gray")
    axes.axis("off")
atoms.suptitle("40 of 128 atoms")
for column, axes in enumerate(pairs.subplots(2, 5).T):
    for row, (picture, title) in enumerate(
        [(signals[column], "patch"), (rebuilt[column], f"{used[column]} atoms")]
    ):
        axes[row].imshow(picture.reshape(SIZE, SIZE).numpy(), cmap="gray")
        axes[row].set_title(title, fontsize="small")
        axes[row].axis("off")
pairs.suptitle(f"patches, coded with {used.double().mean():.1f} atoms on average")
plt.show()
