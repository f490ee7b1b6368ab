"""Long-format rows of experiments in parquet files: small, typed, whole or not at all.

A row is the state of one optimizer on one instance after one iteration. Three kinds keep the files
small: the first `SHOWN` instances at the iterations of `grid`, the others at the last iteration,
and, under the instance `MEAN`, the mean over all instances at every iteration.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from proxlearn.errors import InputError
from proxlearn.files import replacing

Array = npt.NDArray[Any]
Columns = Mapping[str, Any]

SCHEMA = {
    "experiment": "dictionary",
    "setting": "dictionary",
    "optimizer": "dictionary",
    "instance": "int16",
    "iteration": "int32",
    "objective": "float32",
    "gap": "float32",
    "gradients": "float32",
    "seconds": "float32",
    "seed": "int64",
    "version": "dictionary",
}
"""Columns and their types. `gap` is (F(x) - F*)/|F*|, infinite where an iterate is beyond float32.
`gradients` and `seconds` are spent so far, the latter for all instances together."""
MEAN = -1
"""The number that stands for the mean over all instances."""
SHOWN = 64
"""Instances of which every iteration is kept; of the others it is the last one."""


def require_pyarrow() -> None:
    """Says what to install, before any work is done."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            "rows in .parquet files need pyarrow, which is not installed; pip install pyarrow"
        ) from None


def grid(last: int) -> Array:
    """Iterations at which single instances are kept: 0, ..., 100, then 40 a decade, and the last.

    >>> len(grid(1000)), grid(1000)[-3:].tolist()
    (141, [891, 944, 1000])
    """
    decades = np.log10(max(last, 100)) - 2
    spaced = np.round(10 ** (2 + np.arange(1, int(40 * decades) + 1) / 40)).astype(int)
    every = np.concatenate([np.arange(min(last, 100) + 1), spaced, [last]])
    return np.unique(every[every <= last])


def columns_of(labels: Columns, objective: Array, gap: Array, spent: Array, seconds: Array) -> Any:
    """The rows of one optimizer; `labels` are the columns that are the same in all of them.

    `objective`, `gap` and `spent` (gradients) are (K+1, B), `seconds` is (K+1,).
    """
    K, B = len(gap) - 1, gap.shape[1]
    parts = [
        (np.full(K + 1, MEAN), np.arange(K + 1), [v.mean(1) for v in (objective, gap, spent)]),
    ]
    for i in range(B):
        kept = grid(K) if i < SHOWN else np.array([K])
        parts.append((np.full(len(kept), i), kept, [v[kept, i] for v in (objective, gap, spent)]))
    iteration = np.concatenate([k for _, k, _ in parts])
    values = [np.concatenate([v[j] for _, _, v in parts]) for j in range(3)]
    return {
        **{name: [value] * len(iteration) for name, value in labels.items()},
        "instance": np.concatenate([i for i, _, _ in parts]),
        "iteration": iteration,
        **dict(zip(("objective", "gap", "gradients"), values, strict=True)),
        "seconds": seconds[iteration],
    }


def save(parts: Iterable[Columns], path: Path) -> None:
    """Write the rows of all parts to one file, compressed with zstd."""
    require_pyarrow()
    import pyarrow as arrow
    from pyarrow import parquet

    text = arrow.dictionary(arrow.int16(), arrow.string())
    schema = arrow.schema(
        [
            (name, text if kind == "dictionary" else arrow.type_for_alias(kind))
            for name, kind in SCHEMA.items()
        ]
    )
    tables = []
    for part in parts:
        arrays = [
            arrow.array(_typed(part[n], kind), schema.field(n).type) for n, kind in SCHEMA.items()
        ]
        tables.append(arrow.Table.from_arrays(arrays, schema=schema))
    table = arrow.concat_tables(tables).unify_dictionaries()
    split = [name for name, kind in SCHEMA.items() if kind == "float32"]
    with replacing(path) as temporary:
        parquet.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=[name for name in SCHEMA if name not in (*split, "iteration")],
            use_byte_stream_split=split,  # bytes of equal weight side by side: half the size
        )


def _typed(values: Any, kind: str) -> Any:
    if kind == "dictionary":
        return values
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite
        return np.asarray(values).astype(kind)


def read(path: Path) -> dict[str, Array]:
    """All columns of a file that `save` wrote, texts as arrays of strings."""
    require_pyarrow()
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    missing = [name for name in SCHEMA if name not in table.column_names]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; expected rows of results")
    return {
        name: np.array(table[name].to_pylist()) if kind == "dictionary" else table[name].to_numpy()
        for name, kind in SCHEMA.items()
    }
