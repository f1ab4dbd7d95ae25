"""Scripts for Slurm: a job gets its level while it runs, its processes by environment and its ports by policy.

Levels go by account, QOS and partition, which the cluster grants. A job's name does not count: its user chooses it.
"""

from fairlane.opensm.jobs import VARIABLES

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
