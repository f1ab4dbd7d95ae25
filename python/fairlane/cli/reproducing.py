"""Reproducing papers: reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairlane.cli.exit import ExitCode
from fairlane.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from fairlane.reproduce import Plan, Reproduction
    from fairlane.reproduce.cells import Done

__all__ = ["add_to"]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="The paper, as savoie2020.", show_default=False)],
    only: Annotated[str | None, typer.Option(metavar="CLAIM", help="Only what this claim needs.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A scaled version, in a few minutes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of cells, tables and figures.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in a folder that has cells already.")] = False,
    placements: Annotated[int | None, typer.Option(help="At most so many placements.")] = None,
    periods: Annotated[int | None, typer.Option(help="At most so many iterations of the algorithm.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
) -> int:
    """Run a paper's experiments and print its claims: paper, measured, holds."""
    from fairlane.reproduce import plan
    from fairlane.reproduce import reproduce as perform

    chosen = plan(paper, only=only, quick=quick, placements=placements, periods=periods)
    folder = out or Path("runs") / f"{paper}{'-quick' if quick else ''}"
    if not resume and any((folder / "cells").glob("*.parquet")):
        raise ScenarioError(Problem("--out", "has cells already: --resume goes on with them", str(folder)))
    _left_out(chosen)
    found = perform(chosen, folder, workers=workers, told=_Progress(len(chosen.cells())))
    _claims(found)
    typer.echo(f"Everything is in {folder}.")
    return ExitCode.RUN_FAILED if found.failed else ExitCode.DONE


def _left_out(chosen: "Plan") -> None:
    if chosen.left_out:
        typer.echo("Scaled or left out:")
        for name, words in chosen.left_out.items():
            typer.echo(f"  {name}: {words}")


class _Progress:
    """A line on standard error for each cell."""

    def __init__(self, cells: int) -> None:
        self._cells, self._done, self._computed, self._seconds = cells, 0, 0, 0.0

    def __call__(self, done: "Done") -> None:
        self._done += 1
        words = done.error or (f"{done.seconds:.0f} s" if done.seconds else "was there")
        typer.echo(f"{self._done} of {self._cells}: {done.cell}: {words}", err=True)


def _claims(found: "Reproduction") -> None:
    """Paper, measured, holds."""
    for one in found.judged:
        holds = {True: "holds", False: "does not hold", None: "not run"}[one.holds]
        scaled = ", scaled" if one.scaled and not one.missing else ""
        typer.echo(f"\n{one.claim.id} ({one.claim.where}): {holds}{scaled}")
        typer.echo(f"  paper     {one.claim.claim}")
        for words, held in one.findings:
            typer.echo(f"  measured  {words}: {'yes' if held else 'no'}")
        if one.missing:
            typer.echo(f"  missing   {', '.join(one.missing)}")
    for cell in found.failed:
        typer.echo(f"\nfailed: {cell.cell}: {cell.error}")
    typer.echo("")


def add_to(app: typer.Typer) -> None:
    """Adds this command."""
    app.command()(reproduce)
