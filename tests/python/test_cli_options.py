"""Standard options on every command, JSON from all of them, completion, and man pages from the same source."""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import reference
from rich.console import Console

from fairlane.cli.command import made
from fairlane.cli.main import execute
from fairlane.cli.terminal import Part, long, show
from fairlane.views.tables import Column, Table, change, time_ps

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RANDOM = {"run", "check", "place", "control", "study", "schedule", "slowdown fit", "predict fit", "predict compare"}
RANDOM |= {"predict pairs"}


def leaves() -> Iterator[tuple[str, Any]]:
    for words, command in reference.commands(reference.root()):
        if not hasattr(command, "commands"):
            yield " ".join(words[1:]), command


@pytest.mark.parametrize(("name", "command"), [pytest.param(*leaf, id=leaf[0]) for leaf in leaves()])
def test_every_command_has_the_standard_options(name: str, command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--out", "-o", "--json", "--quiet", "-q"} <= options
    if name in RANDOM:
        assert "--seed" in options
    assert "--output" not in options
    for option in ("-h", "--help"):
        assert execute([*name.split(), option]) == 0
        assert capsys.readouterr().out.startswith("Usage: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "{small}"],
        ["check", "{small}", "--seed", "7"],
        ["run", "{small}", "--out", "{tmp}/run"],
        ["place", "{small}"],
        ["list"],
        ["list", "topologies"],
        ["schema"],
        ["fabric", "describe", "{small}"],
        ["fabric", "draw", "{small}", "--out", "{tmp}/fabric.svg"],
        ["fabric", "export", "{small}", "--topology-conf"],
        ["workload", "pattern", "ring", "--ranks", "8"],
        ["control", "{small}", "--controller", "none", "--period", "100 us", "--periods", "2", "-o", "{tmp}/control"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_json_is_all_that_is_printed(
    arguments: list[str], small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.format(small=small, tmp=tmp_path) for argument in arguments]
    assert execute([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_json_of_runs_and_queries(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    assert execute(["run", small, "-o", folder, "--json", "--seed", "3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["folder"] == folder
    assert printed["seed"] == 3
    assert [job["name"] for job in printed["jobs"]] == ["pairs-0", "pairs-1"]
    assert execute(["query", folder, "select name, ranks from jobs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "pairs-0", "ranks": 4}, {"name": "pairs-1", "ranks": 4}]
    assert execute(["plot", folder, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert sorted(Path(figure) for figure in figures) == sorted(Path(folder).glob("*.png")) != []


def test_what_is_printed_goes_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list", "arbiters"]) == 0
    printed = capsys.readouterr().out
    assert execute(["list", "arbiters", "-o", str(tmp_path / "arbiters.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "arbiters.txt").read_text() == printed
    assert execute(["list", "arbiters", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert execute(["list", "arbiters", "-o", str(tmp_path / "no" / "such" / "folder")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_what_is_printed_of_a_result_is_a_page_in_an_html_file(tmp_path: Path) -> None:
    page, words = tmp_path / "model.html", tmp_path / "words.html"
    assert execute(["slowdown", "show", "torus-128", "-o", str(page)]) == 0
    assert "<title>Model of slowdowns" in page.read_text()
    assert execute(["list", "arbiters", "-o", str(words)]) == 0
    assert words.read_text().startswith("arbiters:\n")


def test_wrong_input_writes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list", "arbters", "-o", str(tmp_path / "x")]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_control_without_seed_is_as_before(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --seed the variants' seed is 1, and the scenario's own is kept."""
    arguments = ["control", small, "--controller", "none", "--period", "100 us", "--periods", "2", "--json"]
    assert execute(arguments) == 0
    first = json.loads(capsys.readouterr().out)["periods"]
    assert execute([*arguments, "--seed", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["periods"] == first
    assert len(first) == 4


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("list arb", ["arbiters"]),
        ("reproduce sm", ["smith2018"]),
        ("fabric draw --topology dragonfly_", ["dragonfly_plus"]),
        ("workload pattern ring", ["ring", "ring_allgather"]),
        ("control x --controller sl", ["slack"]),
        ("run x --qui", ["--quiet"]),
    ],
)
def test_shells_complete_names(
    words: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_FAIRLANE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"fairlane {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit):
        execute([])
    assert capsys.readouterr().out.split() == offered


@pytest.mark.parametrize(("name", "command"), [pytest.param(*leaf, id=leaf[0]) for leaf in leaves()])
def test_help_without_the_module_of_a_command_is_that_of_its_function(name: str, command: Any) -> None:
    where = f"{command.module}:{command.function}"
    loaded = made(resolve_name(f"fairlane.cli.{where}"), command.name)
    pages = [one.get_help(one.make_context(name, [], **reference.HELP)) for one in (command, loaded)]
    assert pages[0] == pages[1]
    assert type(command)(command.name, where).help == loaded.help, "before its signature is read"


def test_every_command_has_a_man_page_with_all_options() -> None:
    pages = {name: (source, description) for source, name, description in reference.man_pages()}
    for name, command in leaves():
        source, description = pages[f"fairlane-{name.replace(' ', '-')}"]
        assert source == f"commands/fairlane-{name.replace(' ', '-')}"
        assert description
        page = reference.command_page(("fairlane", *name.split()), command)
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or all(option in page for option in parameter.opts)


def _printed(parts: Iterable[Part], width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    show(parts, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_table_leaves_out_columns_and_then_gaps_where_the_terminal_is_narrow() -> None:
    shown = [
        Column("name", "name"),
        Column("count", "count", note="Count: all of them"),
        Column("second", "change", change, drop=1),
        Column("third", "time", time_ps, drop=2, note="third: how long"),
    ]
    rows = [{"name": "one", "count": 12345, "change": -0.5, "time": 2_000_000}, {"name": "two", "count": 1}]
    table = Table(shown, rows, "Title")
    lines = _printed([table], 60).splitlines()
    assert lines[1] == "Title"
    assert [line.split() for line in lines[2:3]] == [["name", "count", "second", "third"]]
    assert [line.split() for line in lines[4:]] == [
        ["one", "12,345", "−50.0%", "2.00", "µs"],
        ["two", "1", "–", "–"],
        ["Count:", "all", "of", "them;", "third:", "how", "long."],
    ]
    assert _printed([table], 22).splitlines()[2].split() == ["name", "count", "second"]
    assert "Count: all of them." in _printed([table], 22)
    assert _printed([table], 14).splitlines()[2].split() == ["name", "count"]
    other = Table(shown[:2], rows, otherwise=lambda: Table(shown[:1], rows))
    assert _printed([other], 60).split()[:2] == ["name", "count"]
    assert "count" not in _printed([other], 8)


def test_a_sparse_table_leaves_out_rows_that_have_nothing_in_the_columns_shown() -> None:
    shown = [Column("name", "name"), Column("count", "count"), Column("time", "time", time_ps, drop=1)]
    rows: list[dict[str, Any]] = [
        {"name": "both", "count": 1, "time": 1000},
        {"name": "none"},
        {"name": "timed", "time": 2000},
    ]
    for width, left in ((60, ["both", "timed"]), (14, ["both"])):
        lines = _printed([Table(shown, rows, sparse=True)], width).splitlines()
        assert [line.split()[0] for line in lines if line[:1].isalpha()][1:] == left
    assert "none" in _printed([Table(shown, rows)], 60)


def test_a_long_note_stays_one_line_and_loses_nothing() -> None:
    words = "word " * 40
    assert _printed([long(words)], 60) == f"{words}\n"
    assert _printed([words], 60) == f"{words}\n"
