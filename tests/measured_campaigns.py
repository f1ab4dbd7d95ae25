"""Results of campaigns as files, with synthetic times: of the project's own runs, and in CRAB's layout."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RUN = """run = "{name}"
system = "here"
nodes = 4
repetition = 1
iterations = 200
warm_up = 5
victim_level = "1"
aggressor_level = ""
launcher = "mpirun (Open MPI) 4.1.4"
slurm_job = "77"
written_by = "fairlane 0.1.0"
started = 2026-01-02T03:04:05Z
"""
CELLS = """cell,victim,aggressor,burst_s,pause_s,msg_bytes,victim_command,aggressor_command
001,All-to-All,none,,,512,all_posted --bytes 512,
002,All-to-All,Inc,0.001,1e-05,512,all_posted --bytes 512,incast --bytes 1024 --burst 0.001 --pause 1e-05
"""
PLACEMENT = "job,node\nvictim,n1.cluster\nvictim,n3.cluster\naggressor,n2.cluster\naggressor,n4.cluster\n"


def times(seed: int, count: int = 200) -> list[float]:
    """Times of which no two are equal, in no order."""
    found = [(1 + at) * 1e-6 + seed * 1e-3 for at in range(count)]
    random.Random(seed).shuffle(found)
    return found


def of_hosts(hosts: str, seconds: Sequence[float] = ()) -> str:
    lines = [f"{at},{value:.9f}" for at, value in enumerate(seconds)]
    return "\n".join([f"# hosts: {hosts}", "# library: Open MPI v4.1.4", "iteration,seconds", *lines, ""])


def run_folder(folder: Path, name: str, *, finished: bool = True) -> Path:
    """The folder of a run that has measured both its cells."""
    run = folder / "results" / name
    run.mkdir(parents=True)
    (run / "run.toml").write_text(RUN.format(name=name) + "finished = 2026-01-02T03:05:05Z\n" * finished)
    (run / "cells.csv").write_text(CELLS)
    (run / "placement.csv").write_text(PLACEMENT)
    (run / "001.csv").write_text(of_hosts("n1 n3", times(1)))
    (run / "002.csv").write_text(of_hosts("n1 n3", times(2)))
    (run / "002.aggressor").write_text(of_hosts("n2 n4"))
    return run


# Folders in CRAB's layout. Applications are numbered; those that collect have a file of data.
HEADER = ",".join(
    ("run_id", "msg_size", *(f"{{0}}_{kind}-Duration_s" for kind in ("Avg", "Min", "Max", "Median", "MainRank")))
)
INTERLEAVED = {"allocationmode": "p", "partitionsplit": "50:50", "partitionlayout": "i", "outformat": "csv"}


def application(wrapper: str, args: str = "", *, collect: bool = False, start: str = "0") -> dict[str, Any]:
    return {"path": f"/home/me/CRAB/wrappers/{wrapper}.py", "args": args, "collect": collect, "start": start, "end": ""}


def victim(size: int, start: str = "0", wrapper: str = "a2a_comm_only", iterations: int = 200) -> dict[str, Any]:
    return application(wrapper, f"-msgsize {size} -iter {iterations}", collect=True, start=start)


def data(seconds: Sequence[float], run: int = 1) -> str:
    """Lines of data in which only the column of the slowest rank has the times."""
    return "".join(f"{run},0,0.5,0.25,{value!r},0.5,0.75\n" for value in seconds)


def crab(
    folder: Path, applications: list[dict[str, Any]], system: str = "leo", *, newer: str = "", **options: Any
) -> Path:
    """A run as CRAB writes it; ``newer`` is the name of its only experiment."""
    run = folder / system / "2025-12-15_13-35-04-380838"
    where = run / newer
    where.mkdir(parents=True)
    listed = {str(number): app for number, app in enumerate(applications)}
    apart = {"experiments": {newer: {"apps": listed}}} if newer else {"applications": listed}
    config = {"global_options": {"numnodes": 4, "ppn": "1", **INTERLEAVED, **options}, **apart}
    (run / "config.json").write_text(json.dumps(config))
    (run / "environment.json").write_text(json.dumps({"CRAB_SYSTEM": system, "HOME": "/home/me"}))
    log = ["--- [WORKER] Allocating nodes provided by SLURM: n[1-4] ---"]
    for number, app in enumerate(applications):
        nodes = "n1,n3" if app["collect"] else "n2,n4"
        program = f"/home/me/CRAB/benchmarks/blink/bin/{Path(app['path']).stem} {app['args']}".strip()
        log.append(
            f"[DEBUG]: SLURM command is: srun --export=ALL  --nodelist {nodes} --cpu-bind=socket -n 2 -N 2 {program}"
        )
        if app["collect"]:
            (where / f"data_app_{number}.csv").write_text(f"{HEADER.format(number)}\n{data(times(1 + number))}")
    (run / "slurm_output.log").write_text("\n".join(log) + "\n")
    return where
