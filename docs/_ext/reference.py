"""Writes the reference pages from the code itself: nothing on them is kept by hand.

Sources: the scenario's JSON schema (``fairlane schema``), the simulator's tables of named things
and the registries (``fairlane list``), the help of the command line, and the public names of the Python modules.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import schema

from fairlane.inputs.parameters import BUILT_IN
from fairlane.views.names import anchor, title

PLACES = {
    "topologies": "`fabric.topology`",
    "routings": "`fabric.routing`",
    "arbiters": "`qos.arbiter`",
    "switches": "`network.switch`",
    "switch_allocators": "`network.switch.allocator` of the architecture `input_queued`",
    "transports": "`network.transport`",
    "faults": "`kind` of a `[[fault]]`",
    "collectives": "`mpi.collectives`, by operation",
    "workloads": "`workload` of a job",
    "imbalances": "`imbalance` of a workload",
    "patterns": "`pattern` of the workload `open_loop`",
    "placements": "`placement`, of a scenario or a job",
    "mappings": "`placement.mapping`",
    "strategies": "`qos.strategy`",
    "models": "`model`, of a scenario",
    "controllers": "`controller` of a study's treatment, and `fairlane control --controller`",
    "allocators": "`fairlane schedule --allocator`, which takes every placement, too",
    "figures": "`fairlane plot --figure`",
    "papers": "`fairlane reproduce`",
    "backends": "`backend` of an agent's configuration",
}
"""Where the names of each kind are used."""
DESCRIBED_HERE = ("controllers", "allocators", "backends")
"""Kinds whose parameters no scenario file has."""


def fairlane(*arguments: str) -> str:
    """What the command line prints to standard output, without colours, 100 columns wide."""
    command = [str(Path(sys.executable).parent / "fairlane"), *arguments]
    environment = os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def scenario_page(document: schema.Schema) -> str:
    """The page about scenario files."""
    return (
        "# Scenario files\n\n"
        "A scenario is a TOML file with the keys below; `fairlane check FILE` reads one and reports all "
        'errors. Quantities are strings with a unit, as `"3.2 GB/s"`, `"4 KiB"` or `"100 ns"`.\n\n'
        f"## The file\n\n{schema.markdown(document)}"
    )


AGENT_TABLES = ("SlurmTable", "ProgressTable", "Profile", "PolicyTable", "TwinTable")
"""Tables of an agent's configuration that scenarios do not have."""


def agent_page() -> str:
    """The page about ``agent.toml``; tables that scenarios have, too, are described with these."""
    document = importlib.import_module("fairlane.cluster.agent.config").AgentConfig.model_json_schema()
    definitions = document["$defs"]
    parts = ["# Configuration of an agent\n\nThe keys of `agent.toml`; [](../../agent.md) has an example.\n"]
    parts += [f"## The file\n\n{schema.keys(document, definitions)}"]
    parts += [f"## {title(name)}\n\n{schema.definition(definitions[name], 2, definitions)}" for name in AGENT_TABLES]
    text = "\n".join(parts)
    for name in set(definitions) - set(AGENT_TABLES):
        named = name in ("Backend", "Controller")
        page = f"names.md#{name.lower()}s" if named else f"scenario.md#{anchor(title(name))}"
        text = text.replace(f"](#{anchor(title(name))})", f"]({page})")
    return text


def campaign_page() -> str:
    """The page about ``campaign.toml``; keys of a parameter that only papers have are left out."""
    document = importlib.import_module("fairlane.papers.campaign.file").CampaignFile.model_json_schema()
    for name in ("CampaignParameter", "Effect"):
        for key in ("set", "rules", "of"):
            del document["$defs"][name]["properties"][key]
    document["$defs"]["Effect"]["description"] = "What a level of a parameter sets."
    return (
        "# Campaign files\n\nThe keys of `campaign.toml`; [](../../campaigns.md) has an example.\n\n"
        f"## The file\n\n{schema.markdown(document)}"
    )


def study_page() -> str:
    """The page about study files; tables that scenarios have, too, are described with these."""
    treatments = importlib.import_module("fairlane.study.treatments")
    document = importlib.import_module("fairlane.study.table").StudyTable.model_json_schema()
    definitions = document["$defs"]
    definitions["Treatment"]["description"] = "A change of the default run."
    parts = [schema.keys(document, definitions)]
    names = [name for name in definitions if name not in ("Placement", "Mapping")]
    parts += [f"## {title(name)}\n\n{schema.definition(definitions[name], 2, definitions)}" for name in names]
    text = "\n".join(parts).replace("](#placement)", "](scenario.md#placement)")
    for kind in treatments.KINDS:
        if kind.key != "set":
            own = kind.model_json_schema()
            text += f"\n## Treatment with `{kind.key}`\n\n{own['description']}\n\n"
            text += schema.keys(own, own.get("$defs", {}))
    return (
        "# Study files\n\nThe keys of a study; [](../../studies.md) has examples. A path in the scenario, as "
        f'`"jobs[0].service_level"`, names a key that a study sets.\n\n## The file\n\n{text}'
    )


def paper_page() -> str:
    """The page about the files in the folder of a paper."""
    folder, space = (importlib.import_module(f"fairlane.papers.{name}") for name in ("folder", "space"))
    tables = {
        "paper.toml": folder.PaperTable,
        "claims.toml": folder.ClaimsTable,
        "figures.toml": folder.FiguresTable,
        "robustness.toml": space.Space,
    }
    documents = {file: table.model_json_schema() for file, table in tables.items()}
    definitions = {name: one for document in documents.values() for name, one in document["$defs"].items()}
    parts = ["# Folders of papers\n\nThe keys of their files; [](../../reproduction/folders.md) has an example.\n"]
    parts += [f"## `{file}`\n\n{schema.keys(document, definitions)}" for file, document in documents.items()]
    parts += [f"## {title(name)}\n\n{schema.definition(one, 2, definitions)}" for name, one in definitions.items()]
    return "\n".join(parts)


UNITS = {"_ps": "picoseconds", "_s": "seconds", "_bps": "bits per second", "_w": "watts", "_j": "joules"}
"""Units by the end of a column's name."""


def tables_page() -> str:
    """The page of the tables of runs and studies. Raises ``ValueError`` if texts and tables do not agree."""
    schemas = importlib.import_module("fairlane.results.schemas")
    texts = tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8"))
    known: set[str] = set()
    parts = [
        "# Tables\n\nThe tables of a [run](../../results.md) and of a [study](../../studies.md), Parquet files in its "
        "folder. A column is described where it is met first. Columns with `_low` and `_high`, at the end or before "
        "the unit, are the [95% interval](../../model.md#uncertainty) of the column of that name.\n"
    ]
    kinds = {"run": (schemas.RUN, schemas.SCHEMA_VERSION), "study": (schemas.STUDY, schemas.STUDY_SCHEMA_VERSION)}
    for kind, (tables, version) in kinds.items():
        if set(texts[kind]) != set(tables):
            raise ValueError(f"tables.toml: [{kind}] must describe {sorted(set(texts[kind]) ^ set(tables))}")
        parts.append(f"## Tables of a {kind}\n\nSchema version {version}.\n")
        for name, columns in tables.items():
            heading = f"### `{name}`" if kind == "run" else f"### `{name}` of a study"
            parts.append(f"{heading}\n\n{texts[kind][name][0].upper()}{texts[kind][name][1:]}.\n")
            parts.append("| column | value | meaning |\n|---|---|---|")
            for column, value in columns.items():
                if not re.search("_(low|high)(_p?s)?$", column):
                    described = "" if column in known else texts["columns"].get(column, "")
                    parts.append(f"| `{column}` | {_value(column, value, schemas)} | {described} |")
                known.add(column)
            parts.append("")
    if unknown := set(texts["columns"]) - known:
        raise ValueError(f"tables.toml: [columns] has columns that no table has: {sorted(unknown)}")
    return "\n".join(parts)


def _value(column: str, value: Any, schemas: Any) -> str:
    """Unit or type of a column, and whether its cells may be empty."""
    optional = isinstance(value, schemas.Optional)
    kind = value.type if optional else value
    if "seconds_per_" in column:
        return "seconds, or empty"
    names = {"String": "text", "Boolean": "true or false", "Float64": "number"}
    unit = next((words for end, words in UNITS.items() if column.endswith(end)), names.get(str(kind), "integer"))
    return f"{unit}, or empty" if optional else unit


def names_page() -> str:
    """The page of everything that has a name, from the tables of the simulator and the registries."""
    listing = importlib.import_module("fairlane.cli.registries")
    parts = [
        "# Names\n\nEverything that inputs can name. `fairlane list` prints the same, `fairlane list KIND NAME` the "
        "parameters, which are described with [scenario files](scenario.md) unless they are given here. "
        "[Plug-ins](../../plugins.md) add names.\n"
    ]
    placements = listing.entries_of("placements")
    for kind in listing.KINDS:
        entries = {
            name: entry
            for name, entry in listing.entries_of(kind).items()
            if kind != "allocators" or name not in placements
        }
        parts.append(f"## {kind.capitalize()}\n\nIn {PLACES[kind]}.\n")
        if entries:
            parts.append("| name | what it is |\n|---|---|")
        for name, entry in entries.items():
            origin = "" if entry.origin == BUILT_IN else f" ({entry.origin})"
            parts.append(f"| {' '.join(f'`{word}`' for word in name.split())} | {schema.cell(entry.summary)}{origin} |")
        if kind in DESCRIBED_HERE:
            parts += [f"\n### `{name}`\n\n{schema.markdown(one.schema, 4)}" for name, one in entries.items()]
        parts.append("")
    return "\n".join(parts)


HELP: dict[str, Any] = {"resilient_parsing": True, "help_option_names": ["-h", "--help"]}
"""How the parameters of a command are read, and none of its arguments."""


def root() -> Any:
    """The whole command line, with the parameters of all commands."""
    found = importlib.import_module("fairlane.cli.main").command()
    for words, one in commands(found):
        one.make_context(" ".join(words), [], **HELP)
    return found


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and everything below it, each with the words that call it."""
    words = (*path, command.name) if path else ("fairlane",)
    yield words, command
    for below in getattr(command, "commands", {}).values():
        yield from commands(below, *words)


def command_page(words: tuple[str, ...], command: Any) -> str:
    """The page of one command, which is its man page too: synopsis, description, arguments, options, commands below."""
    context = command.make_context(" ".join(words), [], **HELP)
    synopsis = " ".join([*words, *command.collect_usage_pieces(context)])
    description = inspect.cleandoc(command.help or "").replace("\f", "")
    parts = [f"# {' '.join(words)}\n\n## Synopsis\n\n```text\n{synopsis}\n```\n\n## Description\n\n{description}\n"]
    records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(context):
        heading = "Arguments" if parameter.param_type_name == "argument" else "Options"
        if record := parameter.get_help_record(context):
            records[heading].append(record)
    below = getattr(command, "commands", {})
    records["Commands"] = [
        (" ".join([*words, name]), (one.help or "").strip().partition("\n")[0]) for name, one in below.items()
    ]
    for heading, rows in records.items():
        if rows:
            listed = "\n".join(f"`{name}`\n: {' '.join(text.split()) or '-'}\n" for name, text in rows)
            parts.append(f"## {heading}\n\n{listed}")
    return "\n".join(parts)


def command_line_page(pages: Collection[str]) -> str:
    """The page that leads to those of all commands."""
    listed = "\n".join(pages)
    words = (
        "Every command has `--help` (`-h`), `--out` (`-o`), `--json` and `--quiet` (`-q`), and `--seed` where it draws "
        "random numbers. Where `--out` takes what is printed, tables become a page if the file is `.html`. Results go "
        "to standard output, progress and errors to standard error. Ctrl-C stops a run within a second; its results "
        "until then are kept and marked as partial. Exit codes: 0 done, 1 a run failed or a check does not hold, 2 "
        "wrong input, 3 disk full, 130 interrupted. `fairlane --install-completion` sets up "
        "completion for the shell; `make man` writes these pages as man pages."
    )
    return f"# Command line\n\n{words}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def man_pages() -> Iterator[tuple[str, str, str]]:
    """Source, name and description of every man page."""
    for words, command in commands(root()):
        name = "-".join(words)
        yield f"commands/{name}", name, (command.help or "").strip().partition("\n")[0].rstrip(".")


INTERNAL = {
    "cli",
    "core.bridge",
    "core.otf2_child",
    "inputs",
    "study.treatments",
    "views.analysis",
    "views.drawing",
    "views.run",
    "views.vegalite",
}
"""Rooms and modules that nobody imports from outside."""


def public_modules() -> Iterator[str]:
    """The package, its rooms and the modules directly in them; what is deeper is how they are made."""
    package = importlib.import_module("fairlane")
    yield package.__name__
    for room in sorted(module.name for module in pkgutil.iter_modules(package.__path__)):
        if room.startswith("_") or room in INTERNAL:
            continue
        yield f"fairlane.{room}"
        path = importlib.import_module(f"fairlane.{room}").__path__
        names = sorted(f"{room}.{module.name}" for module in pkgutil.iter_modules(path))
        yield from (f"fairlane.{name}" for name in names if name not in INTERNAL)


def python_pages(tables: Collection[str]) -> Iterator[tuple[str, str]]:
    """File name and text of a page for each module that declares public names.

    A name stands on one page only: that of the first module that offers it, the package itself before its modules.
    The classes called as one of ``tables`` hold what stands in a scenario file, and their keys are described there.
    """
    seen: set[int] = set()
    names = []
    for name in public_modules():
        module = importlib.import_module(name)
        offered = [public for public in getattr(module, "__all__", ()) if not public.startswith("_")]
        fresh = [public for public in offered if id(getattr(module, public)) not in seen]
        seen |= {id(getattr(module, public)) for public in fresh}
        if fresh:
            members = [public for public in fresh if public not in tables]
            names.append(name)
            yield f"python/{name}.md", python_page(name, members, [public for public in fresh if public in tables])
    yield "python/index.md", python_index(names)


def python_index(names: Collection[str]) -> str:
    """The page that leads to those of the modules, with what each is for."""
    rows = "\n".join(f"| [{name}]({name}.md) | {_summary(name)} |" for name in names)
    listed = "\n".join(names)
    return (
        "# Python\n\nThe package and its modules. A name is described on the page of the first module that offers it.\n"
        "\n"
        f"| module | what it is for |\n|---|---|\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )


def _summary(module: str) -> str:
    """The first sentence of a module's documentation."""
    text = (importlib.import_module(module).__doc__ or "").partition("\n\n")[0]
    return " ".join(text.replace("``", "`").split())


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
    yield "names.md", names_page()
    yield "agent.md", agent_page()
    yield "campaign.md", campaign_page()
    yield "study.md", study_page()
    yield "paper.md", paper_page()
    yield "tables.md", tables_page()
    found = {f"commands/{'-'.join(words)}": command_page(words, command) for words, command in commands(root())}
    yield "command-line.md", command_line_page(found)
    yield from ((f"{name}.md", text) for name, text in found.items())
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
