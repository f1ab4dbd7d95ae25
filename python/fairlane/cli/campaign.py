"""Campaigns on real machines: campaign fit, predict, compare, map, script and read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, OutFolder, Quiet, out_option, write_table
from fairlane.cli.options import AllowCode, Resume, Workers, folder_of, one_of, refused, report
from fairlane.core.signals import exit_on_sigterm
from fairlane.core.wording import plural
from fairlane.lab.testbed.file import TestbedFile
from fairlane.papers.campaign import fitting, namespaces, registry, view
from fairlane.papers.campaign.cells import Cell, Cells
from fairlane.papers.campaign.comparing import compared
from fairlane.papers.campaign.file import CampaignFile
from fairlane.papers.campaign.predicting import predicted
from fairlane.papers.campaign.reading import read as read_results
from fairlane.papers.campaign.robustness import mapped
from fairlane.papers.campaign.script import Options, campaign_of, numbers_of, wanted_of
from fairlane.papers.campaign.script import write as write_scripts
from fairlane.study.tasks.executor import Executor, simulating
from fairlane.study.tasks.pools import open_pool
from fairlane.study.tasks.store import Store
from fairlane.views.kinds import write, write_pictures

Folder = Annotated[Path, Argument(metavar="DIR", help="Folder of the campaign.")]
Nodes = Annotated[str | None, Option(metavar="NUMBERS", help="Only cells of these numbers of nodes, e.g. 8,16,32.")]
CpuHours = Annotated[float | None, Option(min=0, help="Processor time after which no simulation is begun, hours.")]


def fit(
    folder: Folder,
    rounds: Annotated[
        int,
        Option(min=1, help="Maximum number of steps; each simulates the cells once, and once more for each parameter."),
    ] = 6,
    workers: Workers = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Fit parameters of the model on isolated runs.

    The parameters with fit = true are fitted on the isolated cells of judging.choose; nothing that was measured beside
    an aggressor is used. The values are written to fitted.toml, and predictions use them.
    """
    cells, _ = _cells(folder, allow_code)
    tell = (lambda _words: None) if quiet else report
    with _executor(folder, out, workers, resume=resume, cpu_hours=None, progress=False) as executor:
        fitted = fitting.fit(cells.campaign, cells, executor, rounds=rounds, report=tell)
    path = fitting.save(fitted, cells.campaign)
    rows = [
        {"cell": str(cell), "measured": measured, "simulated": simulated, "ratio": simulated / measured}
        for cell, measured, simulated in fitted.medians
    ]
    shown = {parameter.name: parameter.shown(fitted.values[parameter.name]) for parameter in cells.campaign.fitted}
    made = view.fitted(cells.campaign.title, rows, shown, fitted.error)
    return Answer({"values": shown, "error": fitted.error, "cells": rows}, [made], path)


def predict(
    folder: Folder,
    label: Annotated[
        str, Option(metavar="NAME", help="Name of the registration: letters, digits, - and _.")
    ] = "prediction",
    note: Annotated[str, Option(help="What is new about this prediction.")] = "",
    nodes: Nodes = None,
    try_out: Annotated[bool, Option("--try", help="Register nothing.")] = False,
    assignments: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Value of a parameter of the campaign; can be given many times."),
    ] = None,
    workers: Workers = None,
    cpu_hours: CpuHours = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Predict the cells, and register the prediction.

    Measured values are not read. The prediction is stored in predictions/ with digests of the model and of the cells. A
    registration is never changed: a new prediction is a new registration.
    """
    if not label.replace("-", "").replace("_", "").isalnum():
        raise refused("--label", "must be one word", label, "letters, digits, - and _")
    cells, wanted = _cells(folder, allow_code, nodes)
    model = fitting.model_of(cells, assignments or ())
    registry.registered(folder)  # an earlier one that has changed is an error now, not after hours
    with _executor(folder, out, workers, resume=resume, cpu_hours=cpu_hours, progress=not quiet) as executor:
        table = predicted(model, wanted, executor)
    shown = view.predicted(cells.campaign.title, table)
    if try_out:
        return Answer(table, [shown], folder)
    registered = registry.register(model, table, label, note, datetime.now().astimezone())
    data = {"registration": dict(registered.meta), "cells": table}
    return Answer(data, [shown, f"Registered as {registered.folder}."], registered.folder)


def compare(
    folder: Folder,
    nodes: Nodes = None,
    registration: Annotated[
        int | None, Option(min=1, help="Number of the registered prediction; by default the newest.")
    ] = None,
    allow_code: AllowCode = False,
    out: Annotated[
        Path | None, out_option("Folder of table, figure and page; by default DIR/comparison.", "DIR")
    ] = None,
) -> Answer:
    """Compare measured values with a registered prediction.

    Prints each cell with measured and predicted times, their ratios to the isolated run and a verdict, and the bars;
    writes a table, a figure and a page. Cells without a registered prediction are refused. The exit code is 1 if a bar
    is not reached.
    """
    cells, wanted = _cells(folder, allow_code, nodes)
    comparison = compared(cells, wanted, registration)
    target = folder_of(out or folder / "comparison")
    write_table(comparison.table, target / "cells.csv")
    shown = view.view(comparison)
    pictures = write_pictures(shown, shown.pictures, target)
    files = [target / "cells.csv", *pictures, write(shown, target / "index.html")]
    code = ExitCode.DONE if comparison.holds else ExitCode.RUN_FAILED
    bars = {name: [{**vars(bar), "holds": bar.holds} for bar in of] for name, of in comparison.parts.items()}
    data = {"registration": comparison.registration.name, "bars": bars, "cells": comparison.table}
    return Answer(data, [shown], target, files, code)


def draw_map(
    folder: Folder,
    points: Annotated[int, Option(min=2, max=512, help="Combinations of values of the unknown parameters.")] = 32,
    nodes: Nodes = None,
    workers: Workers = None,
    cpu_hours: CpuHours = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Show how the predictions depend on the unknown parameters.

    Predicts the cells at points that are spread over the ranges of the parameters without fit = true. Prints the share
    of points at which each cell is predicted right, and the parameters that decide it. The cells need a registered
    prediction first.
    """
    cells, wanted = _cells(folder, allow_code, nodes)
    _, every = registry.chosen(cells, None)
    unregistered = [cell for cell in wanted if not any(cell.key in registration.keys for registration in every)]
    if unregistered:
        raise refused("--nodes", f"no prediction is registered for {unregistered[0]}", nodes)
    model = fitting.model_of(cells)
    with _executor(
        folder, out, workers, resume=resume, cpu_hours=cpu_hours, progress=not quiet, partial=True
    ) as executor:
        drawn = mapped(model, wanted, executor, points)
        target = executor.store.folder if executor.store else folder
    for name in ("found", "points", "cells", "indices"):
        write_table(getattr(drawn, name), target / f"{name}.csv")
    shown = view.mapped(cells.campaign.title, drawn)
    pictures = write_pictures(shown, shown.pictures, target)
    data = {"cells": drawn.cells, "indices": drawn.indices, "failed": list(drawn.failed), "excluded": drawn.excluded}
    code = ExitCode.RUN_FAILED if drawn.failed else ExitCode.DONE
    return Answer(data, [shown], target, pictures, code)


def script(
    folder: Folder,
    out: Annotated[Path, out_option("Folder for the program and the scripts.", "FOLDER")],
    nodes: Nodes = None,
    sizes: Annotated[
        str | None,
        Option(
            metavar="SIZES", help='Sizes of the victim\'s messages, in place of measured cells, e.g. "512 B, 2 MiB".'
        ),
    ] = None,
    bursts: Annotated[
        str | None, Option(metavar="PAIRS", help='Bursts and pauses of aggressors, e.g. "100 ms:1 us", with --sizes.')
    ] = None,
    launcher: Annotated[str, Option(help="Command that starts the ranks: srun or mpirun.")] = "srun",
    launcher_options: Annotated[
        str, Option(metavar="OPTIONS", help="Further options of the launcher, e.g. --mpi=pmix.")
    ] = "",
    system: Annotated[str | None, Option(metavar="NAME", help="Name of the machine in tables.")] = None,
    account: Annotated[str | None, Option(metavar="NAME", help="Account of Slurm.")] = None,
    partition: Annotated[str | None, Option(metavar="NAME", help="Partition of Slurm.")] = None,
    time: Annotated[str, Option(metavar="TIME", help="Time limit of a batch job.")] = "04:00:00",
    sbatch: Annotated[
        list[str] | None, Option(metavar="OPTION", help="Further option of sbatch; can be given many times.")
    ] = None,
    repetitions: Annotated[int, Option(min=1, help="Repetitions of all cells.")] = 2,
    iterations: Annotated[int, Option(min=1, help="Measured iterations of each cell.")] = 1000,
    warm_up: Annotated[int, Option(min=0, help="Iterations before those that are measured.")] = 5,
    service_level: Annotated[
        int | None, Option(min=0, max=15, help="Service level of the victim's messages (UCX_IB_SL).")
    ] = None,
    aggressor_level: Annotated[
        int | None,
        Option(min=0, max=15, help="Service level of the aggressor's messages; by default that of the victim's."),
    ] = None,
    testbed: Annotated[
        Path | None, Option(metavar="FILE", help="Run everything now, in the namespaces of a testbed; needs root.")
    ] = None,
) -> Answer:
    """Write the scripts and the MPI program that measure a campaign.

    The cells are those of the campaign's measured table, or with --sizes every victim isolated and beside every
    aggressor. There is a batch script for each number of nodes, which runs its cells one after the other in one
    allocation. Copy the folder to the machine; in it, run make and submit each script with sbatch.
    """
    one_of("--launcher", launcher, ("srun", "mpirun"))
    chosen = campaign_of(folder, wanted_of(nodes, sizes, bursts))
    file = TestbedFile.load(testbed) if testbed else None
    if file:
        namespaces.check(chosen, file)
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
    scripts = write_scripts(chosen, out, options)
    if file:
        with exit_on_sigterm():  # the testbed is removed
            namespaces.run(out, scripts, file, report)
    counts = {
        script.name: sum(1 for cell in chosen.cells if script.stem == f"nodes-{cell.nodes}") for script in scripts
    }
    lines = [f"{name}: {plural(count, 'cell')}" for name, count in counts.items()]
    then = (
        f"Next: fairlane campaign read {out}"
        if file
        else "Next, in that folder on the machine: make, then sbatch each script"
    )
    return Answer({"folder": str(out), "cells": counts}, [*lines, f"{then}."], out)


def read(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Folder of campaign script, or of CRAB, with results.")],
    out: Annotated[Path, out_option("Folder for measured.csv and placements.csv.", "DIR")],
) -> Answer:
    """Make the tables of a campaign from measured results.

    Reads the results of the scripts that campaign script has written, or those of CRAB. Writes median, mean and 99th
    percentile of the time of an iteration, that of the slowest rank, for each cell and run, and the nodes of each run.
    Incomplete cells are named and omitted; a rank on a wrong node is an error. Of CRAB it knows a2a_comm_only
    (All-to-All), agtr_comm_only (All-Gather), inc_b (Incast) and their noise_ and bursty_noise_ aggressors.
    """
    results = read_results(folder)
    paths = results.save(out)
    runs = results.measured["run"].n_unique()
    lines = [
        f"{plural(results.measured.height, 'cell')} of {plural(runs, 'run')}",
        *(f"left out: {reason}" for reason in results.left_out),
    ]
    data = {"cells": results.measured.height, "runs": runs, "left_out": list(results.left_out)}
    return Answer(data, lines, out, paths)


def _cells(folder: Path, allow_code: bool, nodes: str | None = None) -> tuple[Cells, Sequence[Cell]]:
    """The cells of a campaign, and those of the numbers of nodes that ``--nodes`` gives."""
    cells = Cells(CampaignFile.load(folder, allow_code=allow_code))
    return cells, cells.of(numbers_of("--nodes", nodes, int, "numbers, as 8,16"))


@contextmanager
def _executor(
    folder: Path,
    out: Path | None,
    workers: int | None,
    *,
    resume: bool,
    cpu_hours: float | None,
    progress: bool,
    partial: bool = False,
) -> Iterator[Executor]:
    name = folder.resolve().name
    store = Store.open(
        "campaign",
        f"{name}-campaign",
        {"folder": name},
        {},
        code=["fairlane.papers.campaign.simulating"],
        out=out,
        started=datetime.now().astimezone(),
        resume=resume,
        complete=lambda _folder: False,
    )
    limit = None if cpu_hours is None else cpu_hours * 3600
    options = {"first_failure_ends": not partial, "cpu_limit_s": limit}
    with simulating(open_pool(workers), store, progress=progress, **options) as executor:
        yield executor
