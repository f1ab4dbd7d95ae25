"""A run in detail: analyze, why it was slow, and export, its timelines for trace viewers."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, Quiet, out_option
from fairlane.cli.counters import hot_links
from fairlane.cli.options import AllowCode, RunFolder, folder_of, fresh, quantity_of, refused, report
from fairlane.core.errors import require
from fairlane.core.units import ITERATION_RANGES, iteration_range
from fairlane.lab import timeline
from fairlane.lab.timeline.build import Timelines
from fairlane.sim import analysis
from fairlane.sim.analysis.result import Analysis

MOST_EVENTS = 5_000_000
"""A guard against files that viewers cannot open."""
_Files = Annotated[
    Path | None,
    Option(metavar="DIR", help="Folder that relative paths in the scenario refer to, e.g. those of traces."),
]


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
    files: _Files = None,
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
        return hot_links(counters, fabric, before, allocation, over)
    of_counters = {"--before": before, "--over": over, "--fabric": fabric, "--allocation": allocation}
    for option, given in of_counters.items():
        if given is not None:
            raise refused(option, "goes with --counters", str(given))
    from fairlane.views.analysis import draw, view

    span = None if iterations is None else _span(iterations)
    limit = None if threshold is None else quantity_of("--threshold", threshold)
    result = analysis.analyze(
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
    made = view(result)
    paths = list(map(str, draw(made, folder)))
    return Answer(
        lambda: {**_facts(result), "why": [made.headline, *made.remarks], "figures": paths},
        [made],
        "\n".join(paths),
        folder=folder,
    )


def _facts(result: Analysis) -> dict[str, Any]:
    """Return the results as JSON."""
    walk = result.walk
    return {
        "scenario": result.run.meta.scenario,
        "job": result.job,
        "ranks": result.breakdown,
        "calls": result.calls,
        "iterations": result.iterations,
        "compared": [stretch.span for stretch in result.stretches],
        "threshold_ps": result.threshold_ps,
        "cause": walk and walk.cause,
        "walk": walk and walk.steps,
        "links": walk and walk.links,
        "delayers": walk and walk.delayers,
        "roots": [asdict(root) for root in analysis.roots(result.run)],
        "notes": result.run.meta.notes,
    }


def _span(given: str) -> tuple[int | None, int | None]:
    """Read the value of --iterations."""
    span = iteration_range(given)
    if span is None:
        raise refused("--iterations", "no range of iterations", given, ITERATION_RANGES)
    return span


def export(
    run: RunFolder,
    perfetto: Annotated[
        Path | None, Option(metavar="FILE", help="Write a trace for Perfetto (ui.perfetto.dev), e.g. run.pftrace.")
    ] = None,
    otf2: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="Write an OTF2 archive for each job into a new or empty folder: for Vampir, Scalasca."
        ),
    ] = None,
    job: Annotated[
        list[str] | None, Option("--job", help="Only this job; can be given many times. By default all.")
    ] = None,
    ranks: Annotated[
        str | None, Option(metavar="FIRST..LAST", help="Only these ranks of each job, e.g. 0..15; not with --otf2.")
    ] = None,
    begin: Annotated[
        str | None, Option("--from", metavar="TIME", help="Beginning of the time range, e.g. '3 ms'.")
    ] = None,
    end: Annotated[
        str | None, Option("--to", metavar="TIME", help="End of the time range; by default of the run.")
    ] = None,
    ports: Annotated[
        int, Option(min=0, help="Ports with counters in the trace for Perfetto: those with most queueing delay.")
    ] = 64,
    max_events: Annotated[int, Option(min=1, help="Refuse to write more events than this.")] = MOST_EVENTS,
    files: _Files = None,
    allow_code: AllowCode = False,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="No progress; print nothing and only set the exit code.")
    ] = False,
) -> Answer:
    """Export what each rank did as a timeline: compute, MPI calls, waits with the job that caused them, messages.

    The run is simulated again with the same result, up to the end of the time range; what is recorded is kept in the
    run's folder. For example: fairlane export runs/quickstart --perfetto run.pftrace --to '5 ms'
    """
    if perfetto is None and otf2 is None:
        raise refused("export", "needs --perfetto or --otf2")
    if otf2 is not None:
        if ranks is not None:
            raise refused("--ranks", "not with --otf2: an archive has every rank of a job", ranks)
        fresh(otf2, "--otf2")
    if perfetto is not None:
        require("timeline")
        if perfetto.is_dir():
            raise refused("--perfetto", "is a directory", str(perfetto), "a file")
    timelines = timeline.timelines(
        run,
        jobs=job or (),
        ranks=None if ranks is None else _ranks(ranks),
        from_ps=0 if begin is None else quantity_of("--from", begin),
        to_ps=None if end is None else quantity_of("--to", end),
        files=files,
        progress=not quiet,
        allow_code=allow_code,
    )
    if timelines.size > max_events:
        narrower = "choose jobs (--job), ranks (--ranks) or a time range (--from, --to)"
        raise refused("--max-events", f"the timelines have about {timelines.size} events: {narrower}", max_events)
    return _written(timelines, perfetto, otf2, ports)


def _written(timelines: Timelines, perfetto: Path | None, otf2: Path | None, ports: int) -> Answer:
    data: dict[str, Any] = {
        "jobs": [timelines.names[job] for job in timelines.jobs],
        "from_ps": timelines.from_ps,
        "to_ps": timelines.to_ps,
    }
    lines: list[str] = []
    if perfetto is not None:
        if ports and timelines.run.samples is None:
            report("the trace has no counters of ports: run the scenario with observe.interval, e.g. '50 us'")
        data["perfetto"] = {"file": str(perfetto), "events": timeline.write_perfetto(timelines, perfetto, ports=ports)}
        lines.append(str(perfetto))
    if otf2 is not None:
        written = timeline.write_otf2(timelines, otf2)
        report(*written.notes)
        archives = {name: str(path) for name, path in written.archives.items()}
        data["otf2"] = {"archives": archives, "events": written.events, "notes": written.notes}
        lines += archives.values()
    return Answer(data, lines)


def _ranks(given: str) -> range:
    """Read ranges of ranks: 0..15, 3.., or 3."""
    first, last = iteration_range(given) or (None, None)
    if first is None:
        raise refused("--ranks", "no range of ranks", given, "FIRST..LAST, FIRST.., ONE")
    if last is not None and last < first:
        raise refused("--ranks", "the last is less than the first", given, "FIRST..LAST")
    return range(first, 10**9 if last is None else last + 1)
