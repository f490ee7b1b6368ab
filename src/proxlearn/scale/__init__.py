"""Many problems of one kind, on one machine or on a cluster of Dask.

`solve` takes arrays of NumPy, Dask and xarray, and zarr groups; ``proxlearn solve-batch`` is the
same on files. Each chunk of problems is solved by the compiled core on one worker.
"""

from proxlearn.core.glm import STATUSES as STATUSES
from proxlearn.scale.many_problems import Batch as Batch
from proxlearn.scale.many_problems import solve as solve
from proxlearn.scale.results import sparse_x as sparse_x
