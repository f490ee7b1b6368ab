"""
Deblurring
==========

A picture out of focus, with a little noise. There is no matrix to pick columns of: the blur is a
product with the fast Fourier transform, and first-order methods are all there is. The unknowns are
wavelet coefficients, penalised by their absolute values.

The shipped rule ``imaging`` chooses steps where FISTA has a fixed one: larger steps at fine scales,
of which the blur leaves little, and smaller ones at coarse scales. The gap below each picture is
certified: the objective is at most that much, relative to itself, above the best there is. The
command ``proxlearn deblur photo.png --out sharp.png`` does the same for a file.
"""

# %%
import torch

import proxlearn as pl
from proxlearn.evaluation.report.stages import stages
from proxlearn.imaging import Blur, gaussian_kernel
from proxlearn.problems.pictures import phantom

generator = torch.Generator().manual_seed(3)
picture = phantom(128, generator)
A = Blur(gaussian_kernel(2.0).float(), (128, 128))
blurred = A.forward(picture.reshape(1, -1)) + 0.005 * torch.randn(1, 128 * 128, generator=generator)
problem = pl.sparse_recovery(A, blurred[0], lam=5e-4, basis="db4")
figure, solution = stages(problem, blurred.reshape(128, 128), "blurred", tol=1e-2)
print(solution)
