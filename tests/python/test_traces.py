"""Every recorded archive, replayed to its end on a fabric and compared with what an independent reader counted in it.

Archives are those of ``tests/data/traces`` and, if it is set, of the directory that ``FAIRLANE_TRACES`` names.
"""

import json
import os
import shutil
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.model.pattern import observe, program_of
from fairlane.model.scenario.models import Job
from fairlane.model.workload import trace
from fairlane.model.workload.trace import read_trace, unpack
from packing import zstd
from peak_memory import measured

HERE = Path(__file__).parent.parent / "data" / "traces"
FOLDERS = [HERE, *(Path(folder) for folder in [os.environ.get("FAIRLANE_TRACES")] if folder)]
ARCHIVES = {
    path.name: path
    for folder in reversed(FOLDERS)
    for path in sorted(folder.iterdir())
    if path.name.endswith((".tar.zst", ".otf2", ".dumpi"))
}
LANES = {"eager": 0, "bulk": 1, "control": 2, "collective": 3}
"""Each kind of traffic has a lane of its own, so that the ports tell how much of each there was."""
HEADER = 26


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Archives are unpacked once for all tests of this file, and not into the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def scenario(trace: Path, ranks: int, **options: Any) -> Scenario:
    """The trace alone, a host for every rank; its recorded compute time counts for a hundredth."""
    return Scenario(
        name="replay",
        fabric={"topology": "fat_tree", "hosts": 18 * -(-ranks // 18), "radix": 36, "levels": 2},
        network={"header": f"{HEADER} B"},
        qos={"kinds": LANES},
        jobs=[{"trace": {"path": trace, "compute_scale": 0.01, **options}}],
    )


def counted(trace: Path) -> dict[str, Any]:
    """The counts that lie beside the trace, in the words of fairlane's own description; empty if there are none."""
    found = unpack(trace)
    check = next(
        (folder / "check.json" for folder in (found, *found.parents[:2]) if (folder / "check.json").is_file()), None
    )
    if check is None:
        return {}
    counts = json.loads(check.read_text())
    if "locations" in counts:  # an OTF2 archive: regions of the program stand among the calls
        calls = {name: count for name, count in counts["calls"].items() if name.startswith("MPI_")}
        words = {"ranks": "locations", "p2p_messages": "messages", "p2p_bytes": "bytes"}
        return {ours: counts[theirs] for ours, theirs in words.items()} | {"calls": calls}
    words = {"wildcard_receives": "wildcard_recvs"}
    same = ["ranks", "calls", "failed_polls", "p2p_messages", "p2p_bytes", "collectives", "communicators"]
    return {ours: counts[words.get(ours, ours)] for ours in [*same, *words]}


def payload(simulation: Simulation, lane: int) -> int:
    """Payload bytes that left the hosts in a lane: what is on the wire without the packets' headers."""
    ports = simulation.table("ports")
    links = simulation.scenario.fabric.links
    out = ports.filter(lane=lane).filter(pl.col("link").is_in(links["link"][links["from_host"] >= 0].tolist()))
    return int(out["bytes"].sum()) - HEADER * int(out["packets"].sum())


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_replays_to_its_end_and_agrees_with_its_check(name: str) -> None:
    trace = ARCHIVES[name]
    described = read_trace(trace).describe()
    expected = counted(trace)
    assert {key: described[key] for key in expected} == expected

    simulation = Simulation(scenario(trace, described["ranks"], repeat=False))
    assert simulation.run_for("100 s")
    ranks, calls = simulation.table("ranks"), simulation.table("calls")
    assert ranks["finished"].all()
    assert (ranks.height, ranks["iterations"].to_list()) == (described["ranks"], [1] * described["ranks"])

    # Messages are counted as sends that have returned, bytes as those sent less those of collectives: the rest is
    # point to point, a rank's messages to itself included.
    returned = dict(calls.select("call", "count").iter_rows())
    assert returned.get("send", 0) + returned.get("isend", 0) == described["p2p_messages"]
    assert int(ranks["bytes_sent"].sum()) - payload(simulation, LANES["collective"]) == described["p2p_bytes"]
    collectives = {key.removeprefix("MPI_").lower(): count["calls"] for key, count in described["collectives"].items()}
    for kind in ("barrier", "bcast", "reduce", "scan"):
        begun = f"i{kind}" if described["format"] == "Chakra" else kind
        assert returned.get(begun, 0) == collectives.get(kind, 0), kind


def test_the_checks_are_there() -> None:
    with_check = [name for name, trace in ARCHIVES.items() if counted(trace)]
    assert len(with_check) >= 12
    assert {"otf2-amg-27.tar.zst", "amg-27.tar.zst"} <= set(with_check)


MEASURE = """
import sys
from fairlane import Scenario, ScenarioError, Simulation
simulation = Simulation(Scenario.load(sys.argv[1]))
while simulation.work()["job"] < int(sys.argv[2]):
    simulation.run_for("50 us")
"""


@pytest.mark.parametrize("name", ["crystal_test-100.tar.zst", "npb_ft-64.tar.zst", "stencil4d-32.otf2"])
@pytest.mark.long("model/workload", "inputs")
def test_memory_does_not_grow_with_the_number_of_passes(name: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(
        '[fabric]\ntopology = "fat_tree"\nhosts = 108\nradix = 36\nlevels = 2\n'
        f'[[jobs]]\nname = "job"\ntrace = {{ path = "{ARCHIVES[name]}", compute_scale = 0.01 }}\n'
    )

    _, few = measured(MEASURE, file, 2)
    _, many = measured(MEASURE, file, 20)
    assert many - few < 5 * 2**20


@pytest.mark.parametrize("name", ["lulesh-64.tar.zst", "otf2-amg-27.tar.zst"])
def test_a_fork_in_the_middle_of_a_trace_goes_on_as_the_original(name: str) -> None:
    ranks = read_trace(ARCHIVES[name]).describe()["ranks"]
    once = Simulation(scenario(ARCHIVES[name], ranks, repeat=False))
    assert once.run_for("100 s")
    length = once.table("ranks").select(pl.col("finished_at_ps").max()).item()

    whole, original = (Simulation(scenario(ARCHIVES[name], ranks)) for _ in range(2))
    whole.run_until(2 * length)
    original.run_until(length // 2)
    assert set(original.work().values()) == {0}
    middle, fork = original.digest(), original.fork()
    fork.run_until(2 * length)
    assert original.digest() == middle
    original.run_until(2 * length)
    assert set(fork.work().values()) <= {1, 2}
    assert fork.digest() == original.digest() == whole.digest()


def damaged(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of a trace, and the file of rank 2 in it."""
    folder = tmp_path / "trace"
    shutil.copytree(unpack(ARCHIVES["crystal_test-100.tar.zst"]), folder)
    return folder, next(folder.glob("*-0002.bin"))


def cut_off(file: Path) -> None:
    """Loses the second half of a file."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_records(file: Path) -> None:
    """Lets the records end in the middle of one: the last word of the index says where the part behind them starts."""
    content = bytearray(file.read_bytes())
    body = struct.unpack_from(">Q", content, len(content) - 24)[0]
    struct.pack_into(">Q", content, len(content) - 8, body + 501)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_off, ["-0002.bin: no index at the end: the file is cut off"]),
        (cut_records, ["-0002.bin: rank 2, record ", "(MPI_", "cut off"]),
        (Path.unlink, ["-0002.bin: missing"]),
    ],
)
def test_a_damaged_trace_is_named_and_nothing_is_written(
    damage: Any, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = damaged(tmp_path)
    damage(file)
    text = '[fabric]\ntopology = "fat_tree"\nhosts = 108\nradix = 36\nlevels = 2\n[[jobs]]\ntrace = "trace"\n'
    (tmp_path / "scenario.toml").write_text(text)
    before = sorted(tmp_path.iterdir())
    assert execute(["run", str(tmp_path / "scenario.toml"), "--out", str(tmp_path / "run")]) == 2
    assert execute(["trace", "describe", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert all(err.count(word) == 2 for word in words), err
    assert sorted(tmp_path.iterdir()) == before


def test_an_archive_of_several_traces_is_refused_with_two_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(tmp_path / "plain.tar", "w") as tar:
        for name in ("first", "second"):
            tar.add(HERE / "stencil4d-32.otf2", f"both/{name}")
    with zstd.open(tmp_path / "both.tar.zst", "wb") as packed:
        packed.write((tmp_path / "plain.tar").read_bytes())
    assert execute(["trace", "describe", str(tmp_path / "both.tar.zst")]) == 2
    err = capsys.readouterr().err
    found = " and ".join(f"both/{name}/traces.otf2" for name in ("first", "second"))
    assert f"holds several traces: {found}; unpack it and name one" in err


def test_a_folder_above_a_trace_has_it_and_one_below_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OTF2 keeps its events in a folder beside the anchor file; people name the folder above or the one with events."""
    shutil.copytree(HERE / "stencil4d-32.otf2", tmp_path / "runs" / "one" / "first")
    shutil.copytree(unpack(ARCHIVES["crystal_test-100.tar.zst"]), tmp_path / "dumpi" / "inner")
    for folder, inner in (("runs", "runs/one/first"), ("runs/one", "runs/one/first"), ("dumpi", "dumpi/inner")):
        assert execute(["trace", "describe", "--json", str(tmp_path / folder)]) == 0
        found = capsys.readouterr().out
        assert execute(["trace", "describe", "--json", str(tmp_path / inner)]) == 0
        assert found == capsys.readouterr().out
    events = tmp_path / "runs" / "one" / "first" / "traces"
    events.mkdir(exist_ok=True)
    assert execute(["trace", "describe", str(events)]) == 2
    err = capsys.readouterr().err
    assert f'no trace; the folder above has traces.otf2; did you mean "{events.parent / "traces.otf2"}"?' in err
    shutil.copytree(HERE / "stencil4d-32.otf2", tmp_path / "runs" / "two")
    shutil.copytree(HERE / "stencil4d-32.otf2", tmp_path / "runs" / "three")
    assert execute(["trace", "describe", str(tmp_path / "runs")]) == 2
    assert "holds several traces: three/traces.otf2 and two/traces.otf2; name one" in capsys.readouterr().err


def test_half_an_archive_is_named_and_nothing_is_left_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = ARCHIVES["lulesh-64.tar.zst"].read_bytes()
    (tmp_path / "half.tar.zst").write_bytes(content[: len(content) // 2])
    assert execute(["trace", "describe", str(tmp_path / "half.tar.zst")]) == 2
    assert f"{tmp_path / 'half.tar.zst'}: cannot be unpacked" in capsys.readouterr().err
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*half*"))


def test_files_that_another_process_has_unpacked_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path, unpacking = ARCHIVES["lulesh-64.tar.zst"], trace._unpack_into
    first: dict[Path, int] = {}

    def slower(folder: Path, archive: Path) -> None:
        unpacking(folder, archive)
        monkeypatch.setattr(trace, "_unpack_into", unpacking)
        folder = unpack(path)  # the other process, from beginning to end
        first.update({file: file.stat().st_ino for file in sorted(folder.iterdir())})

    monkeypatch.setattr(trace, "_unpack_into", slower)
    found = unpack(path)
    assert first
    assert {file: file.stat().st_ino for file in sorted(found.iterdir())} == first
    assert not list(tmp_path.rglob(".*"))


def test_the_bytes_of_a_trace_can_be_multiplied() -> None:
    path = ARCHIVES["crystal_test-100.tar.zst"]
    plain, double = (
        observe(program_of(Job.model_validate({"trace": {"path": path, "message_scale": factor}}).source, 0))
        for factor in (1.0, 2.0)
    )
    assert (double.bytes[0] == 2 * plain.bytes[0]).all(), "point to point"
    assert (double.messages == plain.messages).all()


@pytest.mark.parametrize("factor", [0, -1, 2e6, float("nan"), "much"])
def test_a_factor_on_bytes_that_is_none_is_refused(factor: Any) -> None:
    with pytest.raises(ScenarioError, match="message_scale"):
        scenario(ARCHIVES["crystal_test-100.tar.zst"], 100, message_scale=factor)
