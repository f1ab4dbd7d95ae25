"""The agent on a cluster, and the progress of programs: agent run, undo, status, notify, progress; progress build."""

import os
import signal
import time
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, out_option
from fairlane.cli.options import AllowCode, one_of, quantity_of, refused, report
from fairlane.cluster.agent.jobs import Listener, from_environment
from fairlane.cluster.agent.jobs import notify as send
from fairlane.cluster.agent.progress import Key, Snapshot, gained, read, server
from fairlane.cluster.agent.system import AgentError, journal_of
from fairlane.core.signals import awaited_signals
from fairlane.progress.layout import build as build_libraries

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
    from fairlane.cluster.agent.agent import Agent
    from fairlane.cluster.agent.config import AgentConfig
    from fairlane.cluster.agent.control import Steered
    from fairlane.cluster.agent.journal import Journal

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
    from fairlane.cluster.agent.agent import Agent
    from fairlane.cluster.agent.config import AgentConfig
    from fairlane.cluster.agent.control import Steered
    from fairlane.cluster.agent.journal import Journal

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
    from fairlane.cluster.agent.journal import status_of, steps_of
    from fairlane.views import agent as views

    journal = journal_of(config)
    status_now = status_of(journal, last)
    if decision is not None:
        steps = [{"at": at, "state": state, "note": note} for at, state, note in steps_of(journal, decision)]
        return Answer(steps, [views.steps(decision, steps)])
    return Answer(status_now.written(), [views.status(status_now)])


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
    chosen: Any = one_of("begin|end", what, ["begin", "end"])
    event = from_environment(chosen, os.environ)
    try:
        send(socket, event, quantity_of("--wait", wait) * 1e-12)
    except AgentError as error:
        if strict:
            raise
        report(str(error))
        return Answer({"sent": False, **event})
    return Answer({"sent": True, **event})


def progress(
    directory: Annotated[
        list[Path] | None,
        Option(
            "--dir", metavar="DIR", help="A directory of pages; by default those of this user, of all users for root."
        ),
    ] = None,
    socket: Annotated[Path | None, Option("--socket", metavar="PATH", help="Ask the server at this socket.")] = None,
    serve: Annotated[bool, Option("--serve", help="Be the server at --socket, until SIGTERM or Ctrl-C.")] = False,
    group: Annotated[str | None, Option(help="A group that may ask the server, besides its owner.")] = None,
    interval: Annotated[str, Option(help="Time over which rates are measured; 0s for none.")] = "1 s",
) -> Answer:
    """Print how far the processes of jobs on this host are: job, rank, process, marks and marks per second.

    Programs mark their progress by libfairlane-progress (fairlane progress build). Root sees all users' processes; with
    --serve it passes their counts on.
    """
    from fairlane.views.agent import progress as view

    directory = [folder.resolve() for folder in directory] if directory else None
    if serve:
        return _serve(socket, directory, group)
    for option, given in (("--group", group), ("--dir", directory if socket else None)):
        if given is not None:
            raise refused(option, "is for the server: --serve" if option == "--group" else "not together with --socket")
    wait = quantity_of("--interval", interval) * 1e-12
    first = last = read(socket=socket, directories=directory)
    rates: dict[Key, float] = {}
    if wait:
        time.sleep(wait)
        last = read(socket=socket, directories=directory)
        rates = {key: marks / (last.at - first.at) for key, marks in gained(first, last).items()}
    return Answer(_progress(last, rates), [view(last, rates)])


def build(
    out: Annotated[Path, out_option("Folder for the sources and libraries.", "FOLDER")],
    cc: Annotated[str | None, Option("--cc", metavar="NAME", help="The C compiler; cc by default.")] = None,
    mpicc: Annotated[str | None, Option("--mpicc", metavar="NAME", help="MPI's C compiler; mpicc by default.")] = None,
    fc: Annotated[str | None, Option("--fc", metavar="NAME", help="The Fortran compiler; gfortran by default.")] = None,
) -> Answer:
    """Write the sources of libfairlane-progress, and build what the compilers of this machine can.

    Programs mark their progress with it: libfairlane-progress for C and Fortran, libfairlane-pmpi for MPI programs that
    cannot be changed. On another machine, copy the folder and run make in it.
    """
    libraries = build_libraries(out, CC=cc, MPICC=mpicc, FC=fc)
    lines = [
        f"{out / library.target}"
        if library.missing is None
        else f"{library.target}: not built, {library.missing} is not installed"
        for library in libraries
    ]
    return Answer(libraries, [f"sources: {out}", *lines], where=out)


def _serve(socket: Path | None, directory: list[Path] | None, group: str | None) -> Answer:
    if socket is None:
        raise refused("--serve", "needs --socket PATH")
    with awaited_signals() as wait, server(socket, directory, group):
        report(f"answers at {socket}")
        wait()
    return Answer()


def _progress(snapshot: Snapshot, rates: dict[Key, float]) -> dict[str, Any]:
    data = asdict(snapshot)
    for process in data["processes"]:
        process["rate"] = rates.get((process["job"], process["rank"]))
    return data
