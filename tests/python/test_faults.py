"""Faults of a scenario, and of a running simulation; what they do to packets is tested in Rust."""

from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.errors import BuildError, ScenarioError

SCENARIO = """
name = "faults"
duration = "100 ms"
[fabric]
topology = "fat_tree"
hosts = 16
radix = 8
levels = 2
bandwidth = "10 Gbit/s"
[observe]
iterations = ["pair"]
[placement]
name = "list"
hosts = [0, 4]
[[jobs]]
name = "pair"
ranks = 2
workload = { name = "flood_pairs", compute = "1 us" }
"""
FAULT = """
[[fault]]
kind = "degraded_link"
link = "host0 port 1"
lanes = 1
at = "20 ms"
"""


def rate(run: "fairlane.Run", from_ms: int, to_ms: int) -> float:
    """Iterations between two instants."""
    inside = run.completions.filter(pl.col("at_ps").is_between(from_ms * 10**9, to_ms * 10**9, closed="left"))
    return inside.height / (to_ms - from_ms)


def test_a_job_slows_down_as_its_cable_does() -> None:
    whole = fairlane.run(Scenario(**_tables(SCENARIO)), isolated=False)
    broken = fairlane.run(Scenario(**_tables(SCENARIO + FAULT)), isolated=False)
    mended = fairlane.run(Scenario(**_tables(SCENARIO + FAULT + 'until = "50 ms"\n')), isolated=False)
    usual = rate(whole, 0, 100)
    assert usual > 0
    # The wire is a part of an iteration: with a quarter of the bandwidth an iteration takes almost four times as long.
    assert rate(broken, 0, 20) == rate(whole, 0, 20)
    assert 0.2 < rate(broken, 24, 100) / usual < 0.4
    assert rate(mended, 20, 50) == rate(broken, 20, 50)
    assert rate(mended, 54, 100) == pytest.approx(usual, rel=0.05)


def test_a_running_simulation_takes_faults() -> None:
    scenario = Scenario(**_tables(SCENARIO))
    simulation = Simulation(scenario)
    simulation.run_for("15 ms")
    fork = simulation.fork()
    simulation.degrade_link("host0 port 1 to leaf0", at="20 ms")
    for one in (simulation, fork):
        one.run_until("100 ms")
        one.engine.check_laws()
    given = Simulation(Scenario(**_tables(SCENARIO + FAULT)))
    given.run_until("100 ms")
    assert simulation.digest() == given.digest()
    assert fork.work()["pair"] > 1.5 * simulation.work()["pair"]
    with pytest.raises(BuildError, match=r"did you mean \"leaf0\""):
        simulation.degrade_link("leaf00 port 1")
    with pytest.raises(ScenarioError, match="is not after at"):
        simulation.degrade_link("leaf0 port 1", at="2 ms", until="1 ms")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lanes = 1", "lanes = 5", "fault[0].lanes"),
        ("degraded_link", "degraded", "degraded_link"),
        ("host0 port 1", "host99 port 1", 'no host and no switch is called "host99"'),
        ("host0 port 1", "host0 port 2", "ports of host0 with a cable: 1"),
        ('"20 ms"', '"20 ms"\nuntil = "10 ms"', "fault[0].until"),
        ("lanes = 1", "lane = 1", "lanes"),
    ],
)
def test_wrong_faults_are_refused(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO + FAULT.replace(old, new))
    assert execute(["run", str(file), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "scenario.toml:" in error
    assert not (tmp_path / "run").exists()


def _tables(text: str) -> dict[str, object]:
    import tomllib

    return tomllib.loads(text)
