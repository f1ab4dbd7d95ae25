"""Why a run was slow: analyze."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option
from fairlane.cli.counting import analyze_counters
from fairlane.cli.options import AllowCode, duration_of, folder_of, refused

if TYPE_CHECKING:
    from fairlane.analysis import Analysis


def analyze(
    run: Annotated[
        Path | None, Argument(metavar="RUN", help="The folder of a run; or give --counters of a real cluster.")
    ] = None,
    job: Annotated[str | None, Option(help="The job; by default the one with iterations, or the most delayed.")] = None,
    iterations: Annotated[
        str | None, Option(metavar="FIRST..LAST", help="Only these iterations, e.g. 20.. from 20 on.")
    ] = None,
    threshold: Annotated[
        str | None,
        Option(
            help="Only longer waits count as delays, e.g. '10 us'; by default the 99th percentile of the isolated run."
        ),
    ] = None,
    between_collectives: Annotated[
        bool, Option("--between-collectives", help="Only the most delayed round between collectives.")
    ] = False,
    files: Annotated[
        Path | None,
        Option(metavar="DIR", help="Folder that relative paths in the scenario refer to, e.g. those of traces."),
    ] = None,
    counters: Annotated[
        Path | None,
        Option(metavar="FILE", help="Counters of a real cluster, as counters import reads them, instead of a run."),
    ] = None,
    before: Annotated[
        Path | None, Option(metavar="FILE", help="With --counters: counters read before; use what was added since.")
    ] = None,
    over: Annotated[str | None, Option(metavar="TIME", help="With --before: the time in between, e.g. '60 s'.")] = None,
    fabric: Annotated[
        Path | None, Option(metavar="FILE", help="With --counters: the fabric, as fabric import reads it.")
    ] = None,
    allocation: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="With --counters: jobs and their nodes, from squeue, squeue --json or sacct; or a scenario (.toml).",
        ),
    ] = None,
    out: Annotated[Path | None, out_option("Folder of the pictures; by default RUN/analysis.", "DIR")] = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> Answer:
    """Find out why a job was slow: what its ranks waited for, and what made that late.

    The iteration to which the other jobs added most time is looked at message by message, next to the same iteration of
    the isolated run. Unless the run kept that, it is simulated again with the same result, and what is recorded is kept
    in the run's folder.

    With --counters, the links of a real cluster in order of their PortXmitWait, and with --allocation the jobs that
    share them.
    """
    if (run is None) == (counters is None):
        raise refused("analyze", "needs either the folder of a run or --counters")
    if run is None:
        assert counters is not None, "one of the two is given"
        return analyze_counters(counters, fabric, before, allocation, over)
    of_counters = {"--before": before, "--over": over, "--fabric": fabric, "--allocation": allocation}
    for option, given in of_counters.items():
        if given is not None:
            raise refused(option, "goes with --counters", str(given))
    from fairlane.analysis import analyze as found_by
    from fairlane.cli.terminal import parts_of
    from fairlane.views.analysis import draw, view

    span = None if iterations is None else _span(iterations)
    limit = None if threshold is None else duration_of("--threshold", threshold)
    found = found_by(
        run,
        job=job,
        iterations=span,
        threshold_ps=limit,
        between_collectives=between_collectives,
        files=files,
        progress=not quiet,
        allow_code=allow_code,
    )
    folder = folder_of(run / "analysis" if out is None else out)
    made = view(found)
    paths = list(map(str, draw(made, folder)))
    return Answer(
        lambda: {**_facts(found), "why": [made.headline, *made.remarks], "figures": paths},
        parts_of(made, folder),
        "\n".join(paths),
    )


def _facts(found: "Analysis") -> dict[str, Any]:
    """What was found, for JSON."""
    from fairlane.analysis import roots

    walk = found.walk
    return {
        "scenario": found.run.meta.scenario,
        "job": found.job,
        "ranks": found.breakdown,
        "calls": found.calls,
        "iterations": found.iterations,
        "compared": [stretch.span for stretch in found.stretches],
        "threshold_ps": found.threshold_ps,
        "cause": walk and walk.cause,
        "walk": walk and walk.steps,
        "links": walk and walk.links,
        "delayers": walk and walk.delayers,
        "roots": [asdict(root) for root in roots(found.run)],
        "notes": found.run.meta.notes,
    }


def _span(given: str) -> tuple[int | None, int | None]:
    """What --iterations stands for."""
    from fairlane.units import ITERATION_RANGES, iteration_range

    span = iteration_range(given)
    if span is None:
        raise refused("--iterations", "no range of iterations", given, ITERATION_RANGES)
    return span
