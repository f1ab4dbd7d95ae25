"""Which cables and switches a fabric depends on: cables."""

from datetime import datetime
from typing import Annotated

from typer import Option

from fairlane.cli.command import Answer, OutFolder, Quiet, Seed
from fairlane.cli.options import AllowCode, Assignments, Resume, ScenarioFile, code_of


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
    from fairlane import Scenario
    from fairlane.cables import Options, opened, prepared, survey
    from fairlane.cli.terminal import parts_of
    from fairlane.views.cables import view

    options = Options(at, switches, hosts, tuple(cable or ()), pairs, replicates)
    loaded = Scenario.load(scenario, set=assignments or (), seed=seed, duration=duration, allow_code=allow_code)
    plan = prepared(loaded, options)
    store = opened(plan, datetime.now().astimezone(), out, resume=resume)
    found = survey(plan, store=store, progress=not quiet).save(store)
    found.draw()
    code = code_of(store, partial=found.meta["partial"], quiet=quiet)
    return Answer(
        {"ranking": found.ranking, "slowdowns": found.slowdowns, **found.meta, "folder": found.folder},
        parts_of(view({"": found}, top), found.folder),
        found.folder,
        code=code,
    )
