"""
Inpainting
==========

Half of the pixels are missing. A mask is an operator like any other: the picture is the sparsest
one in wavelets that agrees with the pixels that were seen.

The gaps below the pictures are certified.
"""

# %%
import torch

import proxlearn as pl
from proxlearn.evaluation.report.stages import stages
from proxlearn.imaging import Mask
from proxlearn.problems.pictures import phantom

generator = torch.Generator().manual_seed(7)
picture = phantom(128, generator)
seen = torch.rand(128, 128, generator=generator) < 0.5
noisy = picture + 0.02 * torch.randn(128, 128, generator=generator)
A = Mask(seen.float())
problem = pl.sparse_recovery(A, seen * noisy, lam=0.02, basis="db4", shape=(128, 128))
figure, solution = stages(problem, seen * noisy, "half of the pixels")
print(solution)
