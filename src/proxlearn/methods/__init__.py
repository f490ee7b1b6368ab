"""The scheme of the paper, its rules, and every optimizer by name (PyTorch)."""
