"""How the claims of Smith et al. 2018 are judged: what was measured, and whether it is in its band."""

from collections.abc import Iterator, Mapping

import numpy as np

from fairlane.reproduce.findings import within
from fairlane.reproduce.paper import Check, Finding
from fairlane.reproduce.smith2018.measured import Measured

__all__ = ["CHECKS"]


def _variability(measured: Measured) -> Iterator[Finding]:
    runs = measured.runs()
    compute = (runs["compute_max_s"] / runs["compute_min_s"]).to_numpy().max()
    yield within("greatest over least compute time of the ranks of a run, at most", float(compute), high=1.1)
    times = runs["seconds"].to_numpy()
    yield within("slowest over fastest run", float(times.max() / times.min()), low=1.5)
    slowest, fastest = runs["slowest_timestep_s"].to_numpy().max(), runs["fastest_timestep_s"].to_numpy().min()
    yield within("slowest over fastest timestep", float(slowest / fastest), low=2.0)
    share = (runs["wait_share"] + runs["allreduce_share"]).to_numpy().min()
    yield within("share of MPI_Wait and MPI_Allreduce in the time in MPI, at least", float(share), low=0.75)


def _groups(measured: Measured) -> Iterator[Finding]:
    runs = measured.runs()
    found = float(np.corrcoef(runs["groups"].to_numpy(), runs["seconds"].to_numpy())[0, 1])
    yield within("Pearson r of number of groups and run time", found, low=-0.5, high=0.5)


CHECKS: Mapping[str, Check] = {
    "smith.variability": Check(["runs"], _variability),
    "smith.groups": Check(["runs"], _groups),
}
"""For each claim, what it needs and how it is judged."""
