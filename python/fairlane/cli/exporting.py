"""Timelines of a run for trace viewers: export."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer
from fairlane.cli.options import AllowCode, duration_of, fresh, refused, report

if TYPE_CHECKING:
    from fairlane.timeline import Timelines

MOST_EVENTS = 5_000_000
"""A guard against files that viewers cannot open."""


def export(
    run: Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")],
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
    files: Annotated[
        Path | None,
        Option(metavar="DIR", help="Folder that relative paths in the scenario refer to, e.g. those of traces."),
    ] = None,
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
        from fairlane.inputs.extras import require

        require("timeline")
        if perfetto.is_dir():
            raise refused("--perfetto", "is a directory", str(perfetto), "a file")
    from fairlane.timeline import timelines

    found = timelines(
        run,
        jobs=job or (),
        ranks=None if ranks is None else _ranks(ranks),
        from_ps=0 if begin is None else duration_of("--from", begin),
        to_ps=None if end is None else duration_of("--to", end),
        files=files,
        progress=not quiet,
        allow_code=allow_code,
    )
    if found.size > max_events:
        narrower = "choose jobs (--job), ranks (--ranks) or a time range (--from, --to)"
        raise refused("--max-events", f"the timelines have about {found.size} events: {narrower}", max_events)
    return _written(found, perfetto, otf2, ports)


def _written(found: "Timelines", perfetto: Path | None, otf2: Path | None, ports: int) -> Answer:
    from fairlane.timeline import write_otf2, write_perfetto

    data: dict[str, Any] = {
        "jobs": [found.names[job] for job in found.jobs],
        "from_ps": found.from_ps,
        "to_ps": found.to_ps,
    }
    lines: list[str] = []
    if perfetto is not None:
        if ports and found.run.samples is None:
            report("the trace has no counters of ports: run the scenario with observe.interval, e.g. '50 us'")
        data["perfetto"] = {"file": str(perfetto), "events": write_perfetto(found, perfetto, ports=ports)}
        lines.append(str(perfetto))
    if otf2 is not None:
        written = write_otf2(found, otf2)
        for note in written.notes:
            report(note)
        archives = {name: str(path) for name, path in written.archives.items()}
        data["otf2"] = {"archives": archives, "events": written.events, "notes": written.notes}
        lines += archives.values()
    return Answer(data, lines)


def _ranks(given: str) -> range:
    """What 0..15, 3.., or 3 stand for."""
    found = re.fullmatch(r"(\d{1,9})(?:(\.\.)(\d{0,9}))?", given.strip())
    if found is None:
        raise refused("--ranks", "no range of ranks", given, "FIRST..LAST, FIRST.., ONE")
    first, last = int(found[1]), int(found[3] or 10**9) if found[2] else int(found[1])
    if last < first:
        raise refused("--ranks", "the last is less than the first", given, "FIRST..LAST")
    return range(first, last + 1)
