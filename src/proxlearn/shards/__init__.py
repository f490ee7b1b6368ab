"""Batches in shards: any number of workers share a folder of problems and a folder of results."""

from proxlearn.shards.plan import Settings as Settings
from proxlearn.shards.summary import collect as collect
from proxlearn.shards.work import Outcome as Outcome
from proxlearn.shards.work import solve_batch as solve_batch
