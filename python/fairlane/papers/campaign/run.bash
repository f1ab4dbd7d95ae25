# Runs all cells of one number of nodes, one after the other. A script nodes-N.sbatch sets the variables in capitals and
# sources this; its argument is a file with a host on each line, or none within an allocation of Slurm.
#
# Every second of the allocation's hosts is the aggressor's, the others are the victim's, and each has one rank. Every
# second repetition has the cells in reverse order. results/RUN has what was measured in a repetition: run.toml,
# cells.csv, placement.csv, and for each cell its times (NUMBER.csv) and what its jobs printed.
set -u

complain() {
    echo "run.bash: $*" >&2
}

hosts_of() {
    if [ -n "$1" ]; then
        awk '!/^#/ && NF { print $1 }' "$1"
    elif [ -n "${SLURM_JOB_NODELIST:-}" ]; then
        scontrol show hostnames "$SLURM_JOB_NODELIST"
    else
        complain "which hosts? submit this script with sbatch, or give it a file with a host on each line"
    fi
}

# A string of TOML.
quoted() {
    local text=${1//[\\\"]/}
    printf '"%s"' "${text//[[:cntrl:]]/ }"
}

launcher_version() {
    "$LAUNCHER" --version 2>&1 | head -n 2 | tr -s '[:space:]' ' ' | sed 's, $,,'
}

# command_for NAME LEVEL HOST...: sets `command` to what starts a rank of `measure` on each of the hosts, in their order.
words_of_srun=
[ "$LAUNCHER" != srun ] || words_of_srun=--slurm-names
command_for() {
    local name=$1 level=$2
    shift 2
    local list
    list=$(IFS=,; echo "$*")
    command=(env ${level:+"UCX_IB_SL=$level"})
    if [ "$LAUNCHER" = srun ]; then
        # Only an arbitrary distribution has ranks in the order of the list: --nodelist has them in Slurm's. A rank that
        # ends by a signal ends the others, too, as mpirun does.
        printf '%s\n' "$@" >"$run/$name.hosts"
        command+=("SLURM_HOSTFILE=$run/$name.hosts" srun "--nodes=$#" "--ntasks=$#" --distribution=arbitrary --kill-on-bad-exit=1)
    elif [[ $(launcher_version) == *"Open MPI"* ]]; then
        command+=(mpirun -np "$#" --host "${list//,/:1,}:1" ${level:+-x UCX_IB_SL})
    else
        command+=(mpirun -n "$#" -ppn 1 -hosts "$list")
    fi
    # shellcheck disable=SC2206 # words
    command+=(${LAUNCHER_OPTIONS:-} "$PWD/measure")
}

aggressor=
stop_aggressor() {
    [ -n "$aggressor" ] || return 0
    kill -TERM "$aggressor" 2>/dev/null
    for ((tenth = 0; tenth < 300; tenth++)); do
        kill -0 "$aggressor" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$aggressor" 2>/dev/null
    wait "$aggressor" 2>/dev/null
    aggressor=
}
trap stop_aggressor EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start_aggressor NUMBER WORDS: starts it, and waits until it has completed its warm-up.
start_aggressor() {
    local ready=$run/$1.aggressor
    command_for aggressor "$AGGRESSOR_LEVEL" "${aggressors[@]}"
    # shellcheck disable=SC2086 # words
    "${command[@]}" $2 $words_of_srun --endless --ready "$ready" </dev/null >"$run/$1.aggressor.log" 2>&1 &
    aggressor=$!
    for ((tenth = 0; tenth < 10 * CELL_LIMIT; tenth++)); do
        [ -f "$ready" ] && return 0
        kill -0 "$aggressor" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

# run_cell NUMBER VICTIM-WORDS AGGRESSOR-WORDS. The times of a cell whose aggressor has ended are not kept.
run_cell() {
    local number=$1 words="see $run/$1.log"
    if [ -n "$3" ] && ! start_aggressor "$number" "$3"; then
        stop_aggressor
        complain "cell $number: the aggressor did not start: see $run/$number.aggressor.log"
        return 1
    fi
    command_for victim "$VICTIM_LEVEL" "${victims[@]}"
    # shellcheck disable=SC2086
    timeout --foreground -k 30 "$CELL_LIMIT" "${command[@]}" $2 $words_of_srun --iterations "$ITERATIONS" --warm-up "$WARM_UP" \
        --output "$run/$number.csv" </dev/null >"$run/$number.log" 2>&1
    local status=$?
    if [ -n "$aggressor" ] && ! kill -0 "$aggressor" 2>/dev/null; then
        rm -f "$run/$number.csv"
        status=1 words="the aggressor had ended: see $run/$number.aggressor.log"
    fi
    stop_aggressor
    [ "$status" -eq 0 ] && [ -f "$run/$number.csv" ] && return 0
    complain "cell $number: the victim ended with code $status; $words"
    return 1
}

describe_run() {
    printf 'run = %s\n' "$(quoted "$name")"
    printf 'system = %s\nnodes = %d\nrepetition = %d\n' "$(quoted "$SYSTEM")" "$NODES" "$repetition"
    printf 'iterations = %d\nwarm_up = %d\n' "$ITERATIONS" "$WARM_UP"
    printf 'victim_level = %s\naggressor_level = %s\n' "$(quoted "$VICTIM_LEVEL")" "$(quoted "$AGGRESSOR_LEVEL")"
    printf 'launcher = %s\nslurm_job = %s\n' "$(quoted "$(launcher_version)")" "$(quoted "${SLURM_JOB_ID:-}")"
    printf 'written_by = %s\nstarted = %s\n' "$(quoted "$WRITTEN_BY")" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
}

run_all() {
    local -a lines all victims=() aggressors=()
    mapfile -t all < <(hosts_of "${1:-}")
    if [ "${#all[@]}" -lt "$NODES" ]; then
        complain "${#all[@]} hosts, and the cells need $NODES"
        return 2
    fi
    [ -x measure ] || { complain "build the program first: make"; return 2; }
    for ((at = 0; at < NODES; at++)); do
        if ((at % 2)); then aggressors+=("${all[at]}"); else victims+=("${all[at]}"); fi
    done
    mapfile -t lines < <(tail -n +2 "$CELLS")
    local stamp failed=0 line index number victim name run
    stamp=$(date -u +%Y-%m-%dT%H-%M-%S)-${SLURM_JOB_ID:-$$}
    for ((repetition = 1; repetition <= REPETITIONS; repetition++)); do
        name=$stamp-$repetition run=$PWD/results/$stamp-$repetition
        mkdir -p "$run" || return 2
        describe_run >"$run/run.toml" && cp "$CELLS" "$run/cells.csv" || return 2
        { echo job,node && printf 'victim,%s\n' "${victims[@]}" && printf 'aggressor,%s\n' "${aggressors[@]}"; } \
            >"$run/placement.csv" || return 2
        for ((at = 0; at < ${#lines[@]}; at++)); do
            index=$((repetition % 2 ? at : ${#lines[@]} - 1 - at))
            IFS=, read -r number _ _ _ _ _ victim line <<<"${lines[index]}"
            echo "repetition $repetition of $REPETITIONS, cell ${lines[index]%%,*}: ${lines[index]#*,}"
            run_cell "$number" "$victim" "$line" || failed=$((failed + 1))
        done
        printf 'finished = %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >>"$run/run.toml"
    done
    [ "$failed" -eq 0 ] || complain "$failed cells failed"
    return $((failed > 0))
}

run_all "${1:-}"
exit
