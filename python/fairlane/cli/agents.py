"""The agent on a cluster: agent run, agent undo, agent status, agent notify."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode
from fairlane.cli.options import AllowCode, duration_of, one_of, report

if TYPE_CHECKING:
    from fairlane.agent import Status

ConfigFile = Annotated[Path, Option("--config", metavar="FILE", help="The configuration, agent.toml.")]


def run(
    config: ConfigFile,
    apply: Annotated[
        bool, Option("--apply", help="Carry settings to the network; without it everything is a dry run.")
    ] = False,
    once: Annotated[
        bool, Option("--once", help="Decide about the jobs that run now, and end when nothing is left to do.")
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Give service levels to the jobs that Slurm runs, by predictions of a digital twin; a dry run by default.

    Every decision is in the journal with its reason, and is printed. SIGTERM ends the agent after what it is at, Ctrl-C
    at once; settings stay in force, and the next start goes on with them. `fairlane agent --config FILE` is the same.
    """
    import signal

    from fairlane.agent import Agent, AgentConfig, Journal, Listener, Steered

    loaded = AgentConfig.from_file(config, allow_code=allow_code)
    slurm = loaded.slurm
    with Journal(loaded.journal) as journal, Listener(slurm.socket, slurm.socket_group) as listener:
        kind = Agent if loaded.controller is None else Steered
        agent = kind(loaded, journal, listener.events, apply=apply, report=typer.echo)
        signal.signal(signal.SIGTERM, lambda *_: agent.stop())
        agent.start()
        agent.run(once=once)
    if not once:
        report("ends; settings stay in force")
    return Answer(code=ExitCode.RUN_FAILED if once and agent.failed else ExitCode.DONE)


def undo(config: ConfigFile, allow_code: AllowCode = False) -> Answer:
    """Take back every service level that the agent has set on the network, while no agent runs."""
    from queue import SimpleQueue

    from fairlane.agent import Agent, AgentConfig, Journal, Steered

    loaded = AgentConfig.from_file(config, allow_code=allow_code)
    with Journal(loaded.journal) as journal:
        kind = Agent if loaded.controller is None else Steered
        kind(loaded, journal, SimpleQueue(), apply=True, report=typer.echo).withdraw()
    return Answer()


def status(
    config: ConfigFile,
    last: Annotated[int, Option(min=1, help="Number of decisions, the latest first.")] = 10,
    decision: Annotated[int | None, Option(min=1, help="Print the steps of this decision.")] = None,
) -> Answer:
    """Print whether an agent runs, its jobs and their service levels, and the last decisions."""
    from fairlane.agent import status_of, steps_of
    from fairlane.agent.paths import journal_of
    from fairlane.cli.terminal import parts_of
    from fairlane.views import agent as views

    journal = journal_of(config)
    found = status_of(journal, last)
    if decision is not None:
        steps = [{"at": at, "state": state, "note": note} for at, state, note in steps_of(journal, decision)]
        return Answer(steps, [views.steps(decision, steps)])
    return Answer(_data(found), parts_of(views.status(found), None))


def notify(
    what: Annotated[str, Argument(metavar="begin|end", help="Whether the job begins or ends.")],
    socket: Annotated[Path, Option("--socket", metavar="PATH", help="The agent's socket: slurm.socket of agent.toml.")],
    strict: Annotated[
        bool, Option("--strict", help="End with an error if no agent answers; else the job is not held up.")
    ] = False,
    wait: Annotated[
        str, Option(help="How long to wait for the agent; the job starts that much later if it hangs.")
    ] = "10 s",
) -> Answer:
    """Report to the agent that a job begins or ends; for PrologSlurmctld and EpilogSlurmctld.

    The job is that of the variables SLURM_JOB_ID, SLURM_JOB_NODELIST, SLURM_JOB_NAME, SLURM_JOB_ACCOUNT,
    SLURM_JOB_PARTITION and SLURM_JOB_USER. Slurm holds or requeues a job whose prolog fails, so without --strict the
    exit code is 0 even if no agent answers; it finds the job by squeue then.
    """
    from fairlane.agent.errors import AgentError
    from fairlane.agent.events import from_environment
    from fairlane.agent.events import notify as send

    chosen: Any = one_of("begin|end", what, ["begin", "end"])
    event = from_environment(chosen, os.environ)
    try:
        send(socket, event, duration_of("--wait", wait) * 1e-12)
    except AgentError as error:
        if strict:
            raise
        report(str(error))
        return Answer({"sent": False, **event})
    return Answer({"sent": True, **event})


def _data(found: "Status") -> dict[str, Any]:
    return {
        "runs": found.runs,
        "pid": found.pid if found.runs else None,
        "backend": found.backend,
        "started": found.started,
        "at": found.at,
        "doing": found.doing,
        "jobs": [job.written() for job in found.jobs.values()],
        "settings": [one.written() for one in found.settings],
        "decisions": [entry.written() for entry in found.decisions],
    }
