"""The service level of each job, and the lines and scripts that set it on a cluster.

``UCX_IB_SL`` is UCX's, ``NCCL_IB_SL`` NCCL's, ``MV2_DEFAULT_SERVICE_LEVEL`` MVAPICH2's;
``OMPI_MCA_btl_openib_ib_service_level`` is the parameter ``btl_openib_ib_service_level`` of Open MPI's own InfiniBand
transport (before 5.0), which otherwise uses UCX.

*Scripts for Slurm: a job gets its level while it runs, its processes by environment and its ports by policy.* Levels go
by account, QOS and partition, which the cluster grants. A job's name does not count: its user chooses it.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.resolved import ResolvedJob

VARIABLES = ("UCX_IB_SL", "NCCL_IB_SL", "MV2_DEFAULT_SERVICE_LEVEL", "OMPI_MCA_btl_openib_ib_service_level")
"""Environment variables that take a service level."""
LEVEL = """# Sets $level for the job of the environment: that of the first line of levels.tsv that has its account,
# QOS and partition; empty if there is none. $here is the folder of levels.tsv.
level=$(awk -F '\\t' '
    function fits(pattern, value) { return pattern == "*" || pattern "" == value "" }
    /^#/ || NF < 4 { next }
    fits($2, ENVIRON["SLURM_JOB_ACCOUNT"]) && fits($3, ENVIRON["SLURM_JOB_QOS"]) &&
        fits($4, ENVIRON["SLURM_JOB_PARTITION"]) { print $1; exit }' "$here/levels.tsv")
"""

TASK_PROLOG = f"""#!/bin/sh
# TaskProlog of slurm.conf, on every compute node: Slurm sets what it prints as "export NAME=value" in every task.
# Jobs that no line of levels.tsv fits keep their environment.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/level.sh"
[ -n "$level" ] || exit 0
for name in {" ".join(VARIABLES)}; do
    echo "export $name=$level"
done
"""

PROLOG = """#!/bin/sh
# PrologSlurmctld of slurm.conf: runs as SlurmUser on the machine of slurmctld. Writes down the level of the job's
# nodes, and waits until `fairlane qos apply`, which runs on the machine of OpenSM, has put it in force. No job is held
# up by what fails here: it starts with the default level, and syslog says why.
set -u
here=$(cd "$(dirname "$0")" && pwd)
running=${QOS_RUNNING:-$here/running}
left=${QOS_WAIT:-60}

complain() {
    echo "$1" >&2
    logger -t fairlane "$1" 2> /dev/null
    exit 0
}

# Not every version of Slurm sets the QOS here.
if [ -z "${SLURM_JOB_QOS:-}" ] && awk -F '\\t' '!/^#/ && NF > 3 && $3 != "*" { found = 1 } END { exit !found }' \\
    "$here/levels.tsv" 2> /dev/null; then
    SLURM_JOB_QOS=$(squeue -h -j "$SLURM_JOB_ID" -o %q 2> /dev/null)
    export SLURM_JOB_QOS
fi
[ -r "$here/level.sh" ] && . "$here/level.sh" ||
    complain "job $SLURM_JOB_ID: the files in $here cannot be read by $(id -un) on $(uname -n)"
[ -n "$level" ] || exit 0
record=$(printf '%s\\t%s\\t%s' "$SLURM_JOB_ID" "$level" "$SLURM_JOB_NODELIST")
{ printf '%s\\n' "$record" > "$running/.$SLURM_JOB_ID" && mv "$running/.$SLURM_JOB_ID" "$running/$SLURM_JOB_ID"; } \\
    2> /dev/null || complain "job $SLURM_JOB_ID: $running cannot be written by $(id -un) on $(uname -n)"
while [ "$left" -gt 0 ]; do
    if grep -qxF -e "$record" "$running/.answered" 2> /dev/null; then
        exit 0
    fi
    [ -n "$(find "$running/.answered" -mmin -1 2> /dev/null)" ] || complain \\
        "job $SLURM_JOB_ID starts without service level $level: fairlane qos apply is not running on OpenSM's machine"
    sleep 1
    left=$((left - 1))
done
complain "job $SLURM_JOB_ID starts before its service level $level is in force"
"""

EPILOG = """#!/bin/sh
# EpilogSlurmctld of slurm.conf: the job's nodes lose its level with the next change that `fairlane qos apply` makes.
here=$(cd "$(dirname "$0")" && pwd)
rm -f "${QOS_RUNNING:-$here/running}/$SLURM_JOB_ID"
"""

SCRIPTS = {"level.sh": LEVEL, "task-prolog.sh": TASK_PROLOG, "prolog.sh": PROLOG, "epilog.sh": EPILOG}
"""The scripts by file name."""

GRANTED = ("account", "qos", "partition")
"""Properties that a cluster grants to a job, and its user cannot choose freely."""
Grant = Mapping[str, str]
"""Jobs of Slurm that have a level: those with this account, QOS and partition."""


def levels_of(resolved: Resolved, *, approximate: bool) -> tuple[dict[str, int], list[str]]:
    """The service level of each job, and notes. Raises ``ScenarioError`` for levels that are not a job's.

    A cluster sets a level for all messages of a process, and a policy for all between two ports, so levels by kind of
    traffic, class and rank have no equivalent; ``approximate`` leaves them out.
    """
    qos = resolved.tables["qos"]
    notes = []
    levels = {job.name: qos["default"] if job.service_level is None else job.service_level for job in resolved.jobs}
    kinds = {kind: level for kind, level in qos["kinds"].items() if level is not None}
    if len({*kinds.values(), *levels.values()}) > 1 and kinds:
        what = "service levels by kind of traffic: an MPI library has one for all messages of a process"
        notes.append(_left_out("qos.kinds", kinds, what, approximate=approximate))
    if classes := [
        message_class["name"] for message_class in qos.get("classes", ()) if message_class["service_level"] is not None
    ]:
        what = "service levels of traffic classes: qos classes writes those that a library can set"
        notes.append(_left_out("classes", classes, what, approximate=approximate))
    for job in resolved.jobs:
        of_ranks = _of_ranks(job, levels[job.name])
        if len(of_ranks) == 1:
            levels[job.name] = of_ranks.pop()
            continue
        what = f"service levels by rank of job {job.name!r}: exported is one for each job"
        notes.append(_left_out(f"{job.key}.service_levels", sorted(of_ranks), what, approximate=approximate))
    return levels, notes


def _of_ranks(job: ResolvedJob, level: int) -> set[int]:
    return {job.rank_levels.get(rank, level) for rank in range(job.ranks)}


def _left_out(key: str, value: object, what: str, *, approximate: bool) -> str:
    if not approximate:
        allowed = "one level for each job, or --approximate, which leaves them out"
        raise ScenarioError(Problem(key, what, value, allowed))
    return f"left out: {what}"


def environment(level: int) -> str:
    """Lines for a batch script."""
    return "".join(f"export {name}={level}\n" for name in VARIABLES)


def write_levels(levels: Mapping[str, int], grants: Mapping[str, Grant]) -> str:
    """levels.tsv: the level of jobs by account, QOS and partition; a job without a grant is a comment."""
    lines = [
        "# Service level by account, QOS and partition of Slurm: the first matching line counts; * matches all.",
        "# Slurm has to enforce them: AccountingStorageEnforce=associations,qos, AllowAccounts or AllowGroups.",
        "# level, account, QOS, partition: separated by tabs",
    ]
    for job, level in levels.items():
        if grant := grants.get(job):
            lines += [
                f"# job {job} of the scenario",
                "\t".join([str(level), *(grant.get(key, "*") for key in GRANTED)]),
            ]
        else:
            lines.append(f"# job {job} of the scenario has level {level}: which jobs of Slurm are these?")
    return "".join(f"{line}\n" for line in lines)


def read_grants(given: Sequence[str], jobs: Collection[str]) -> dict[str, Grant]:
    """Read ``--for JOB=KEY:VALUE,...``, by job. Raises ``ScenarioError``."""
    grants: dict[str, Grant] = {}
    for text in given:
        job, equals, rest = text.rpartition("=")
        pairs = [part.partition(":") for part in rest.split(",")]
        if not equals or not all(colon and value for _, colon, value in pairs):
            allowed = "JOB=account:NAME, also with qos: and partition:, separated by commas"
            raise ScenarioError(Problem("--for", "grants nothing", text, allowed))
        if job not in jobs:
            raise ScenarioError(Problem.unknown("--for", "job", job, list(jobs), text))
        for key, _, value in pairs:
            if key not in GRANTED:
                raise ScenarioError(Problem.unknown("--for", "property of a job", key, GRANTED, text))
            if not re.fullmatch(r"[^\s,]+", value):
                raise ScenarioError(
                    Problem("--for", "is no name that Slurm takes", value, "a name without blanks and commas")
                )
        grants[job] = {key: value for key, _, value in pairs}
    return grants


def check_names(names: list[str]) -> None:
    """Raises ``ScenarioError`` for a job whose name cannot be in a table or a file's name."""
    for name in names:
        if not name or name.startswith(".") or "/" in name or not name.isprintable():
            message = "cannot name a file"
            raise ScenarioError(
                Problem("jobs.name", message, name, "printable characters without /, no . at the start")
            )
