"""One process of a small training, for tests that kill it or run several under torchrun.

Usage: python training_worker.py OUT [--resume] [--kill-rank R --kill-step K --once MARKER]
"""

import argparse
import os
import signal
from pathlib import Path

import torch

import proxlearn as pl

FAMILY = pl.families.GaussianLasso(m=10, n=20, nonzeros=2)
CONFIG = pl.TrainConfig.paper(
    rule="pa", steps=8, batch=6, horizon=10, unroll=5, validation=8, validate_every=3, seed=0
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--kill-rank", type=int)
    parser.add_argument("--kill-step", type=int, default=4)
    parser.add_argument("--once", help="file that says that the kill has happened")
    options = parser.parse_args()

    def problems_that_kill(family):
        """The family itself, but its owner dies by SIGKILL in the middle of the training."""
        calls = [0]
        original = type(family).sample

        def sample(self, *args, **kwargs):
            calls[0] += 1
            mine = os.environ.get("RANK", "0") == str(options.kill_rank)
            if mine and calls[0] > options.kill_step and not Path(options.once).exists():
                Path(options.once).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, *args, **kwargs)

        type(family).sample = sample
        return family

    family = FAMILY if options.kill_rank is None else problems_that_kill(FAMILY)
    pl.train(family, CONFIG, out=options.out, resume=options.resume, checkpoint_seconds=0)
