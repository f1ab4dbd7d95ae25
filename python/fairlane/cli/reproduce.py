"""Reproductions of papers, and what their claims depend on: reproduce, robustness."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, AsJson, ExitCode, Quiet, completing, out_option
from fairlane.cli.options import AllowCode, Dask, Workers, folder_for, refused, report, report_damaged
from fairlane.cli.terminal import Part
from fairlane.inputs.code import allow_code as allowing
from fairlane.papers.reproduce import Reproduction, check_replicates, folder_of, plan
from fairlane.papers.reproduce import reproduce as perform
from fairlane.papers.robustness import POINTS
from fairlane.papers.robustness_output import CLAUSES, PICTURE, check_points, combine, map_robustness
from fairlane.papers.storing import table_of, written
from fairlane.results.reproduction import ReproductionResults, claims_of
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.store import Store
from fairlane.views import lines
from fairlane.views.kinds import view_of
from fairlane.views.robustness import papers


def reproduce(
    paper: Annotated[
        str,
        Argument(
            metavar="PAPER",
            help="A paper that fairlane comes with, as savoie2020, or a folder with a paper.toml.",
            autocompletion=completing("fairlane.papers.reproduce:PAPERS"),
        ),
    ],
    only: Annotated[list[str] | None, Option(metavar="CLAIM", help="Only what this claim needs; repeatable.")] = None,
    deciding: Annotated[
        bool, Option("--deciding", help="Only studies that decide claims, not those shown too.")
    ] = False,
    quick: Annotated[bool, Option("--quick", help="A scaled version, in a few minutes.")] = False,
    out: Annotated[Path | None, out_option("Folder of cells, tables and figures.", "DIR")] = None,
    resume: Annotated[bool, Option("--resume", help="Continue in a folder with results.")] = False,
    placements: Annotated[int | None, Option(help="Maximum number of placements.")] = None,
    periods: Annotated[int | None, Option(help="Maximum number of iterations of the algorithm.")] = None,
    also: Annotated[
        list[str] | None, Option(metavar="CONTROLLER", help="Also run this controller, e.g. slack.")
    ] = None,
    variant: Annotated[str | None, Option(metavar="NAME", help="Another model of the paper's system.")] = None,
    replicates: Annotated[int, Option(help="Replicates with other seeds to judge the claims by; 0 with --with.")] = 1,
    first_replicate: Annotated[int, Option(help="Number of the first replicate that is run.")] = 1,
    earlier: Annotated[
        list[Path] | None,
        Option(
            "--with",
            metavar="FILE",
            help="A clauses.csv of other replicates to judge by as well, or a robustness.csv of other points of the "
            "same map; repeatable.",
        ),
    ] = None,
    cpu_hours: Annotated[
        float | None,
        Option(
            "--cpu-hours",
            help="Maximum processor time, h: of all replicates but the first, nearest claims first; or of all points.",
        ),
    ] = None,
    robustness: Annotated[
        bool, Option("--robustness", help="Claims over what the paper leaves open, at points of a small system.")
    ] = False,
    space: Annotated[
        str | None, Option(metavar="NAME", help="Of --robustness: the space in robustness-NAME.toml.")
    ] = None,
    points: Annotated[int | None, Option(help="Number of points of --robustness; 128 by default.")] = None,
    workers: Workers = None,
    dask: Dask = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> Answer:
    """Run a paper's experiments and print its claims: paper, measured, holds."""
    if space is not None and not robustness:
        raise refused("--space", "is what a robustness map varies", space, "with --robustness")
    if points is not None and not robustness:
        raise refused("--points", "is the number of points of a robustness map", points, "with --robustness")
    shared: dict[str, Any] = {"cpu_hours": cpu_hours, "earlier": earlier or (), "workers": workers, "dask": dask}
    if robustness:
        others = {
            "--only": only,
            "--quick": quick,
            "--placements": placements,
            "--periods": periods,
            "--also": also,
            "--variant": variant,
            "--replicates": replicates != 1,
            "--first-replicate": first_replicate != 1,
            "--deciding": deciding,
        }
        given = [name for name, value in others.items() if value]
        if given:
            raise refused(
                given[0],
                "does not go with --robustness",
                allowed="--space, --points, --cpu-hours, --with, --resume, --out",
            )
        with allowing(allow_code):
            return _draw_map(
                paper, out, space, POINTS if points is None else points, resume=resume, quiet=quiet, **shared
            )
    check_replicates(replicates, cpu_hours, first_replicate, earlier=bool(earlier))
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
            variant=variant,
            deciding=deciding,
            first_replicate=first_replicate,
        )
    parts = [chosen.name, variant, "quick" if quick else None]
    folder = out or Path("runs") / "-".join(part for part in parts if part)
    there = _stored(folder, resume=resume)
    if chosen.left_out and not (as_json or quiet):
        typer.echo("Scaled or left out:")
        for reason in dict.fromkeys(chosen.left_out.values()):
            typer.echo(f"  {', '.join(name for name, of in chosen.left_out.items() if of == reason)}: {reason}")
    with allowing(allow_code), folder_for(folder), TaskProgress(wanted=not quiet) as shown:
        shown.stage("reproducing")
        reproduced = perform(chosen, folder, shown, replicates=replicates, **shared)
    report_damaged(reproduced.damaged, folder)
    report(*map(str, reproduced.not_written))
    rest = reproduced.replication.rest
    return Answer(
        {
            "folder": folder,
            "claims": [written(settings[0]) for settings in claims_of(table_of(reproduced.verdicts))],
            "left_out": chosen.left_out,
            "not_written": [str(problem) for problem in reproduced.not_written],
            "not_run": {name: {"replicates": count, "cpu_s": cpu} for name, (count, cpu) in rest.items()},
        },
        _text(reproduced, folder, there),
        code=ExitCode.RUN_FAILED if reproduced.failed or reproduced.not_written else ExitCode.DONE,
        folder=folder,
    )


def _stored(folder: Path, *, resume: bool) -> int:
    """Count the cells of a folder. Raises ``ScenarioError`` if it is not for these."""
    store = Store(folder)
    if (there := store.digests()) and not resume:
        raise refused("--out", "has cells already: --resume goes on with them", str(folder))
    if store.foreign():
        raise refused("--out", "holds other files", str(folder), "a folder that is new or empty")
    return len(there)


def _text(reproduced: Reproduction, folder: Path, there: int) -> Iterator[Part]:
    yield view_of([ReproductionResults.load(folder)])
    wall, cpu = (sum(getattr(done, key) for done in reproduced.done) for key in ("seconds", "cpu"))
    yield from lines.times_of_reproduction(len(reproduced.done), wall, cpu, stored=there, unused=reproduced.unused)


def robustness(
    folders: Annotated[list[Path], Argument(metavar="FOLDER...", help="Folders of reproduce --robustness.")],
    out: Annotated[Path | None, out_option("Folder of the figure and the table.", "DIR")] = None,
) -> Answer:
    """Show what several papers' clauses depend on: one figure and one table of their robustness maps."""
    folder = out or Path("runs") / "robustness"
    clauses = combine(folders, folder)
    return Answer(clauses.to_dicts(), [papers(clauses)], folder, files=[folder / CLAUSES, folder / f"{PICTURE}.png"])


def _draw_map(
    paper: str,
    folder: Path | None,
    space: str | None,
    points: int,
    *,
    resume: bool,
    quiet: bool,
    **shared: Any,
) -> Answer:
    """Runs the points of a paper's robustness map and shows it: what ``reproduce --robustness`` does."""
    check_points(points, shared["cpu_hours"])
    of = folder_of(paper)
    out = folder or Path("runs") / f"{of.name}-robustness{f'-{space}' if space else ''}"
    _stored(out, resume=resume)
    with folder_for(out), TaskProgress(wanted=not quiet) as shown:
        drawn, results, damaged = map_robustness(of, out, shown, space=space, points=points, **shared)
    report_damaged(damaged, out)
    return Answer(
        {
            "folder": out,
            "clauses": results.frames["robustness-clauses"].drop("paper", "title").to_dicts(),
            "failed": drawn.failed,
        },
        [view_of([results])],
        code=ExitCode.RUN_FAILED if drawn.failed else ExitCode.DONE,
        folder=out,
    )
