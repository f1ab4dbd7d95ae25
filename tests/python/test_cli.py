"""The command line: output, errors and exit codes."""

import _thread
import json
import subprocess
import sys
import tomllib
from concurrent.futures import CancelledError
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fairlane.cli.main import execute
from fairlane.cli.options import folder_for
from fairlane.core.errors import BuildError
from fairlane.inputs.parameters import entries
from fairlane.model.placement import PLACEMENTS
from fairlane.model.scenario import schema
from fairlane.model.scenario.fabrics import spec_of
from fairlane.model.workload import WORKLOADS
from pictures import assert_drawn
from samples import PAIRS
from waiting import HANG_S

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_a_folder_that_was_made_goes_with_any_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError), folder_for(tmp_path / "new" / "folder"):
        raise BuildError("cannot be built")
    assert not (tmp_path / "new").exists()


def test_ctrl_c_while_calibrating_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Event()

    def calibrate(*arguments: Any) -> int:
        _thread.interrupt_main()
        if arguments[-1].wait(HANG_S):
            told.set()
        raise CancelledError

    monkeypatch.setattr("fairlane.model.scenario.resolve.calibrate", calibrate)
    text = PAIRS.replace("count = 2", "count = 1").replace('compute = "10 us"', "compute_share = 0.5")
    (tmp_path / "small.toml").write_text(text)
    assert execute(["run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "run"), "--quiet"]) == 130
    assert capsys.readouterr().err.split() == ["fairlane:", "interrupted"]
    assert told.wait(HANG_S)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", [[], ["schedule"], ["list"]], ids=" ".join)
def test_help_loads_nothing_that_takes_long_to_load(command: list[str]) -> None:
    heavy = ["duckdb", "matplotlib", "networkx", "numpy", "polars", "rich", "scipy", "fairlane._core"]
    heavy += [] if command else ["pydantic"]
    text = f"""
import atexit, sys
atexit.register(lambda: print([name for name in {heavy} if name in sys.modules], file=sys.stderr))
from fairlane.cli import main
main()
"""
    program = [sys.executable, "-c", text, *command, "--help"]
    done = subprocess.run(program, capture_output=True, check=True, text=True)
    assert done.stderr.strip() == "[]"
    assert command or all(name in done.stdout for name in ("run", "check", "plot", "query", "schema", "list"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rn"], "No such command"),
        (["run"], "Missing argument"),
        (["run", "none.toml"], "none.toml: cannot be read"),
        (["check", "{small}", "--set", "fabric.host=3"], 'did you mean "hosts"'),
        (["check", "{small}", "--set", "jobs.0.ranks=400"], "more ranks than hosts"),
        (["check", "{small}", "--seed"], "--seed"),
        (["list", "worklods"], 'did you mean "workloads"'),
        (["fabric", "describe"], "either a scenario or --topology"),
        (["fabric", "describe", "--topology", "fat_tre"], 'did you mean "fat_tree"'),
        (["fabric", "describe", "edisn"], "unknown file, topology or preset; allowed: cascade, dragonfly"),
        (["fabric", "describe", "edisn"], 'did you mean "edison"'),
        (["fabric", "describe", "wilke2020"], "allowed: dragonfly:preset=wilke2020 or fat_tree:preset=wilke2020"),
        (["trace", "describe", "none"], "there is no"),
        (["query", "none", "select 1"], "none"),
    ],
)
def test_wrong_input_is_exit_code_2_and_told_on_standard_error(
    arguments: list[str], words: str, small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([argument.replace("{small}", small) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""


WRONG = [
    ('bandwidth = "3.2 GB/s"', 'bandwith = "3.2 GB/s"', 'fabric.bandwith = "3.2 GB/s": unknown key', '"bandwidth"?'),
    ("levels = 2", "levls = 2", "fabric.levls = 2: unknown key; allowed: topology, ", 'mean "levels"?'),
    ('"fat_tree"', '"fat_tre"', 'fabric.topology = "fat_tre": unknown topology; allowed: cascade', '"fat_tree"?'),
    ('"200 us"', "200", "duration = 200: a duration is a number with its unit in a string", '"100 ns"'),
    ('"200 us"', '"200 uS"', "duration = \"200 uS\": 'uS' is not a unit of duration", "did you mean 'us'?"),
    ('"10 us"', '"-10 us"', 'jobs[0].workload.compute = "-10 us": ', "cannot be negative"),
    ("flood_pairs", "flod_pairs", 'jobs[0].workload.name = "flod_pairs": unknown workload', 'mean "flood_pairs"?'),
    ('"200 us"', '"200 us"\nseed = 18446744073709551616', "seed = 18446744073709551616: out of range", "at most"),
    (
        "ranks = 4",
        'ranks = 4\nstart = "200 us"',
        'jobs[0].start = "200 us": starts after the end of the run',
        "before 200 us",
    ),
    (
        "ranks = 4",
        "ranks = 40",
        "jobs[0].ranks = 40: more ranks than hosts: ",
        "the jobs need 80 hosts; allowed: what 16 hosts",
    ),
    ("ranks = 4", "ranks = 4\nservice_level = 16", "jobs[0].service_level = 16: out of range", "at most 15"),
    ("[[jobs]]", "[qos]\nservice_levels = 3\nlanes = 2\n[[jobs]]", "qos.lanes = 2: ", "more service levels than lanes"),
    ("[[jobs]]", '[placement]\nname = "list"\nhosts = [1, 1]\n[[jobs]]', "placement.hosts: host 1", "listed twice"),
    (
        'workload = { name = "flood_pairs", compute = "10 us" }',
        'trace.path = "gone.dumpi"',
        "jobs[0].trace.path = ",
        "there is no",
    ),
    ("hosts = 16", "hosts = ", "not valid TOML", "Invalid value"),
]


@pytest.mark.parametrize(("old", "new", "subject", "words"), WRONG)
def test_a_wrong_scenario_is_told_with_file_line_key_and_value(
    old: str, new: str, subject: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAIRS.replace(old, new)
    assert text != PAIRS
    file = tmp_path / "small.toml"
    file.write_text(text)
    assert execute(["run", str(file), "--out", str(tmp_path / "run")]) == 2
    out, err = capsys.readouterr()
    line = next(line for line in err.splitlines() if subject in line)
    place, number = f"fairlane: {file}:", line.removeprefix(f"fairlane: {file}:").partition(":")[0]
    assert line.startswith(f"{place}{number}: {subject}")
    assert words in line
    key = subject.partition(" = ")[0].partition(":")[0].rpartition(".")[2]
    assert key in text.splitlines()[int(number) - 1] or subject.startswith("not valid")
    assert (out, list(tmp_path.iterdir())) == ("", [file])


def test_check_names_every_job(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["check", small]) == 0
    out = capsys.readouterr().out
    assert "pairs-0: 4 ranks of flood_pairs" in out
    assert "pairs-1" in out


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list"]) == 0
    words = capsys.readouterr().out.split()
    assert {"fat_tree", "d_mod_k", "vlarb", "allreduce", *WORKLOADS, *PLACEMENTS} <= set(words)
    assert execute(["list", "arbiters"]) == 0
    assert "fat_tree" not in capsys.readouterr().out


def test_every_preset_is_known_by_its_name_alone(capsys: pytest.CaptureFixture[str]) -> None:
    presets: dict[str, list[str]] = {}
    for topology, entry in entries("topology").items():
        for name in entry.schema.get("properties", {}).get("preset", {}).get("enum", []):
            presets.setdefault(name, []).append(topology)
    assert len(presets) > 5
    for name, topologies in presets.items():
        for topology in topologies:
            source = name if len(topologies) == 1 else f"{topology}:preset={name}"
            whole = spec_of("fabric describe", None, topology, [f"preset={name}"])
            assert spec_of("fabric describe", Path(source), None) == whole
    assert execute(["fabric", "describe", "fat_tree:hosts=16:levels=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"] == 16


def test_a_fabric_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--set", "hosts=64", "--set", "levels=2", "--set", "radix=16", "--set", "bandwidth=3.2 GB/s"]
    assert execute(["fabric", "describe", "--topology", "fat_tree", *sizes, "--json"]) == 0
    fabric = json.loads(capsys.readouterr().out)
    # 8 leaves of 8 hosts under 4 spines; 64 host cables and 8 x 8 leaf cables, two links each.
    assert (fabric["hosts"], fabric["switches"]) == (64, {"1": 8, "2": 4})
    assert sum(kind["links"] for kind in fabric["links"]) == 2 * (64 + 64)
    assert fabric["diameter"] == 4
    assert fabric["bisection"] == 32 * 25_600_000_000
    # Half as many cables up as down let through half of that.
    assert execute(["fabric", "describe", "--topology", "fat_tree", *sizes, "--set", "leaf_up=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bisection"] == 16 * 25_600_000_000


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_the_schema_accepts_the_examples_and_refuses_mistakes(file: Path) -> None:
    validator = Draft202012Validator(schema())
    Draft202012Validator.check_schema(schema())
    scenario = tomllib.loads(file.read_text())
    assert [error.message for error in validator.iter_errors(scenario)] == []
    for key, value in [("bandwidth", 3), ("host", 64)]:
        assert not validator.is_valid({**scenario, "fabric": {**scenario["fabric"], key: value}})
    assert not validator.is_valid({**scenario, "sed": 1})
    assert not validator.is_valid({**scenario, "jobs": [{"ranks": 8, "workload": {"name": "flood_pairs", "jiter": 1}}]})


def test_the_schema_knows_every_workload_and_is_json() -> None:
    text = json.dumps(schema())
    assert all(f'"{name}"' in text for name in WORKLOADS)


def test_a_run_can_be_queried(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    assert execute(["run", small, "--out", folder, "--quiet", "--seed", "3"]) == 0
    assert capsys.readouterr().out.strip() == folder
    assert execute(["query", folder, "select name from jobs order by job"]) == 0
    assert capsys.readouterr().out.split() == ["name", "pairs-0", "pairs-1"]
    assert execute(["plot", folder]) == 0
    pictures = capsys.readouterr().out.splitlines()
    assert pictures
    for picture in pictures:
        assert_drawn(Path(picture))


@pytest.mark.parametrize(("ranks", "messages", "volume"), [(32, "512", "64 MiB"), (64, "1,024", "256 MiB")])
def test_a_trace_is_described(ranks: int, messages: str, volume: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = EXAMPLES.parent / f"tests/data/traces/stencil4d-{ranks}.otf2"
    assert execute(["trace", "describe", str(trace), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert execute(["trace", "describe", str(trace)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:4] == ["OTF2", "2.0.0:", str(ranks), "ranks,"]
    assert ["messages", messages, "point", "to", "point,", *volume.split()] in lines
    assert described["calls"]["MPI_Barrier"] == 3 * ranks
    assert all(["calls", name, f"{count:,}"] in lines for name, count in described["calls"].items())
    assert not any("wildcards" in line for line in lines), "there are none"
