"""Writes the reference pages from the code itself: nothing on them is kept by hand.

Sources: the scenario's JSON schema (``fairlane schema``), the simulator's tables of named things
(``_core.tables()``), the help of the command line, and the public names of the Python modules.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import schema
import typer.main

TABLES = {
    "topology": ("Topologies", "`fabric.topology`"),
    "routing": ("Routings", "`fabric.routing`"),
    "arbiter": ("Arbiters", "`qos.arbiter`"),
    "collective": ("Collective algorithms", "`mpi.collectives`, by operation"),
}
"""For each of the simulator's tables: its heading, and where a scenario names its entries."""


def fairlane(*arguments: str) -> str:
    """What the command line prints to standard output, without colours, 100 columns wide."""
    command = [str(Path(sys.executable).parent / "fairlane"), *arguments]
    environment = os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def scenario_page(document: schema.Schema) -> str:
    """The page about scenario files."""
    return (
        "# Scenario files\n\n"
        "A scenario is a TOML file with the keys below; `fairlane check FILE` reads one and says what is wrong with "
        'it. Quantities are strings with a unit, as `"3.2 GB/s"`, `"4 KiB"` or `"100 ns"`.\n\n'
        f"## The file\n\n{schema.markdown(document)}"
    )


def names_page(tables: Mapping[str, Any]) -> str:
    """The page of everything in the simulator that has a name; parameters are on the page about scenario files."""
    parts = [
        "# Names\n\nWhat the simulator knows by name. Parameters are described with [scenario files](scenario.md); "
        "`fairlane list` prints the workloads and placements too.\n"
    ]
    for table, (heading, place) in TABLES.items():
        parts.append(f"## {heading}\n\nIn {place}.\n\n| name | what it is |\n|---|---|")
        for entry in tables[table]:
            name = " ".join(f"`{entry[key]}`" for key in ("kind", "name") if key in entry)
            parts.append(f"| {name} | {schema.cell(entry['summary'])} |")
        parts.append("")
    return "\n".join(parts)


def command_sections(command: Any, *path: str) -> Iterator[str]:
    """The help of a command and of everything below it, each with a heading."""
    text = fairlane(*path, "--help").strip()
    yield f"{'#' * (len(path) + 2)} `{' '.join(['fairlane', *path])}`\n\n```text\n{text}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from command_sections(below, *path, name)


INTERNAL = {"cli", "inputs"}
"""Modules of the package that nobody imports from outside."""


def public_modules() -> Iterator[str]:
    """The package and the modules directly in it that are meant to be imported; what is deeper is how they are made."""
    package = importlib.import_module("fairlane")
    yield package.__name__
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        if not module.name.startswith("_") and module.name not in INTERNAL:
            yield f"fairlane.{module.name}"


def python_pages(tables: Collection[str]) -> Iterator[tuple[str, str]]:
    """File name and text of a page for each module that declares public names.

    A name stands on one page only: that of the first module that offers it, the package itself before its modules.
    The classes called as one of ``tables`` hold what stands in a scenario file, and their keys are described there.
    """
    seen: set[int] = set()
    for name in public_modules():
        module = importlib.import_module(name)
        offered = [public for public in getattr(module, "__all__", ()) if not public.startswith("_")]
        fresh = [public for public in offered if id(getattr(module, public)) not in seen]
        seen |= {id(getattr(module, public)) for public in fresh}
        if fresh:
            members = [public for public in fresh if public not in tables]
            yield f"python/{name}.md", python_page(name, members, [public for public in fresh if public in tables])


def python_page(module: str, names: list[str], tables: list[str]) -> str:
    """The page of one module: ``names`` with all their members, then ``tables``."""
    page = (
        f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members: {', '.join(names)}\n"
        "   :imported-members:\n```\n"
    )
    if tables:
        classes = "\n\n".join(f".. autoclass:: {module}.{name}" for name in tables)
        page += (
            "\n## Tables of a scenario\n\nThe keys of these classes are those of [scenario files](../scenario.md).\n"
            f"\n```{{eval-rst}}\n{classes}\n```\n"
        )
    return page


def pages() -> Iterator[tuple[str, str]]:
    """File name and text of every generated page."""
    scenario = json.loads(fairlane("schema"))
    yield "scenario.md", scenario_page(scenario)
    yield "names.md", names_page(json.loads(importlib.import_module("fairlane._core").tables()))
    cli = importlib.import_module("fairlane.cli.main")
    commands = "\n".join(command_sections(typer.main.get_command(cli.app)))
    yield "command-line.md", f"# Command line\n\n{commands}"
    yield from python_pages(scenario["$defs"])


def write(folder: Path) -> None:
    """Writes every page into ``folder``; pages that have not changed keep their time stamp, others' pages go."""
    written = set()
    for name, text in pages():
        path = folder / name
        written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.rglob("*.md")) - written:
        path.unlink()
