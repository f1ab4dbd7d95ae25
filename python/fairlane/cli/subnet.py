"""A real subnet manager reads exported settings: sm check."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, ExitCode, completing, write_text
from fairlane.cli.exchanging import resolved_of, write_folder
from fairlane.cli.options import AllowCode, Assignments, duration_of, fresh, one_of, refused, report
from fairlane.signals import exit_on_sigterm, temporary_folder
from fairlane.wording import plural, seconds

if TYPE_CHECKING:
    from fairlane.cli.terminal import Part
    from fairlane.opensm.check import Checked

_SHOWN = 40  # differences that are printed; --json has all
_EXPORTED = "exported"  # folder of what is exported from a scenario


def check_subnet(
    source: Annotated[
        Path,
        Argument(
            metavar="SCENARIO|DIR", help="A scenario (.toml), the folder of a run, or one that qos export has written."
        ),
    ],
    assignments: Assignments = None,
    engine: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Routing engine of OpenSM, e.g. ftree; by default it loads the forwarding tables of the simulator.",
            autocompletion=completing("fairlane.opensm.check:ENGINES"),
        ),
    ] = None,
    routes_out: Annotated[
        Path | None,
        Option("--routes-out", metavar="FILE", help="Write OpenSM's forwarding tables for fabric import --tables."),
    ] = None,
    guids: Annotated[
        Path | None,
        Option(metavar="DUMP", help="GUIDs and LIDs of the fabric: output of ibnetdiscover, or fabric import's file."),
    ] = None,
    pairs: Annotated[
        int | None,
        Option(min=1, metavar="NUMBER", help="Path records to read at most, evenly spaced; by default 20,000."),
    ] = None,
    timeout: Annotated[str, Option(help="How long OpenSM may take to set up the subnet.")] = "30 min",
    keep: Annotated[
        Path | None, Option(metavar="DIR", help="A new or empty folder for the files and logs of ibsim and OpenSM.")
    ] = None,
    revert: Annotated[
        bool, Option("--revert", help="At the end revert the settings as revert/ does, and read the ports again.")
    ] = False,
    approximate: Annotated[
        bool, Option("--approximate", help="Approximate what a cluster cannot do, as qos export does.")
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Have a real OpenSM read exported QoS settings, read back what it sets in every port, and compare.

    The subnet is simulated by ibsim. Compared are the shares of links, the tables of VL arbitration, SL2VL, service
    levels of path records and forwarding tables; the exit code is 1 if one differs.
    For example: fairlane sm check two-jobs.toml
    """
    from fairlane.opensm.check import ENGINES, PAIRS, check, find_programs

    if engine is not None:
        one_of("--engine", engine, ENGINES)
    limit = duration_of("--timeout", timeout) * 1e-12
    if keep is not None:
        fresh(keep, "--keep")
    find_programs()
    with _folder(keep) as folder:
        if (source / "opensm.conf").exists():
            given = {"--set": assignments, "--guids": guids, "--approximate": approximate, "--allow-code": allow_code}
            if option := next((option for option, value in given.items() if value), None):
                raise refused(option, "the folder has exported settings already", str(source), "with a scenario")
            exported = source.absolute()
        else:
            exported = folder / _EXPORTED
            _export(source, exported, assignments, guids, approximate=approximate, allow_code=allow_code)
        found = check(exported, folder, engine=engine, pairs=pairs or PAIRS, timeout_s=limit, revert=revert)
    for note in found.notes:
        report(note)
    if routes_out is not None:
        write_text(routes_out, found.routes)
    data = {
        "equal": not found.differences,
        "compared": found.counts,
        "differences": found.differences,
        "notes": found.notes,
        "routing_engine": found.engine,
        "up_s": found.up_s,
        "read_s": found.read_s,
        "routes": routes_out,
    }
    code = ExitCode.RUN_FAILED if found.differences else ExitCode.DONE
    return Answer(data, _lines(found), files=[routes_out] if routes_out else [], code=code)


def _lines(found: "Checked") -> Iterator["Part"]:
    from fairlane.views.tables import Column, Table, columns

    words = plural(len(found.differences), "difference") if found.differences else "all equal"
    yield words
    rows = [{"what": what, "count": count} for what, count in found.counts.items()]
    yield Table([Column("compared", "what"), Column("number", "count")], rows)
    loaded = ", which has loaded the tables of the simulator" if found.engine == "file" else ""
    yield f"routing engine: {found.engine}{loaded}"
    yield f"subnet up after {seconds(found.up_s)}, read back in {seconds(found.read_s)}"
    if found.differences:
        shown = [vars(one) for one in found.differences[:_SHOWN]]
        left = len(found.differences) - len(shown)
        note = f"{left:,} more differences: --json has all." if left else ""
        headings = columns(
            node="node", port="port", what="what", expected="expected", found="found", cause="due to", effect="effect"
        )
        yield Table([Column(one.header, one.value, left=True) for one in headings], shown, "Differences", note)


def _export(
    source: Path,
    folder: Path,
    assignments: list[str] | None,
    guids: Path | None,
    *,
    approximate: bool,
    allow_code: bool,
) -> None:
    """What ``fairlane qos export`` writes, for lanes that simulated ports have."""
    from fairlane.fabric import read_wiring
    from fairlane.opensm import export
    from fairlane.opensm.check import check_lanes

    found = export(
        resolved_of(source, assignments, allow_code=allow_code),
        approximate=approximate,
        dump=read_wiring(guids) if guids else None,
    )
    check_lanes(found.settings, "qos.sl2vl")
    for note in found.notes:
        report(note)
    write_folder(folder, found.files, "--keep")


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The folder of all files; SIGTERM ends the command as an error does, with its processes and temporary files."""
    with exit_on_sigterm():
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            yield keep.absolute()
        else:
            with temporary_folder("fairlane-sm-") as made:
                yield made
