"""Measuring a campaign: campaign script, campaign read."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import one_of, refused, report
from fairlane.signals import exit_on_sigterm
from fairlane.wording import plural

if TYPE_CHECKING:
    from fairlane.campaign.script import Wanted

_T = TypeVar("_T")
Level = Annotated[int | None, Option(min=0, max=15, help="Service level of the victim's messages (UCX_IB_SL).")]


def script(
    campaign: Annotated[Path, Argument(metavar="DIR", help="Folder of the campaign.")],
    out: Annotated[Path, out_option("Folder for the program and the scripts.", "FOLDER")],
    nodes: Annotated[str | None, Option(metavar="NUMBERS", help="Numbers of nodes, e.g. 8,16,32.")] = None,
    sizes: Annotated[
        str | None,
        Option(metavar="SIZES", help='Sizes of the victim\'s messages, e.g. "512 B, 2 MiB".'),
    ] = None,
    bursts: Annotated[
        str | None, Option(metavar="PAIRS", help='Bursts and pauses of aggressors, e.g. "100 ms:1 us", with --sizes.')
    ] = None,
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

    The cells are those of the campaign's measured file, or with --sizes every victim isolated and beside every
    aggressor. There is a script for each number of nodes, which runs its cells one after the other in one allocation.
    Copy the folder to the machine; in it: make, and sbatch each script.
    """
    from fairlane.campaign.namespaces import check, run
    from fairlane.campaign.script import Options, campaign_of, write
    from fairlane.testbed.file import TestbedFile

    one_of("--launcher", launcher, ("srun", "mpirun"))
    found = campaign_of(campaign, _wanted(nodes, sizes, bursts))
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


def _wanted(nodes: str | None, sizes: str | None, bursts: str | None) -> "Wanted":
    from fairlane.campaign.script import MOST_BYTES, MOST_NODES, Wanted
    from fairlane.units import DURATION, SIZE

    def seconds(pair: str) -> tuple[float, float]:
        burst, pause = (DURATION.parse(one.strip()) / 10**12 for one in pair.split(":"))
        return burst, pause

    size = 'sizes of 1 B to 2 GiB, as "512 B, 2 MiB"'
    wanted = Wanted(
        _listed("--nodes", nodes, int, f"numbers from 4 to {MOST_NODES}, as 8,16", lambda it: 4 <= it <= MOST_NODES),
        _listed("--sizes", sizes, SIZE.parse, size, lambda it: 1 <= it <= MOST_BYTES),
        _listed("--bursts", bursts, seconds, 'pairs of a burst and a pause, as "100 ms:1 us"', all),
    )
    if wanted.sizes and not wanted.nodes:
        raise refused("--nodes", "missing, with --sizes", allowed="numbers of nodes, as 8,16")
    if wanted.bursts and not wanted.sizes:
        raise refused("--bursts", "goes with --sizes: measured cells have their own", bursts)
    return wanted


def _listed(
    option: str, given: str | None, parse: Callable[[str], _T], allowed: str, fits: Callable[[_T], bool]
) -> list[_T]:
    """The values of an option that takes a list. Raises ``ScenarioError``."""
    if given is None:
        return []
    try:
        found = [parse(word.strip()) for word in given.split(",")]
    except ValueError:
        found = []
    if not found or not all(map(fits, found)):
        raise refused(option, "is no such list", given, allowed)
    return found


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
