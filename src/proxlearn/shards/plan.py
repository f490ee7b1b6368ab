"""What all workers of an output agree on: the settings, and which instances a shard is."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from proxlearn import __version__, names, zoo
from proxlearn.errors import InputError, needing_torch, unknown
from proxlearn.files import replacing
from proxlearn.shards.source import Source


@dataclass(frozen=True)
class Settings:
    """What a result depends on beside its input; all workers of an output must agree."""

    kind: str | None = None
    lam: float | None = None
    shard_size: int = 256
    optimizer: str = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    dtype: str | None = None
    device: str = "cpu"
    engine: str = "auto"

    def check(self) -> None:
        """Refuses, before any file is read, what no file could make right."""
        if self.shard_size < 1:
            raise InputError(f"shard size is {self.shard_size}; expected a whole number >= 1")
        if self.dtype is not None and self.dtype not in names.DTYPES:
            raise unknown("dtype", self.dtype, names.DTYPES)
        if not 0 <= self.tol < math.inf:
            raise InputError(f"tol is {self.tol}; expected a number >= 0, such as 1e-6")
        if self.max_iter < 0:
            raise InputError(f"max_iter is {self.max_iter}; expected a whole number >= 0")
        if self.engine not in names.ENGINES:
            raise unknown("engine", self.engine, names.ENGINES)
        if self.optimizer != names.AUTO:
            with needing_torch(f"optimizer {self.optimizer!r}"):
                from proxlearn import optimizers
            optimizers.get(self.optimizer)
        if self.device != "cpu":
            with needing_torch(f"device {self.device!r}"):
                from proxlearn.tensors import check_device
            check_device(self.device)

    def record(self) -> dict[str, object]:
        """As kept in job.json, with the version of the code and what the weights hold.

        Kind and lam are not there: they are part of a source, and of its fingerprint.
        """
        kept = {k: v for k, v in asdict(self).items() if k not in ("kind", "lam")}
        weights = _weights(self.optimizer)
        if weights and not zoo.has(self.optimizer) and self.optimizer != "auto":
            kept["optimizer"] = "weights"  # hosts may see the file under other names
        return {**kept, "weights": weights, "proxlearn": __version__}


def _weights(optimizer: str) -> str | None:
    """A digest of the weights that an optimizer has; "auto" may take any that are shipped."""
    if optimizer == "auto":
        files = [zoo.path(name) for name in zoo.names()]
    elif zoo.has(optimizer):
        files = [zoo.path(optimizer)]
    else:
        files = [Path(optimizer)] if optimizer.endswith(".safetensors") else []
    contents = [hashlib.sha256(file.read_bytes()).digest() for file in files]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16] if contents else None


@dataclass(frozen=True)
class Shard:
    """Instances start, ..., stop - 1 of a file, and where their result belongs."""

    source: Source
    start: int
    stop: int
    folder: Path

    @property
    def stem(self) -> str:
        return f"{self.start:010}-{self.stop:010}"

    @property
    def result(self) -> Path:
        return self.folder / f"{self.stem}.npz"

    @property
    def error(self) -> Path:
        return self.folder / f"{self.stem}.error"

    @property
    def claim(self) -> Path:
        return self.folder / f".{self.stem}.claim"

    def settled(self) -> bool:
        return self.result.exists() or self.error.exists()


def agree(path: Path, record: dict[str, object], otherwise: str) -> None:
    """Write a record, or compare it with the one that the first worker wrote."""
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    if not path.exists():
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} cannot be read; remove it, or choose another output") from None
    if found != record:
        differ = [
            f"{key} {found.get(key)} (now {record.get(key)})"
            for key in sorted(record.keys() | found.keys())
            if found.get(key) != record.get(key)
        ]
        raise InputError(
            f"{otherwise}: {', '.join(differ)}; choose another output, or remove {path.parent}"
        )
