"""Threads: results do not depend on how many there are, wherever their number is given."""

import json
from pathlib import Path

import pytest

from fairlane import Run, Scenario, Simulation, load
from fairlane.cli.main import execute
from fairlane.core.errors import BuildError
from fairlane.model.scenario import Resolved
from fairlane.results.run import RunMeta
from fairlane.sim import runner

SCENARIO = """
name = "threads"
duration = "100 us"

[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8

[placement]
name = "random"

[[jobs]]
name = "exchange"
ranks = 12
workload = { name = "random_pairs" }

[[jobs]]
name = "flood"
ranks = 4
workload = { name = "flood_pairs" }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "threads.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_simulation_is_the_same_on_any_number_of_threads(scenario: Path) -> None:
    loaded = Scenario.load(scenario)
    digests = set()
    for threads in (None, 1, 2, 3):
        simulation = Simulation(loaded, threads=threads)
        simulation.run_for("50 us")
        simulation.set_arbiter("strict_priority")
        simulation.run_for("50 us")
        assert simulation.engine.shards == (threads or 1), "a small fabric has one by default"
        digests.add((simulation.engine.digest(), simulation.now, simulation.packet_hops))
    assert len(digests) == 1
    assert simulation.packet_hops > 100


def test_a_fork_of_a_simulation_on_threads_goes_on_alike(scenario: Path) -> None:
    engine = Scenario.load(scenario).resolve().engine(2)
    engine.run_until(30_000_000)
    fork = engine.fork()
    for one in (engine, fork):
        one.run_until(100_000_000)
        one.check_laws()
    assert fork.digest() == engine.digest()


def test_a_run_takes_a_number_of_threads(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [runner.run(Scenario.load(scenario), isolated=False, threads=threads) for threads in (1, 2)]
    assert execute(["run", str(scenario), "--threads", "2", "--json", "--quiet", "--out", str(tmp_path / "out")]) == 0
    assert {run.meta.digest for run in found} == {json.loads(capsys.readouterr().out)["digest"]}


def test_a_run_records_its_threads_and_its_digest_does_not_depend_on_them(scenario: Path, tmp_path: Path) -> None:
    loaded = Scenario.load(scenario)
    one = runner.run(loaded, isolated=False, threads=1)
    three = runner.run(loaded, isolated=False, threads=3, out=tmp_path / "run")
    assert three.folder is not None
    stored = load(three.folder)
    assert isinstance(stored, Run)
    assert [(run.meta.threads, run.meta.shards) for run in (one, three, stored)] == [(1, 1), (3, 3), (3, 3)]
    assert one.meta.digest == stored.meta.digest
    # The log of departures needs one shard, however many threads are asked for.
    logged = Scenario.load(scenario, set=["observe.departures=true"])
    assert runner.run(logged, isolated=False, threads=3).meta.threads == 1
    # Runs that were stored before have no such keys.
    kept = json.loads((three.folder / "run.json").read_text(encoding="utf-8"))
    del kept["threads"], kept["shards"]
    assert RunMeta.model_validate(kept).threads is None


def test_control_online_takes_a_number_of_threads(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[int | None] = []
    whole = Simulation.__init__

    def recorded(self: Simulation, resolved: Resolved, *, threads: int | None = None) -> None:
        given.append(threads)
        whole(self, resolved, threads=threads)

    monkeypatch.setattr(Simulation, "__init__", recorded)
    answers = []
    for threads in ([], ["--threads", "1"], ["--threads", "2"]):
        fixed = ["control", str(scenario), "--controller", "process_prioritization", "--json"]
        assert execute([*fixed, "--mode", "online", "--period", "40 us", "--periods", "2", *threads]) == 0
        answers.append(json.loads(capsys.readouterr().out)["periods"])
    assert given == [None, 1, 2], "one simulation, of which the default one is a fork"
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(("free", "warned"), [(1, True), (2, False)])
def test_more_threads_than_free_cores_are_slow_and_reported(
    scenario: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    free: int,
    warned: bool,
) -> None:
    monkeypatch.setattr("fairlane.cli.run.free_cores", lambda: free)
    arguments = ["run", str(scenario), "--no-isolated", "--threads", "2", "--json", "--quiet"]
    assert execute([*arguments, "--out", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["threads"] == 2, "a warning changes nothing"
    words = "fairlane: --threads 2: 1 core is free; threads that share a core are slow, up to 50 times slower than one"
    assert (words in captured.err) == warned


@pytest.mark.parametrize("threads", [0, 33])
def test_a_wrong_number_of_threads_is_refused(scenario: Path, threads: int) -> None:
    with pytest.raises(BuildError, match="1 to 32"):
        Simulation(Scenario.load(scenario), threads=threads)
