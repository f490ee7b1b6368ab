"""Options that several commands share, or that are long."""

from typing import Annotated

import typer

from proxlearn import names

Count = Annotated[int, typer.Option(min=1, help="Number of problems.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the problems.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--set", help="NAME=VALUE of the family, such as m=100.")
]
Tol = Annotated[float, typer.Option(help="Certified relative gap to reach.")]
MaxIter = Annotated[int, typer.Option(help="Most iterations.")]
L1Ratio = Annotated[
    float | None, typer.Option(help="Share of l1 in the sparse-group penalty; 0.5 by default.")
]
Classes = Annotated[
    int | None, typer.Option(help="Number of classes; by default one more than the largest label.")
]
Dtype = Annotated[str | None, typer.Option(help="float32 or float64; by default that of A.")]
Optimizer = Annotated[
    str,
    typer.Option(
        help="auto, a method such as fista-restart, a model that proxlearn models lists, or a file."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(names.ENGINES),
        help="What solves; by default what PROXLEARN_ENGINE names, or auto.",
    ),
]
Chunk = Annotated[
    int | None, typer.Option(min=1, help="Problems in a chunk; by default two seconds of work.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes on this machine; by default one for each core.")
]
Scheduler = Annotated[
    str | None, typer.Option(help="A running cluster of Dask, such as tcp://host:8786.")
]
Dashboard = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port of Dask's dashboard, on 127.0.0.1.")
]
