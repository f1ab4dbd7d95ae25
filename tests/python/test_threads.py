"""Threads: results do not depend on how many there are, wherever their number is given."""

import json
from pathlib import Path

import pytest

from fairlane import Scenario, Simulation, runner
from fairlane.cli.main import execute
from fairlane.errors import BuildError

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


@pytest.mark.parametrize("threads", [0, 33])
def test_a_wrong_number_of_threads_is_refused(scenario: Path, threads: int) -> None:
    with pytest.raises(BuildError, match="1 to 32"):
        Simulation(Scenario.load(scenario), threads=threads)
