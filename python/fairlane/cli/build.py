"""The simulator with plug-in crates: build."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Option

from fairlane.cli.command import Answer, Quiet, out_option
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.extension import DEFAULT_FOLDER, ENVIRONMENT, Build, active
from fairlane.inputs import crates as building


def build(
    with_: Annotated[
        list[Path] | None, Option("--with", metavar="CRATE", help="Folder of a plug-in crate; several allowed.")
    ] = None,
    without: Annotated[
        list[str] | None, Option("--without", metavar="NAME", help="Leave out a crate that is built in.")
    ] = None,
    only_list: Annotated[bool, Option("--list", help="Only list the crates that are built in.")] = False,
    sources: Annotated[
        Path | None, Option("--sources", metavar="DIR", help="Sources of fairlane; by default the checkout.")
    ] = None,
    debug: Annotated[bool, Option("--debug", help="Check conservation laws while it runs: many times slower.")] = False,
    out: Annotated[
        Path | None, out_option("Folder of the build; the variable FAIRLANE_CORE then names it.", "DIR")
    ] = None,
    quiet: Quiet = False,
) -> Answer:
    """Build the simulator with plug-in crates in Rust, which scenarios then name as what is built in.

    Crates that are built in stay, and a crate of the same name is replaced; without options all are built again, as
    after an update of fairlane. The first build takes minutes, and needs Rust and the sources of fairlane.
    """
    loaded = active()
    present = Build.read(out) if out else loaded
    folder = present.folder if present else out or DEFAULT_FOLDER
    crates = {crate.name: Path(crate.path) for crate in present.crates} if present else {}
    if only_list:
        problem = present.problem() if present else None
        return _answer(present, [] if problem is None else [str(problem)])
    for name in without or ():
        if crates.pop(name, None) is None:
            raise ScenarioError(Problem.unknown("--without", "crate", name, list(crates), name))
    if not crates and not with_:
        if not without:
            raise ScenarioError(Problem("--with", "missing: no crate is built in", allowed="the folder of a crate"))
        building.remove(folder)
        return _answer(None, [])
    tools = building.Tools.find(sources)
    plugins = {plugin.crate.name: plugin for plugin in map(tools.plugin, [*crates.values(), *(with_ or ())])}
    made = building.build(list(plugins.values()), tools, folder, debug=debug, quiet=quiet)
    found = folder in (DEFAULT_FOLDER, loaded and loaded.folder)
    return _answer(made, [] if found else [f"Use it with {ENVIRONMENT}={folder.absolute()}."])


def _answer(build: Build | None, remarks: list[str]) -> Answer:
    if build is None:
        return Answer({"crates": []}, ["no crate is built in"])
    lines = [f"{crate} ({crate.path})" for crate in build.crates]
    data = {"folder": build.folder, "debug": build.debug, "crates": [asdict(crate) for crate in build.crates]}
    return Answer({**data, "remarks": remarks}, [*lines, *remarks], folder=build.folder)
