"""Scripts for Slurm: a job gets its level while it runs, its processes by environment and its ports by policy."""

from fairlane.opensm.jobs import VARIABLES

TASK_PROLOG = f"""#!/bin/sh
# TaskProlog of slurm.conf: Slurm sets what it prints as "export NAME=value" in every task of the job.
# The level of a job is that of its name in levels.tsv; jobs that are not in it keep their environment.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
level=$(awk -F '\\t' '$1 "" == ENVIRON["SLURM_JOB_NAME"] "" {{ print $2; exit }}' "$here/levels.tsv")
[ -n "$level" ] || exit 0
for name in {" ".join(VARIABLES)}; do
    echo "export $name=$level"
done
"""

PROLOG = """#!/bin/sh
# PrologSlurmctld of slurm.conf: the ports of the job's nodes get the level of the job's name in levels.tsv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
level=$(awk -F '\\t' '$1 "" == ENVIRON["SLURM_JOB_NAME"] "" { print $2; exit }' "$here/levels.tsv")
[ -n "$level" ] || exit 0
running=${QOS_RUNNING:-$here/running}
mkdir -p "$running"
printf '%s\\t%s\\n' "$level" "$SLURM_JOB_NODELIST" > "$running/.$SLURM_JOB_ID"
mv "$running/.$SLURM_JOB_ID" "$running/$SLURM_JOB_ID"
if ! "$here/apply.sh"; then  # Slurm requeues the job
    rm -f "$running/$SLURM_JOB_ID"
    exit 1
fi
"""

EPILOG = """#!/bin/sh
# EpilogSlurmctld of slurm.conf: the ports of the job's nodes have the default level again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
running=${QOS_RUNNING:-$here/running}
[ -e "$running/$SLURM_JOB_ID" ] || exit 0
rm -f "$running/$SLURM_JOB_ID"
exec "$here/apply.sh"
"""

APPLY = """#!/bin/sh
# Writes OpenSM's QoS policy for the jobs that run now, and has OpenSM read it again (SIGHUP): the process that
# QOS_OPENSM_PID_FILE names, or all OpenSMs of this machine.
# ports.tsv has the line of a port group for each node; a node without a line is named NODE/P1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
running=${QOS_RUNNING:-$here/running}
policy=${QOS_POLICY:-/etc/opensm/qos-policy.conf}
exec 9> "$running/.lock"
flock 9
new=$policy.new
set --
for file in "$running"/*; do
    [ ! -e "$file" ] || set -- "$@" "$file"
done
{
    if [ $# -gt 0 ]; then  # OpenSM refuses a section that is empty
        echo port-groups
        for file in "$@"; do
            nodes=$(scontrol show hostnames "$(cut -f 2 "$file")")
            echo "    port-group"
            echo "        name: job-${file##*/}"
            echo "$nodes" | awk -F '\\t' '
                NR == FNR { if ($1 in line) line[$1] = line[$1] "\\n        " $2; else line[$1] = $2; next }
                { print "        " ($1 in line ? line[$1] : "port-name: " $1 "/P1") }' "$here/ports.tsv" -
            echo "    end-port-group"
        done
        echo end-port-groups
    fi
    echo qos-levels
    default=$(cat "$here/default-level")
    printf '    qos-level\\n        name: DEFAULT\\n        sl: %s\\n    end-qos-level\\n' "$default"
    for level in $(cut -f 2 "$here/levels.tsv" | sort -nu); do
        printf '    qos-level\\n        name: sl%s\\n        sl: %s\\n    end-qos-level\\n' "$level" "$level"
    done
    echo end-qos-levels
    if [ $# -gt 0 ]; then
        echo qos-match-rules
        for file in "$@"; do
            job=job-${file##*/}
            echo "    qos-match-rule"
            printf '        source: %s\\n        destination: %s\\n' "$job" "$job"
            echo "        qos-level-name: sl$(cut -f 1 "$file")"
            echo "    end-qos-match-rule"
        done
        echo end-qos-match-rules
    fi
} > "$new"
mv "$new" "$policy"
if [ -n "${QOS_OPENSM_PID_FILE:-}" ]; then
    kill -HUP "$(cat "$QOS_OPENSM_PID_FILE")"
else
    for process in $(pidof opensm || true); do
        kill -HUP "$process" || true  # one that has just ended reads the policy when it starts
    done
fi
"""
SCRIPTS = {"task-prolog.sh": TASK_PROLOG, "prolog.sh": PROLOG, "epilog.sh": EPILOG, "apply.sh": APPLY}
"""The scripts by file name."""
