"""
Deblurring
==========

A picture out of focus, with a little noise. There is no matrix to pick columns of: the blur is a
product with the fast Fourier transform, and first-order methods are all there is. The unknowns are
wavelet coefficients, penalised by their absolute values.

A blur is diagonal after a Fourier transform, so that the best picture near a given one has a
closed form that costs no more than a gradient. The shipped rule ``imaging-splitting`` is
Douglas-Rachford's method with learned step lengths, and ``auto`` takes it here. The gap below each
picture is certified: the objective is at most that much, relative to itself, above the best there
is. The command ``proxlearn deblur photo.png --out sharp.png`` does the same for a file.
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
figure, solution = stages(problem, blurred.reshape(128, 128), "blurred")
print(solution)
