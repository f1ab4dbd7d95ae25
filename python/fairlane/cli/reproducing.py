"""Reproducing papers: reproduce."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import AsJson, ExitCode, Quiet, completing, out_option, print_json
from fairlane.cli.options import AllowCode, folder_for, tell_damaged
from fairlane.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from fairlane.reproduce import Judged, Plan, Reproduction


def reproduce(
    paper: Annotated[
        str,
        Argument(
            metavar="PAPER",
            help="A paper that fairlane comes with, as savoie2020, or a folder with a paper.toml.",
            show_default=False,
            autocompletion=completing("fairlane.reproduce:PAPERS"),
        ),
    ],
    only: Annotated[
        list[str] | None, Option(metavar="CLAIM", help="Only what this claim needs; can be given many times.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="A scaled version, in a few minutes.")] = False,
    out: Annotated[Path | None, out_option("Folder of cells, tables and figures.", "DIR")] = None,
    resume: Annotated[bool, Option("--resume", help="Go on in a folder that has cells already.")] = False,
    placements: Annotated[int | None, Option(help="At most so many placements.")] = None,
    periods: Annotated[int | None, Option(help="At most so many iterations of the algorithm.")] = None,
    beside: Annotated[
        list[str] | None, Option(metavar="CONTROLLER", help="Also run and show this controller, e.g. slack.")
    ] = None,
    cabling: Annotated[
        str | None, Option(metavar="NAME", help="One of the ways in which the paper's machine can be cabled.")
    ] = None,
    workers: Annotated[int | None, Option(min=1, help="Processes; by default one for each core.")] = None,
    dask: Annotated[str | None, Option(metavar="ADDRESS", help="Use a Dask cluster, e.g. tcp://host:8786.")] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a paper's experiments and print its claims: paper, measured, holds."""
    from fairlane.inputs.code import allow_code as allowing
    from fairlane.reproduce import plan
    from fairlane.reproduce import reproduce as perform
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store

    if dask:
        typer.echo(f"fairlane: connecting to the Dask scheduler at {dask}", err=True)
    with allowing(allow_code):
        chosen = plan(
            paper,
            only=only or (),
            quick=quick,
            placements=placements,
            periods=periods,
            beside=beside or (),
            cabling=cabling,
        )
    folder = out or Path("runs") / f"{chosen.name}{f'-{cabling}' if cabling else ''}{'-quick' if quick else ''}"
    store = Store(folder)
    if (there := store.digests()) and not resume:
        raise ScenarioError(Problem("--out", "has cells already: --resume goes on with them", str(folder)))
    if store.foreign():
        raise ScenarioError(Problem("--out", "holds other files", str(folder), "a folder that is new or empty"))
    wordy = not (as_json or quiet)
    if wordy:
        _left_out(chosen)
    with allowing(allow_code), folder_for(folder), TaskProgress(wanted=not quiet) as shown:
        shown.stage("reproducing")
        found = perform(chosen, folder, shown, workers=workers, dask=dask)
    tell_damaged(found.damaged, folder)
    if as_json:
        print_json({"folder": folder, "claims": [_facts(one) for one in found.judged], "left_out": chosen.left_out})
    elif quiet:
        typer.echo(folder)
    else:
        _claims(found)
        _time(found, len(there))
        typer.echo(f"Everything is in {folder}.")
    return ExitCode.RUN_FAILED if found.failed else ExitCode.DONE


def _facts(one: "Judged") -> dict[str, object]:
    """A claim for JSON."""
    claim = {"id": one.claim.id, "where": one.claim.where, "claim": one.claim.claim}
    findings = [
        {
            "measured": it.words,
            "value": None if isnan(it.value) else it.value,
            "low": it.low,
            "high": it.high,
            "reported": it.reported or None,
            "holds": it.holds,
        }
        for it in one.findings
    ]
    return {**claim, "holds": one.holds, "scaled": one.scaled, "findings": findings, "missing": list(one.missing)}


def _time(found: "Reproduction", there: int) -> None:
    """What the runs have taken, whenever they were computed, and what was stored before."""
    from fairlane.wording import seconds

    wall, cpu = (sum(getattr(one, key) for one in found.done) for key in ("seconds", "cpu"))
    typer.echo(f"{len(found.done)} runs took {seconds(wall)}, {seconds(cpu)} of processor time, summed over workers.")
    if there:
        typer.echo(f"{there - found.unused} of them were there already.")
    if found.unused:
        words = "not used: of other settings, or computed by another version of the simulator"
        typer.echo(f"{found.unused} stored runs are {words}.")


def _left_out(chosen: "Plan") -> None:
    if chosen.left_out:
        typer.echo("Scaled or left out:")
        for words in dict.fromkeys(chosen.left_out.values()):
            names = [name for name, of in chosen.left_out.items() if of == words]
            typer.echo(f"  {', '.join(names)}: {words}")


def _claims(found: "Reproduction") -> None:
    """Paper, measured, holds."""
    from fairlane.reproduce import HOLDS

    for one in found.judged:
        scaled = ", scaled" if one.scaled and not one.missing else ""
        typer.echo(f"\n{one.claim.id} ({one.claim.where}): {HOLDS[one.holds]}{scaled}")
        typer.echo(f"  paper     {one.claim.claim}")
        for finding in one.findings:
            typer.echo(f"  measured  {finding.words}: {'yes' if finding.holds else 'no'}")
        if one.missing:
            typer.echo(f"  missing   {', '.join(one.missing)}")
    for run in found.failed:
        typer.echo(f"\nfailed: {run.task.label}: {run.error}")
    typer.echo("")
