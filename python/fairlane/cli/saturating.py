"""Load against latency and accepted throughput: saturate."""

from datetime import datetime
from typing import Annotated

import typer
from typer import Option

from fairlane.cli.command import Answer, OutFolder, Quiet, Seed, completing
from fairlane.cli.options import AllowCode, Assignments, Resume, ScenarioFile, code_of


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
            autocompletion=completing("fairlane.workload.destinations:PATTERNS"),
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
    from fairlane import Scenario
    from fairlane.cli.terminal import parts_of
    from fairlane.saturation import OpenLoopOptions, loads_of, opened, prepared, sweep
    from fairlane.views.kinds import view_of

    wanted = loads_of(load, loads)
    options = OpenLoopOptions(pattern, message_size, arrivals)
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    plan = prepared(loaded, wanted, replicates=replicates, options=options, duration=duration, warm_up=warm_up)
    if plan.added and not quiet:
        typer.echo("The scenario has no open-loop job: one on all hosts replaces its jobs.", err=True)
    store = opened(plan, datetime.now().astimezone(), out, resume=resume)
    found = sweep(plan, store=store, progress=not quiet).save(store)
    found.draw()
    code = code_of(store, partial=found.meta["partial"], quiet=quiet)
    return Answer(
        {"points": found.points, **found.meta, "folder": found.folder},
        parts_of(view_of([found]), found.folder),
        found.folder,
        code=code,
    )
