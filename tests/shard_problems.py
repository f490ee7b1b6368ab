"""Small problems in files, for the tests of `solve-batch`."""

import numpy as np
import torch

import proxlearn as pl


def lasso_arrays(count, seed):
    problem = pl.families.GaussianLasso(m=8, n=16, nonzeros=2).sample(count, seed).to(torch.float64)
    return {"A": problem.f.A.A.numpy(), "b": problem.f.b.numpy()}


def lasso_files(folder):
    folder.mkdir()
    for seed, count in enumerate([12, 10, 8]):
        arrays = lasso_arrays(count, seed)
        np.savez(folder / f"part{seed}.npz", kind="lasso", lam=0.1, **arrays)
    return folder
