"""Traces as jobs: where archives are unpacked, what is refused."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.model.workload.trace import Trace, read_trace, unpack
from packing import zstd

TRACES = Path(__file__).parent.parent / "data" / "traces"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pack(target: Path, members: dict[str, bytes]) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    with zstd.open(target, "wb") as packed:
        packed.write(plain.getvalue())
    return target


def test_an_archive_is_unpacked_once_and_its_trace_found(tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.tar.zst", {"a/deep/x.meta": b"m", "a/deep/x-0.bin": b"b", "a/check.json": b"{}"})
    found = unpack(archive)
    assert found.name == "deep"
    assert (found / "x.meta").read_bytes() == b"m"
    inode = (found / "x.meta").stat().st_ino
    assert (unpack(archive) / "x.meta").stat().st_ino == inode
    (found / "x.meta").write_bytes(b"changed")
    assert (unpack(archive) / "x.meta").read_bytes() == b"m"
    assert unpack(pack(tmp_path / "b.tar.zst", {"b/traces.otf2": b"o", "b/traces/0.evt": b""})).name == "traces.otf2"


@pytest.mark.parametrize(
    ("part", "share"),
    [({}, 1), ({"iterations": "3.."}, 0.8), ({"iterations": "3..4"}, 0.2), ({"iterations": "..4"}, 0.4)],
)
def test_the_share_of_a_part_counts_its_iterations(part: dict[str, str], share: float, tmp_path: Path) -> None:
    (tmp_path / "x.otf2").touch()
    trace = Trace.model_validate({"path": tmp_path / "x.otf2", "iteration": {"collective": "allreduce"}, **part})
    assert trace.share({"iteration_starts": list(range(10))}) == share


def test_a_member_that_leaves_its_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpack(pack(tmp_path / "evil.tar.zst", {"../evil": b"x"}))
    (tmp_path / "broken.tar.zst").write_bytes(b"not zstd")
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpack(tmp_path / "broken.tar.zst")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_recorded_job_replays(tmp_path: Path) -> None:
    trace = TRACES / "testtrace-4.dumpi"
    shutil.copytree(trace, tmp_path / "trace")
    file = tmp_path / "scenario.toml"
    text = '[fabric]\ntopology = "fat_tree"\nhosts = 8\n[[jobs]]\ntrace = "trace"\n'
    file.write_text(text)
    simulation = Simulation(Scenario.load(file))
    simulation.run_for("1 s")
    assert len(simulation.progress()["trace"]) == 4
    assert min(simulation.progress()["trace"]) >= 1
    file.write_text(f"{text}ranks = 5\n")
    with pytest.raises(ScenarioError, match=r":6: jobs\[0\].ranks = 5: the trace has 4 ranks"):
        Scenario.load(file).resolve()


def test_a_description_names_the_ranks() -> None:
    assert read_trace(TRACES / "testtrace-4.dumpi").describe()["ranks"] == 4
    with pytest.raises(ScenarioError, match="there is no"):
        read_trace(TRACES / "none")


@pytest.mark.parametrize(
    ("iteration", "words"),
    [
        ('"sometimes"', "pass, { collective"),
        ('{ collective = "allrduce" }', 'did you mean "allreduce"'),
        ('{ collective = "bcast", region = "x" }', "exclude each other"),
        ('{ call = "bcast" }', "unknown key"),
    ],
)
def test_a_wrong_iteration_is_told(tmp_path: Path, iteration: str, words: str) -> None:
    file = tmp_path / "scenario.toml"
    job = f'trace = {{ path = "{TRACES / "testtrace-4.dumpi"}", iteration = {iteration} }}'
    file.write_text(f'[fabric]\ntopology = "fat_tree"\nhosts = 8\n[[jobs]]\n{job}\n')
    with pytest.raises(ScenarioError, match=words):
        Scenario.load(file)
