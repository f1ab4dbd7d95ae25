"""The network benchmark GPCNeT on a simulated fabric: gpcnet."""

from datetime import datetime
from typing import Annotated

import typer
from typer import Option

from fairlane.cli.command import Answer, OutFolder, Quiet, Seed, completing
from fairlane.cli.options import AllowCode, Assignments, Resume, ScenarioFile, code_of, report


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
    from fairlane import Scenario
    from fairlane.cli.terminal import parts_of
    from fairlane.gpcnet import Options, benchmark, opened, prepared
    from fairlane.views.kinds import view_of

    options = Options(
        tuple(dict.fromkeys(transport or ())),
        ranks_per_host,
        replicates,
        iterations,
        message_size,
        window,
        warm_up,
        duration,
    )
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, allow_code=allow_code)
    plan = prepared(loaded, options)
    if not quiet:
        typer.echo("The jobs of the scenario are replaced by those of GPCNeT, on all hosts.", err=True)
        for name, reason in plan.left_out.items():
            report(f"transport {name} is left out: {reason}")
    store = opened(plan, datetime.now().astimezone(), out, resume=resume)
    found = benchmark(plan, store=store, progress=not quiet).save(store)
    found.draw()
    code = code_of(store, partial=found.meta["partial"], quiet=quiet)
    return Answer(
        {"impact": found.impact, **found.meta, "folder": found.folder},
        parts_of(view_of([found]), found.folder),
        found.folder,
        code=code,
    )
