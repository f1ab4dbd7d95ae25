"""The command for papers that are frames of their own, until they are folders."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from fairlane.cli.command import print_json
from fairlane.cli.exit import ExitCode
from fairlane.cli.options import folder_for, tell_damaged
from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.frames import Plan, Reproduction, plan
from fairlane.reproduce.frames import reproduce as perform
from fairlane.reproduce.frames.report import Judged
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store


def reproduce(
    paper: str,
    only: Sequence[str],
    options: Mapping[str, Any],
    out: Path | None,
    *,
    quick: bool,
    resume: bool,
    workers: int | None,
    dask: str | None,
    json: bool,
    quiet: bool,
) -> int:
    """As the command."""
    cabling = options["cabling"]
    if dask:
        typer.echo(f"fairlane: connecting to the Dask scheduler at {dask}", err=True)
    folder = out or Path("runs") / f"{paper}{f'-{cabling}' if cabling else ''}{'-quick' if quick else ''}"
    chosen = plan(
        paper,
        only=only,
        quick=quick,
        **options,
    )
    store = Store(folder)
    there = store.digests()
    if there and not resume:
        raise ScenarioError(Problem("--out", "has cells already: --resume goes on with them", str(folder)))
    if store.foreign():
        raise ScenarioError(Problem("--out", "holds other files", str(folder), "a folder that is new or empty"))
    wordy = not (json or quiet)
    if wordy:
        _left_out(chosen)
    if there and wordy:
        _found(chosen, there)
    with folder_for(folder), TaskProgress(wanted=not quiet) as shown:
        shown.stage("reproducing")
        found = perform(chosen, folder, shown, workers=workers, dask=dask)
    tell_damaged(found.damaged, folder)
    if json:
        print_json({"folder": folder, "claims": [_facts(one) for one in found.judged], "left_out": chosen.left_out})
    elif quiet:
        typer.echo(folder)
    else:
        _claims(found)
        _time(found)
        typer.echo(f"Everything is in {folder}.")
    return ExitCode.RUN_FAILED if found.failed else ExitCode.DONE


def _facts(one: "Judged") -> dict[str, object]:
    """A claim for JSON."""
    claim = {"id": one.claim.id, "where": one.claim.where, "claim": one.claim.claim}
    findings = [{"measured": words, "holds": held} for words, held in one.findings]
    return {**claim, "holds": one.holds, "scaled": one.scaled, "findings": findings, "missing": list(one.missing)}


def _found(chosen: "Plan", there: set[str]) -> None:
    """What is stored already, and what of it is of no use."""
    cells = chosen.selection.tasks.values()
    known = sum(cell.digest in there for cell in cells)
    typer.echo(f"{known} of {len(cells)} cells are there already.")
    if len(there) > known:
        words = "not used: of other settings, or computed by another version of the simulator"
        typer.echo(f"{len(there) - known} stored cells are {words}.")


def _time(found: "Reproduction") -> None:
    """What the cells have taken, whenever they were computed."""
    from fairlane.results.text import seconds

    wall, cpu = (sum(getattr(cell, key) for cell in found.done.values()) for key in ("seconds", "cpu"))
    typer.echo(f"{len(found.done)} cells took {seconds(wall)}, {seconds(cpu)} of processor time, summed over workers.")


def _left_out(chosen: "Plan") -> None:
    if chosen.left_out:
        typer.echo("Scaled or left out:")
        for words in dict.fromkeys(chosen.left_out.values()):
            names = [name for name, of in chosen.left_out.items() if of == words]
            typer.echo(f"  {', '.join(names)}: {words}")


def _claims(found: "Reproduction") -> None:
    """Paper, measured, holds."""
    from fairlane.reproduce.frames import HOLDS

    for one in found.judged:
        scaled = ", scaled" if one.scaled and not one.missing else ""
        typer.echo(f"\n{one.claim.id} ({one.claim.where}): {HOLDS[one.holds]}{scaled}")
        typer.echo(f"  paper     {one.claim.claim}")
        for words, held in one.findings:
            typer.echo(f"  measured  {words}: {'yes' if held else 'no'}")
        if one.missing:
            typer.echo(f"  missing   {', '.join(one.missing)}")
    for cell in found.failed:
        typer.echo(f"\nfailed: {cell.task.label}: {cell.error}")
    typer.echo("")
