"""Reproducing papers: reproduce."""

from collections.abc import Iterator
from itertools import chain
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, AsJson, ExitCode, Quiet, completing, out_option
from fairlane.cli.options import AllowCode, Dask, Workers, folder_for, refused, report, report_damaged, stored

if TYPE_CHECKING:
    from fairlane.reproduce import Judged, Reproduction


def reproduce(
    paper: Annotated[
        str,
        Argument(
            metavar="PAPER",
            help="A paper that fairlane comes with, as savoie2020, or a folder with a paper.toml.",
            autocompletion=completing("fairlane.reproduce:PAPERS"),
        ),
    ],
    only: Annotated[list[str] | None, Option(metavar="CLAIM", help="Only what this claim needs; repeatable.")] = None,
    quick: Annotated[bool, Option("--quick", help="A scaled version, in a few minutes.")] = False,
    out: Annotated[Path | None, out_option("Folder of cells, tables and figures.", "DIR")] = None,
    resume: Annotated[bool, Option("--resume", help="Continue in a folder with results.")] = False,
    placements: Annotated[int | None, Option(help="Maximum number of placements.")] = None,
    periods: Annotated[int | None, Option(help="Maximum number of iterations of the algorithm.")] = None,
    also: Annotated[
        list[str] | None, Option(metavar="CONTROLLER", help="Also run this controller, e.g. slack.")
    ] = None,
    cabling: Annotated[str | None, Option(metavar="NAME", help="A cabling variant of the paper's machine.")] = None,
    workers: Workers = None,
    dask: Dask = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Answer:
    """Run a paper's experiments and print its claims: paper, measured, holds."""
    from fairlane.inputs.code import allow_code as allowing
    from fairlane.reproduce import plan
    from fairlane.reproduce import reproduce as perform
    from fairlane.tasks.progress import TaskProgress
    from fairlane.tasks.store import Store

    if dask:
        report(f"connecting to the Dask scheduler at {dask}")
    with allowing(allow_code):
        chosen = plan(
            paper,
            only=only or (),
            quick=quick,
            placements=placements,
            periods=periods,
            also=also or (),
            cabling=cabling,
        )
    folder = out or Path("runs") / f"{chosen.name}{f'-{cabling}' if cabling else ''}{'-quick' if quick else ''}"
    store = Store(folder)
    if (there := store.digests()) and not resume:
        raise refused("--out", "has cells already: --resume goes on with them", str(folder))
    if store.foreign():
        raise refused("--out", "holds other files", str(folder), "a folder that is new or empty")
    if chosen.left_out and not (as_json or quiet):
        typer.echo("Scaled or left out:")
        for words in dict.fromkeys(chosen.left_out.values()):
            typer.echo(f"  {', '.join(name for name, of in chosen.left_out.items() if of == words)}: {words}")
    with allowing(allow_code), folder_for(folder), TaskProgress(wanted=not quiet) as shown:
        shown.stage("reproducing")
        found = perform(chosen, folder, shown, workers=workers, dask=dask)
    report_damaged(found.damaged, folder)
    return Answer(
        {"folder": folder, "claims": [_facts(one) for one in found.judged], "left_out": chosen.left_out},
        chain(_claims(found), _time(found, len(there)), stored(folder)),
        folder,
        code=ExitCode.RUN_FAILED if found.failed else ExitCode.DONE,
    )


def _facts(one: "Judged") -> dict[str, object]:
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


def _time(found: "Reproduction", there: int) -> Iterator[str]:
    """What the runs have taken, whenever they were computed, and what was stored before."""
    from fairlane.wording import seconds

    wall, cpu = (sum(getattr(one, key) for one in found.done) for key in ("seconds", "cpu"))
    yield f"{len(found.done)} runs took {seconds(wall)}, {seconds(cpu)} of processor time, summed over workers."
    if there:
        yield f"{there - found.unused} of them were stored already."
    if found.unused:
        words = "not used: of other settings, or computed by another version of the simulator"
        yield f"{found.unused} stored runs are {words}."


def _claims(found: "Reproduction") -> Iterator[str]:
    from fairlane.reproduce import HOLDS

    for one in found.judged:
        scaled = ", scaled" if one.scaled and not one.missing else ""
        yield f"\n{one.claim.id} ({one.claim.where}): {HOLDS[one.holds]}{scaled}"
        yield f"  paper     {one.claim.claim}"
        for finding in one.findings:
            yield f"  measured  {finding.words}: {'yes' if finding.holds else 'no'}"
        if one.missing:
            yield f"  missing   {', '.join(one.missing)}"
    for run in found.failed:
        yield f"\nfailed: {run.task.label}: {run.error}"
    yield ""
