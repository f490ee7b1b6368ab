"""
Magnetic resonance imaging
==========================

A scanner measures the Fourier transform of a slice line by line, and every line costs time. Here a
third of the lines was measured, more of them at low frequencies. The missing ones are found by the
sparsity of the picture in wavelets.

The first picture is what the measured lines alone give. The gaps below the others are certified.
"""

# %%
import torch

import proxlearn as pl
from proxlearn.evaluation.report.stages import stages
from proxlearn.imaging import Fourier
from proxlearn.problems.pictures import phantom

generator = torch.Generator().manual_seed(5)
picture = phantom(128, generator)
frequency = torch.fft.fftfreq(128).abs()
lines = torch.rand(128, generator=generator) < 1.3 * (1 - 2 * frequency) ** 3
lines = lines | (frequency < 0.04)
A = Fourier(lines[:, None].expand(128, 128).float())
data = A.forward(picture.reshape(1, -1))
noise = 0.01 * torch.randn(data.shape, generator=generator)
data = data + noise * (data != 0)
problem = pl.sparse_recovery(A, data[0], lam=0.01, basis="db4")
figure, solution = stages(
    problem, A.adjoint(data).reshape(128, 128), f"{int(lines.sum())} of 128 lines"
)
print(solution)
