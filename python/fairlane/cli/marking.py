"""Progress of real programs: progress build, agent progress."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import duration_of, refused, report

if TYPE_CHECKING:
    from fairlane.agent.progress import Key, Snapshot


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
    from fairlane.progress.build import build as build_libraries

    libraries = build_libraries(out, CC=cc, MPICC=mpicc, FC=fc)
    lines = [
        f"{out / one.target}" if one.missing is None else f"{one.target}: not built, {one.missing} is not installed"
        for one in libraries
    ]
    return Answer(libraries, [f"sources: {out}", *lines], where=out)


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
    import time

    from fairlane.agent.progress import gained, read
    from fairlane.cli.terminal import parts_of
    from fairlane.views.agent import progress as view

    directory = [one.resolve() for one in directory] if directory else None
    if serve:
        return _serve(socket, directory, group)
    for option, given in (("--group", group), ("--dir", directory if socket else None)):
        if given is not None:
            raise refused(option, "is for the server: --serve" if option == "--group" else "not together with --socket")
    wait = duration_of("--interval", interval) * 1e-12
    first = last = read(socket=socket, directories=directory)
    rates: dict[Key, float] = {}
    if wait:
        time.sleep(wait)
        last = read(socket=socket, directories=directory)
        rates = {key: marks / (last.at - first.at) for key, marks in gained(first, last).items()}
    return Answer(_data(last, rates), parts_of(view(last, rates), None))


def _serve(socket: Path | None, directory: list[Path] | None, group: str | None) -> Answer:
    from fairlane.agent.progress import server
    from fairlane.signals import awaited_signals

    if socket is None:
        raise refused("--serve", "needs --socket PATH")
    with awaited_signals() as wait, server(socket, directory, group):
        report(f"answers at {socket}")
        wait()
    return Answer()


def _data(found: "Snapshot", rates: "dict[Key, float]") -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(found)
    for one in data["processes"]:
        one["rate"] = rates.get((one["job"], one["rank"]))
    return data
