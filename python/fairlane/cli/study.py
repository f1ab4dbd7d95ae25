"""Simulating a scenario many times: study, and the studies that come with fairlane: saturate, gpcnet, cables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from fairlane import Scenario
from fairlane.cli.command import Answer, ExitCode, OutFolder, Quiet, Seed, completing, out_option
from fairlane.cli.options import AllowCode, Assignments, Dask, Resume, ScenarioFile, Workers, report, report_damaged
from fairlane.study.running import run
from fairlane.study.shipped.base import ShippedResults, ShippedStudy
from fairlane.study.shipped.cables import Survey
from fairlane.study.shipped.gpcnet import Benchmark
from fairlane.study.shipped.saturation import LoadSweep, loads_of
from fairlane.study.study import Study
from fairlane.views import lines
from fairlane.views.kinds import draw, view_of


def study(
    file: Annotated[Path, Argument(metavar="FILE", help="The study, a TOML file.")],
    assignments: Assignments = None,
    seed: Annotated[int | None, Option("--seed", min=0, help="Simulate this seed only.")] = None,
    out: Annotated[Path | None, out_option("Folder of the study; by default a new one in runs/.", "DIR")] = None,
    resume: Resume = False,
    workers: Workers = None,
    dask: Dask = None,
    cpu_limit: Annotated[
        float | None,
        Option(metavar="SECONDS", min=0, help="Begin no simulation after this much processor time of workers."),
    ] = None,
    allow_code: AllowCode = False,
    profile: Annotated[bool, Option("--profile", help="Say where the time went.")] = False,
    quiet: Quiet = False,
) -> Answer:
    """Compare treatments over placements, seeds and parameters, or measure runs.

    Every run is compared with the default run and with each job isolated, on the same hosts; of a study with a table
    `measure` the tables are kept that it asks for. What is finished is stored at once; after an interruption --resume
    continues.
    """
    if dask and not quiet:
        report(f"connecting to the Dask scheduler at {dask}")
    changes = [] if seed is None else [f"seeds=[{seed}]"]
    loaded = Study.load(file, set=[*(assignments or ()), *changes], allow_code=allow_code)
    try:
        results = run(
            loaded, out=out, resume=resume, workers=workers, dask=dask, cpu_limit_s=cpu_limit, progress=not quiet
        )
        view = view_of([results])
        draw([results], view=view)
    except KeyboardInterrupt:
        where = f" --out {out}" if out else ""
        report(f"finished simulations are stored; continue with --resume{where}")
        raise
    report_damaged(results.meta.recomputed, results.folder)
    tables = {name: table for name, table in results.tables().items() if name not in ("runs", "periods")}
    time = list(lines.times_of_study(results.meta.profile)) if profile else []
    return Answer(
        {"folder": results.folder, **results.meta.model_dump(), **tables},
        [view, *time],
        "\n".join([str(results.folder), *time]),
        code=ExitCode.RUN_FAILED if results.failures.height else ExitCode.DONE,
        folder=results.folder,
    )


def saturate(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    load: Annotated[
        str,
        Option(
            metavar="LOADS",
            help="Offered loads as shares of the injection bandwidth: a range, or a list such as 0.1,0.5.",
        ),
    ] = "0.05..1",
    loads: Annotated[int, Option(min=1, help="How many loads a range is divided into.")] = 20,
    replicates: Annotated[int, Option(min=1, help="How many seeds each load is simulated with.")] = 3,
    seed: Seed = None,
    duration: Annotated[
        str | None,
        Option(
            help="Simulated time, warm-up included; by default that of the scenario, 400 us without an open-loop job."
        ),
    ] = None,
    warm_up: Annotated[
        str | None, Option(help="Simulated time before measurement; by default 3/8 of the duration.")
    ] = None,
    pattern: Annotated[
        str | None,
        Option(
            help="Destination pattern: a name, or a table such as '{ name = \"next_group\", group = 8 }'.",
            autocompletion=completing("fairlane.model.workload.destinations:PATTERNS"),
        ),
    ] = None,
    message_size: Annotated[str | None, Option(help='Message size, e.g. "4 KiB".')] = None,
    arrivals: Annotated[str | None, Option(help="Arrivals of messages: poisson or fixed.")] = None,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Sweep open-loop load: accepted throughput and latency at each load, and where the fabric saturates.

    All open-loop jobs of the scenario get each of the loads. A scenario without one is simulated with one open-loop
    job on all of its hosts in place of its jobs. What is finished is stored at once; after an interruption --resume
    continues, also with more loads or replicates.
    """
    wanted = loads_of(load, loads)
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    sweep = LoadSweep(
        loaded,
        loads=wanted,
        replicates=replicates,
        duration=duration,
        warm_up=warm_up,
        pattern=pattern,
        message_size=message_size,
        arrivals=arrivals,
    )
    return _performed(sweep, ["points"], out, resume=resume, quiet=quiet)


def gpcnet(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    transport: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="A transport; can be given many times. By default all that work on the fabric.",
            autocompletion=completing("fairlane.inputs.parameters:entries", "transport"),
        ),
    ] = None,
    ranks_per_host: Annotated[int, Option(help="Ranks on each host: more cause more congestion.")] = 8,
    replicates: Annotated[int, Option(help="How many random assignments of hosts.")] = 5,
    seed: Seed = None,
    iterations: Annotated[
        int, Option(help="Measured iterations of latency and allreduce; bandwidth has a 25th of them.")
    ] = 200,
    message_size: Annotated[str, Option(help="Message size of the congestors.")] = "4 KiB",
    window: Annotated[int, Option(help="Outstanding incast messages per rank.")] = 16,
    warm_up: Annotated[str, Option(help="Simulated time before the network test begins.")] = "200 us",
    duration: Annotated[
        str, Option(help="Simulated time after which a network test ends, even with fewer iterations.")
    ] = "200 ms",
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Run GPCNeT: congestion impact factors of latency, bandwidth and allreduce, for each transport.

    The scenario gives fabric, network and seed; its jobs are replaced by a network test on a fifth of the hosts and
    four congestors on the others, assigned at random. Every network test is simulated isolated and with the congestors
    on the same hosts. Each finished simulation is stored; after an interruption --resume continues, also with more
    transports or replicates.
    """
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    benchmark = Benchmark(
        loaded,
        transports=list(dict.fromkeys(transport or ())),
        ranks_per_host=ranks_per_host,
        replicates=replicates,
        iterations=iterations,
        message_size=message_size,
        window=window,
        warm_up=warm_up,
        duration=duration,
    )
    if not quiet:
        typer.echo("The jobs of the scenario are replaced by those of GPCNeT, on all hosts.", err=True)
    return _performed(benchmark, ["impact"], out, resume=resume, quiet=quiet)


def cables(
    scenario: ScenarioFile,
    assignments: Assignments = None,
    at: Annotated[
        str | None, Option(metavar="TIME", help="When a cable fails; by default after a quarter of the duration.")
    ] = None,
    duration: Annotated[str | None, Option(help="Simulated time; by default that of the scenario.")] = None,
    switches: Annotated[bool, Option("--switches", help="Switches fail instead of cables.")] = False,
    hosts: Annotated[bool, Option("--hosts", help="Cables of hosts fail as well.")] = False,
    cable: Annotated[
        list[str] | None,
        Option(metavar="LINK", help='A cable, as "leaf4 port 7"; can be given many times. By default all.'),
    ] = None,
    pairs: Annotated[
        int | None, Option(metavar="N", help="So many random pairs fail at the same time, instead of single ones.")
    ] = None,
    replicates: Annotated[
        int, Option("--replicates", "--seeds", help="How many seeds, also of random placements.")
    ] = 3,
    seed: Seed = None,
    top: Annotated[int, Option(min=1, help="How many cables the table has.")] = 10,
    allow_code: AllowCode = False,
    resume: Resume = False,
    out: OutFolder = None,
    quiet: Quiet = False,
) -> Answer:
    """Let each cable or switch fail: how much each job suffers, and which one is most critical.

    The scenario is simulated once for each seed, up to the failure. From there one fork continues unbroken, and one for
    each cable without that cable. Jobs are compared with the unbroken fork of their seed: the time per iteration (mean
    message latency of jobs without iterations), jobs that fail, hosts cut off. Each finished fork is stored; after an
    interruption --resume continues, also with more cables or replicates.
    """
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, duration=duration, allow_code=allow_code)
    survey = Survey(
        loaded, at=at, switches=switches, hosts=hosts, cables=cable or (), pairs=pairs, replicates=replicates
    )
    return _performed(survey, ["ranking", "slowdowns"], out, resume=resume, quiet=quiet, top=top)


def _performed(
    study: ShippedStudy[Any], tables: Sequence[str], out: Path | None, *, resume: bool, quiet: bool, **shown: Any
) -> Answer:
    """The answer of a shipped study: some of its tables, and its picture is drawn; ``shown`` is for the view."""
    if not quiet:
        report(*study.remarks)
    store = study.open(out, resume=resume)
    results: ShippedResults = study.run(store, progress=not quiet)
    results.draw()
    partial = results.meta["partial"]
    report_damaged(store.damaged, store.folder)
    if partial and not quiet:
        report(f"finished simulations are stored; continue with --resume --out {store.folder}")
    return Answer(
        {**{name: getattr(results, name) for name in tables}, **results.meta, "folder": results.folder},
        [view_of([results], **shown)],
        code=ExitCode.INTERRUPTED if partial else ExitCode.DONE,
        folder=results.folder,
    )
