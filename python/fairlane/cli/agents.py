"""The agent on a cluster: agent run, agent undo, agent status, agent notify."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode
from fairlane.cli.options import AllowCode, duration_of, one_of, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlane.agent import Entry, Status
    from fairlane.cli.terminal import Part

ConfigFile = Annotated[Path, Option("--config", metavar="FILE", help="The configuration, agent.toml.")]
_TIME = "%Y-%m-%d %H:%M:%S"


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

    journal = journal_of(config)
    found = status_of(journal, last)
    if decision is not None:
        steps = [{"at": at, "state": state, "note": note} for at, state, note in steps_of(journal, decision)]
        return Answer(steps, _steps_text(decision, steps))
    return Answer(_data(found), _status_text(found))


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


def _status_text(found: "Status") -> "Iterator[Part]":
    from fairlane.slurm import shortened
    from fairlane.views.tables import Column, Table, columns

    yield f"agent: {_state(found)}; backend {found.backend or 'none yet'}"
    levels: dict[str, list[str]] = {}
    for one in (setting for setting in found.settings if setting.hosts):
        levels.setdefault(one.job, []).append(str(one.level) if one.rank is None else f"{one.rank}: {one.level}")
    rows = [
        {**job.written(), "nodes": shortened(job.nodes, 40), "level": ", ".join(levels.get(job.id, ())) or None}
        for job in found.jobs.values()
    ]
    shown = columns(id="job", name="name", account="account", partition="partition", nodes="nodes", level="level")
    yield Table(shown, rows, "Jobs", "–: the default level." if rows else "No job is known.")
    decisions = [_row(entry) for entry in found.decisions]
    heads = columns(id="no.", at="at", kind="kind", state="state", settings="settings", gain="predicted gain")
    reason = Column("reason", "reason", left=True, wrap=True, width=60)
    yield Table([*heads, reason], decisions, "Decisions", "±: 95% interval over replicates of the twin.")


def _state(found: "Status") -> str:
    if found.runs:
        return f"runs as process {found.pid} since {_when(found.started)}; {found.doing}"
    return "does not run" + (f"; at {_when(found.at)} it said: {found.doing}" if found.at else "")


def _row(entry: "Entry") -> dict[str, Any]:
    from fairlane.agent.decision import change_in_words

    named = (
        (one.job if one.rank is None else f"{one.job}.{one.rank}", one.level) for one in entry.settings if one.hosts
    )
    levels = ", ".join(f"{name}: {level}" for name, level in named) or "none"
    gain = None if entry.gain is None else change_in_words(entry.gain)
    reason = f"{entry.reason}; {entry.error}" if entry.error else entry.reason
    state = f"{entry.state} (dry run)" if entry.backend == "dry_run" else entry.state
    found = {"id": entry.id, "at": _when(entry.at), "kind": entry.kind, "state": state}
    return found | {"settings": levels, "gain": gain, "reason": reason}


def _steps_text(decision: int, steps: list[dict[str, Any]]) -> "Iterator[Part]":
    from fairlane.views.tables import Column, Table, columns

    rows = [{**step, "at": _when(step["at"])} for step in steps]
    note = Column("note", "note", left=True, wrap=True)
    yield Table([*columns(at="at", state="state"), note], rows, f"Decision {decision}")


def _when(at: float | None) -> str:
    from datetime import datetime

    return "–" if at is None else datetime.fromtimestamp(at).astimezone().strftime(_TIME)
