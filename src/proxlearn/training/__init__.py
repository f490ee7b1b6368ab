"""Training rules: truncated backpropagation through the iterations."""

from proxlearn.training.config import TrainConfig
from proxlearn.training.training_loop import Report, train

__all__ = ["Report", "TrainConfig", "train"]
