"""The service level of each job, and the lines and scripts that set it on a cluster.

``UCX_IB_SL`` is UCX's, ``NCCL_IB_SL`` NCCL's, ``MV2_DEFAULT_SERVICE_LEVEL`` MVAPICH2's;
``OMPI_MCA_btl_openib_ib_service_level`` is the parameter ``btl_openib_ib_service_level`` of Open MPI's own InfiniBand
transport (before 5.0), which otherwise uses UCX.
"""

from collections.abc import Mapping

from fairlane.errors import Problem, ScenarioError
from fairlane.scenario import Resolved
from fairlane.scenario.resolved import ResolvedJob

VARIABLES = ("UCX_IB_SL", "NCCL_IB_SL", "MV2_DEFAULT_SERVICE_LEVEL", "OMPI_MCA_btl_openib_ib_service_level")
"""Environment variables that take a service level."""


def levels_of(resolved: Resolved, *, approximate: bool) -> tuple[dict[str, int], list[str]]:
    """The service level of each job, and notes. Raises ``ScenarioError`` for levels that are not a job's.

    A cluster sets a level for all messages of a process, and a policy for all between two ports, so levels by kind of
    traffic and by rank have no equivalent; ``approximate`` leaves them out.
    """
    qos = resolved.tables["qos"]
    notes = []
    levels = {job.name: qos["default"] if job.service_level is None else job.service_level for job in resolved.jobs}
    kinds = {kind: level for kind, level in qos["kinds"].items() if level is not None}
    if len({*kinds.values(), *levels.values()}) > 1 and kinds:
        words = "service levels by kind of traffic: an MPI library has one for all messages of a process"
        notes.append(_left_out("qos.kinds", kinds, words, approximate=approximate))
    for job in resolved.jobs:
        own = _of_ranks(job, levels[job.name])
        if len(own) == 1:
            levels[job.name] = own.pop()
            continue
        words = f"service levels by rank of job {job.name!r}: exported is one for each job"
        notes.append(_left_out(f"{job.key}.service_levels", sorted(own), words, approximate=approximate))
    return levels, notes


def _of_ranks(job: ResolvedJob, level: int) -> set[int]:
    return {job.rank_levels.get(rank, level) for rank in range(job.ranks)}


def _left_out(key: str, value: object, words: str, *, approximate: bool) -> str:
    if not approximate:
        allowed = "one level for each job, or --approximate, which leaves them out"
        raise ScenarioError(Problem(key, words, value, allowed))
    return f"left out: {words}"


def environment(level: int) -> str:
    """Lines for a batch script."""
    return "".join(f"export {name}={level}\n" for name in VARIABLES)


def write_tsv(rows: Mapping[str, str | int]) -> str:
    """A table of two columns, separated by a tabulator."""
    return "".join(f"{key}\t{value}\n" for key, value in rows.items())


def check_names(names: list[str]) -> None:
    """Raises ``ScenarioError`` for a job whose name cannot be in a table or a file's name."""
    for name in names:
        if not name or name.startswith(".") or "/" in name or not name.isprintable():
            words = "cannot name a file"
            raise ScenarioError(Problem("jobs.name", words, name, "printable characters without /, no . at the start"))
