"""
Tomography
==========

Sums along parallel rays from 32 angles, as a scanner measures them. The projections see coarse
structure well and fine structure badly, so that a method with one step for all scales is slow; the
rule ``imaging`` chooses a step for each.

The first picture is the back-projection of the data. The gaps below the others are certified.
"""

# %%
import torch

import proxlearn as pl
from proxlearn.evaluation.report.stages import stages
from proxlearn.imaging import projection
from proxlearn.problems.pictures import phantom

generator = torch.Generator().manual_seed(9)
picture = phantom(128, generator)
degrees = torch.arange(32) * (180 / 32)
A = projection((128, 128), degrees, dtype=torch.float32)
data = A.forward(picture.reshape(1, -1))
data = data + 0.005 * data.std() * torch.randn(data.shape, generator=generator)
problem = pl.sparse_recovery(A, data[0], lam=2.0, basis="db4", shape=(128, 128))
back = A.adjoint(data).reshape(128, 128)
figure, solution = stages(problem, back / back.max(), "back-projection", tol=1e-2)
print(solution)
