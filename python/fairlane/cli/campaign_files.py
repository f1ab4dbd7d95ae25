"""Measuring a campaign: campaign script, campaign read."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import one_of, report
from fairlane.signals import exit_on_sigterm
from fairlane.wording import plural

Level = Annotated[int | None, Option(min=0, max=15, help="Service level of the victim's messages (UCX_IB_SL).")]


def script(
    campaign: Annotated[Path, Argument(metavar="DIR", help="Folder of the campaign.")],
    out: Annotated[Path, out_option("Folder for the program and the scripts.", "FOLDER")],
    launcher: Annotated[str, Option(help="What starts the ranks: srun or mpirun.")] = "srun",
    launcher_options: Annotated[str, Option(metavar="OPTIONS", help="Further options of it.")] = "",
    system: Annotated[str | None, Option(metavar="NAME", help="Name of the machine in tables.")] = None,
    account: Annotated[str | None, Option(metavar="NAME", help="Account of Slurm.")] = None,
    partition: Annotated[str | None, Option(metavar="NAME", help="Partition of Slurm.")] = None,
    time: Annotated[str, Option(metavar="TIME", help="Time limit of a batch job.")] = "04:00:00",
    sbatch: Annotated[
        list[str] | None, Option(metavar="OPTION", help="Further option of sbatch; can be given many times.")
    ] = None,
    repetitions: Annotated[int, Option(min=1, help="Repetitions of all cells.")] = 2,
    iterations: Annotated[int, Option(min=1, help="Iterations of the victim in a cell.")] = 1000,
    warm_up: Annotated[int, Option(min=0, help="Iterations before them.")] = 5,
    service_level: Level = None,
    aggressor_level: Annotated[
        int | None, Option(min=0, max=15, help="Service level of the aggressor's, by default the same.")
    ] = None,
    testbed: Annotated[
        Path | None, Option(metavar="FILE", help="Run everything now, in the namespaces of a testbed; needs root.")
    ] = None,
) -> Answer:
    """Write what measures a campaign on a machine: batch scripts, lists of cells and an MPI program.

    There is a script for each number of nodes: in one allocation it runs each victim isolated, then beside each
    aggressor, again and again. Copy the folder to the machine; in it: make, and sbatch each script.
    """
    from fairlane.campaign.namespaces import check, run
    from fairlane.campaign.script import Options, cells, write
    from fairlane.testbed.file import TestbedFile

    one_of("--launcher", launcher, ("srun", "mpirun"))
    found = cells(campaign)
    file = TestbedFile.load(testbed) if testbed else None
    if file:
        check(found, file)
    options = Options(
        system=system,
        launcher="mpirun" if file or launcher == "mpirun" else "srun",
        launcher_options=launcher_options,
        account=account,
        partition=partition,
        time=time,
        directives=tuple(sbatch or ()),
        repetitions=repetitions,
        iterations=iterations,
        warm_up=warm_up,
        victim_level=service_level,
        aggressor_level=service_level if aggressor_level is None else aggressor_level,
    )
    scripts = write(found, out, options)
    if file:
        with exit_on_sigterm():  # the testbed is removed
            run(out, scripts, file, report)
    counts = {script.name: sum(1 for cell in found.cells if script.stem == f"nodes-{cell.nodes}") for script in scripts}
    lines = [f"{name}: {plural(count, 'cell')}" for name, count in counts.items()]
    then = f"Next: fairlane campaign read {out}" if file else "Next, in that folder: make, and sbatch each script"
    return Answer({"folder": str(out), "cells": counts}, [*lines, f"{then}."], out)


def read(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Folder of campaign script, or of CRAB, with results.")],
    out: Annotated[Path, out_option("Folder for measured.csv and placements.csv.", "DIR")],
) -> Answer:
    """Make the tables of a campaign from results: of the scripts that campaign script has written, or of CRAB.

    For each cell and run: median, mean and 99th percentile of the slowest rank's time per iteration, and the nodes.
    """
    from fairlane.campaign.reading import read as read_results

    found = read_results(folder)
    paths = found.save(out)
    runs = found.measured["run"].n_unique()
    lines = [
        f"{plural(found.measured.height, 'cell')} of {plural(runs, 'run')}",
        *(f"left out: {words}" for words in found.left_out),
    ]
    data = {"cells": found.measured.height, "runs": runs, "left_out": list(found.left_out)}
    return Answer(data, lines, out, paths)
