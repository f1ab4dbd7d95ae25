"""What the pages say agrees with the program: commands, options, names, defaults, and what is said to be left out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
import reference

import fairlane
from fairlane.cli.registries import entries_of
from fairlane.inputs.parameters import BUILT_IN, entries
from fairlane.model.fabric.view import Fabric
from fairlane.model.qos import STRATEGIES
from fairlane.model.scenario import schema
from pages import ROOT, Shown, command_lines, inline, names, pages, table

COMMANDS = {" ".join(words[1:]): command for words, command in reference.commands(reference.root())}
TABLES = {
    "topologies": ("docs/fabrics.md", "topology", "default routing"),
    "workloads": ("docs/workloads.md", "workload", "pattern"),
    "strategies": ("docs/qos.md", "strategy", "arbiter"),
    "transports": ("docs/congestion-control.md", "transport", "switches"),
    "faults": ("docs/faults.md", "kind", "what happens"),
    "switches": ("docs/switches.md", "architecture", "packets wait"),
}
"""Where all names of a kind are listed, and columns of the table."""


def parse(words: list[str]) -> None:
    """Parse a command line as the program does, without running it."""
    command, rest, above = reference.root(), list(words), None
    name = "fairlane"
    while True:
        context = command.make_context(name, rest, parent=above)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not hasattr(command, "commands") or not rest:
            return
        name, command, rest = command.resolve_command(context, rest)
        above = context


COMMAND_LINES = [one for one in command_lines() if one[1] not in ([], ["--version"])]


@pytest.mark.parametrize("words", [pytest.param(words, id=shown.place) for shown, words in COMMAND_LINES])
def test_every_command_line_is_one(words: list[str]) -> None:
    parse(words)


def test_command_lines_are_found() -> None:
    assert len(COMMAND_LINES) > 100
    with pytest.raises(Exception, match="No such option"):
        parse(["run", "x.toml", "--no-such-option"])


def test_options_within_sentences_exist() -> None:
    wrong = []
    for shown in inline():
        words = shown.text.split()
        if words[:1] != ["fairlane"] or len(words) == 1:
            continue
        name = next((one for end in (3, 2) if (one := " ".join(words[1:end])) in COMMANDS), "")
        below = [command for one, command in COMMANDS.items() if f"{one} ".startswith(f"{name} ")] if name else []
        known = {option for command in below or COMMANDS.values() for one in command.params for option in one.opts}
        options = {found[0] for word in words if (found := re.match(r"--?[a-z][\w-]*", word))}
        if not (name or words[1].startswith("-")) or options - known - {"-h", "--help"}:
            wrong.append(f"{shown.place}: {shown.text}")
    assert wrong == []


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_all_names_has_all(kind: str) -> None:
    page, column, *others = TABLES[kind]
    listed = {name for row in table(page, column, *others) for name in names(row[column])}
    known = {name for name, entry in entries_of(kind).items() if entry.origin == BUILT_IN}
    assert listed == known


def test_every_routing_is_described() -> None:
    text = dict(pages())["docs/fabrics.md"].partition("\n## Routing\n")[2].partition("\n### ")[0]
    described = {name for line in re.findall(r"^- ([^:]*):", text, re.MULTILINE) for name in names(line)}
    assert described == set(entries("routing"))


def test_topologies_have_the_default_routing_of_the_table() -> None:
    for row in table("docs/fabrics.md", "topology", "default routing"):
        (topology,), (routing,) = names(row["topology"]), names(row["default routing"])
        assert entries("topology")[topology].routing == routing, topology


FABRICS: dict[str, dict[str, Any]] = {
    "dragonfly": {"groups": 9, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2},
    "Cascade": {"topology": "cascade", "columns": 4, "groups": 4, "hosts_per_switch": 2, "rows": 3},
    "Dragonfly+": {
        "topology": "dragonfly_plus",
        "groups": 9,
        "leaves": 4,
        "spines": 4,
        "hosts_per_leaf": 4,
        "global_links": 2,
    },
    "torus": {"sides": [4, 4, 4]},
    "HyperX": {"topology": "hyperx", "sides": [4, 4], "hosts_per_switch": 4},
    "fat-tree": {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16},
    "Slim Fly": {"topology": "slim_fly", "q": 5},
}


@pytest.mark.parametrize("column", FABRICS)
def test_virtual_channels_are_those_of_the_table(column: str) -> None:
    fabric = {"topology": column, **FABRICS[column]}
    for row in table("docs/fabrics.md", "virtual channels", "torus", "Slim Fly"):
        if not (count := row.get(column, "").strip()):
            continue
        routings: list[Any] = list(names(row["virtual channels"])) or [None]
        if "fewest" in row["virtual channels"]:
            routings = [{"name": "progressive", "channels": "fewest"}]
        for routing in routings:
            chosen = routing or entries("topology")[fabric["topology"]].routing
            assert len(fairlane.required_virtual_lanes(fabric, chosen, {})) == int(count), (column, routing)


def presets() -> Iterator[tuple[str, str, str]]:
    """Topology, name and description of each preset, as the reference has them."""
    for topology, entry in entries("topology").items():
        if preset := entry.schema["properties"].get("preset"):
            names = "|".join(map(re.escape, preset["enum"]))
            found = re.findall(rf"(?:\. |; )({names}): (.*?)(?=; (?:{names}): |\.$)", preset["description"])
            assert [name for name, _ in found] == preset["enum"]
            yield from ((topology, name, described) for name, described in found)


@pytest.mark.parametrize(("topology", "preset", "described"), list(presets()))
def test_presets_have_the_hosts_and_switches_of_their_description(topology: str, preset: str, described: str) -> None:
    fabric = Fabric.build({"topology": topology, "params": {"preset": preset}, "routing": "up_down"})
    hosts, switches = len(fabric.host_names), fabric.switches
    described = described.replace(",", "")
    if counted := re.search(r"(\d+) (?:hosts|compute nodes|endpoints)\b(?! each)", described):
        assert hosts == int(counted[1])
    if counted := re.search(r"(\d+) switches\b", described.replace("groups of 32 switches", "groups")):
        assert topology == "cascade" or switches == int(counted[1])
    if counted := re.search(r"(\d+) leaves of (\d+) hosts (\d+) spines", described):
        leaves, of_leaf, spines = map(int, counted.groups())
        assert (hosts, switches) == (leaves * of_leaf, leaves + spines)
    if topology == "torus":
        assert switches == prod(map(int, re.findall(r"\d+(?= x| nodes)", described)))


def test_strategies_use_as_many_lanes_as_the_table_says() -> None:
    assert {name for row in table("docs/qos.md", "strategy", "lanes") for name in names(row["strategy"])} == {
        name for name in STRATEGIES if entries_of("strategies")[name].origin == BUILT_IN
    }


def plain(value: Any) -> str:
    """A default as pages write it, without marks."""
    return str(value).replace("µ", "u").replace(",", "").strip(' `"').lower().removesuffix(".0")


def described_defaults(schema: Any) -> Iterator[tuple[str, str]]:
    """Key and default of all properties in a schema, as they are or in the words of the description."""
    if isinstance(schema, dict):
        for key, one in (schema.get("properties") or {}).items():
            if isinstance(one, dict):
                yield key, plain(one.get("default"))
                words = re.search(r"[Dd]efault: ([^.;]+)", one.get("description") or "")
                yield key, plain(words[1]) if words else ""
    for below in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from described_defaults(below)


def test_defaults_of_keys_are_those_of_the_schema() -> None:
    known = defaultdict(set)
    tables = [
        entry.schema
        for kind in ("routing", "arbiter", "transport", "switch", "fault")
        for entry in entries(kind).values()
    ]
    for key, default in described_defaults([schema(), *tables]):
        known[key].add(default)
    stated = []
    for page, text in pages():
        near = r"`([\w.]+)`(?:(?! \| |\. |;|`).){0,80}?\(default:? (`?\d[^);:]*)\)?[);:]"
        stated += [(page, *found) for found in re.findall(near, text)]
    assert len(stated) > 3
    wrong = [one for one in stated if plain(one[2]) not in known[one[1].rpartition(".")[2]]]
    assert wrong == []


REST = {
    r"congestion (control|notification)|throttl": "congestion-control.md",
    r"failure|fault|link training": "faults.md",
    r"energy|power cap": "power.md",
    r"\brails?\b|second adapter": "rails.md",
    r"\bdropp|\bloss\b": "congestion-control.md",
}
"""What a page may call left out only with a link to what there is of it."""


def left_out() -> list[Shown]:
    """The statements on what is not simulated."""
    found = []
    for page, text in pages():
        for section in re.finditer(
            r"^## What is (?:left out|not modelled)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
        ):
            found += [Shown(page, 0, item) for item in re.findall(r"^- .*(?:\n  .*)*", section[1], re.MULTILINE)]
        found += [Shown(page, 0, item) for item in re.findall(r"^Not in fairlane: .*", text, re.MULTILINE)]
    return found


def test_what_is_called_left_out_is_not_there() -> None:
    statements = left_out()
    assert len(statements) > 8
    for one in statements:
        for words, page in REST.items():
            if re.search(words, one.text, re.IGNORECASE) and page.partition(".")[0] not in one.page:
                assert page in one.text, f"{one.page}: {one.text}"


def test_the_check_says_what_it_does() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    head = text.partition("\nset -")[0].lower()
    steps = re.findall(r'^(?:step|begin) "([^"]+)" make', text, re.MULTILINE)
    assert {"build", "documentation", "lint", "test", "demo", "reproduction", "instructions"} < set(steps)
    for name in steps:
        assert name.removesuffix("s").removeprefix("Rust ").lower() in head, name
    assert not any("wheel" in name for name in steps)
    assert "wheels are built and tested at a release" in " ".join(head.replace("#", "").split())


REFERENCES = {"glossary.md", "model.md", "validation.md"}
"""Pages of ``docs/`` in which a reader looks something up, of any length."""


def test_guides_are_read_in_one_go() -> None:
    guides = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/questions").glob("*.md"), ROOT / "README.md"]
    lengths = {page.name: len(page.read_text("utf-8").split()) for page in guides if page.name not in REFERENCES}
    assert {name: words for name, words in lengths.items() if words > 900} == {}


def test_pages_of_papers_say_the_rest_in_folds() -> None:
    fold = re.compile(r"^(:{3,})\{dropdown\}.*?^\1\s*$", flags=re.DOTALL | re.MULTILINE)
    papers = (ROOT / "docs/reproduction").glob("*/index.md")
    lengths = {page.parent.name: len(fold.sub("", page.read_text("utf-8")).split()) for page in papers}
    assert {name: words for name, words in lengths.items() if words > 600} == {}
