"""Faults of a scenario, and of a running simulation; what they do to packets is tested in Rust."""

import json
from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane import Scenario, Simulation, _core
from fairlane.cli.main import execute
from fairlane.core.errors import BuildError, ScenarioError
from fairlane.inputs.parameters import entries
from fairlane.results.tables import Links

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


TREE = """
name = "losses"
duration = "8 ms"
[fabric]
topology = "fat_tree"
hosts = 16
leaf_down = 4
leaf_up = 2
levels = 2
bandwidth = "10 Gbit/s"
[network]
retransmission_timeout = "100 us"
retry_count = 2
sweep_time = "500 us"
[[jobs]]
name = "dies"
ranks = 4
placement = { name = "list", hosts = [0, 4, 5, 6] }
workload = { name = "ring", message_size = "16 KiB" }
[[jobs]]
name = "lives"
ranks = 4
placement = { name = "list", hosts = [8, 9, 12, 13] }
workload = { name = "ring", message_size = "16 KiB" }
"""
DEAD_LEAF = """
[[fault]]
kind = "switch_down"
switch = "leaf0"
at = "3 ms"
"""


def test_defaults_of_losses_are_those_of_the_simulator() -> None:
    found = json.loads(_core.tables())["simulation"]["$defs"]["Parameters"]["properties"]
    given = Scenario(**_tables(SCENARIO)).network.spec
    for key in ("retransmission_timeout", "retry_count", "sweep_time"):
        assert given[key] == found[key]["default"], key


def test_a_job_on_a_dead_leaf_fails_and_the_other_has_its_w(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "scenario.toml", tmp_path / "run"
    file.write_text(TREE + DEAD_LEAF)
    assert execute(["run", str(file), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "dies failed after 3." in said
    assert "In its isolated run it failed after 3." in said
    assert "routes were recomputed with d_mod_k; hosts that are cut off: host0, host1, host2, host3." in said
    run = fairlane.load(out)
    assert isinstance(run, fairlane.Run)
    assert run.failures is not None
    assert run.sweeps is not None
    assert run.failures["name"].to_list() == ["dies", "dies"]
    assert run.failures["isolated"].to_list() == [False, True]
    # Two repetitions and the last timeout after the first loss.
    assert 3.3e9 <= run.failures["time_ps"][0] < 3.5e9
    assert "host0" in run.failures.select("from_name", "to_name").row(0)
    dies, lives = run.jobs.to_dicts()
    assert (dies["w"], dies["w_iterations"]) == (None, None)
    assert lives["w"] == pytest.approx(0.0, abs=1e-9)
    assert run.meta.totals is not None
    assert run.meta.totals["packets_given_up"] >= 1
    totals = run.meta.totals
    assert totals["packets_lost"] == totals["packets_retransmitted"] + totals["packets_given_up"]
    assert run.sweeps.select("routing", "hosts_cut_off").row(0) == ("d_mod_k", 4)


def test_a_job_that_is_cut_off_fails_and_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Both uplinks of the leaf go down: its hosts' own cables stay.
    fault = '[[fault]]\nkind = "link_down"\nlink = "leaf0 port {}"\nat = "3 ms"\n'
    whole = fairlane.run(Scenario(**_tables(TREE)), out=tmp_path / "whole", isolated=False)
    broken = fairlane.run(Scenario(**_tables(TREE + fault.format(5) + fault.format(6))), out=tmp_path / "broken")
    assert broken.failures is not None
    assert broken.failures["name"].to_list() == ["dies", "dies"]
    assert broken.jobs["w"].to_list() == [None, pytest.approx(0.0, abs=1e-9)]
    assert execute(["compare", str(whole.folder), str(broken.folder)]) == 0
    said = capsys.readouterr().out
    assert "Failed in one of the two, and not compared: dies." in said
    assert "lives" in said
    assert execute(["plot", str(broken.folder)]) == 0


def test_a_run_without_faults_has_no_tables_of_them() -> None:
    run = fairlane.run(Scenario(**_tables(TREE)), isolated=False)
    assert run.meta.totals is not None
    assert (run.failures, run.sweeps, run.meta.totals["packets_lost"]) == (None, None, 0)


FABRICS: dict[str, tuple[dict[str, object], str]] = {
    "`fat_tree`": ({"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 2}, "up"),
    "`dragonfly`, local cable": (
        {"topology": "dragonfly", "groups": 4, "switches_per_group": 3, "hosts_per_switch": 2, "global_links": 2},
        "local",
    ),
    "`dragonfly`, global cable": (
        {"topology": "dragonfly", "groups": 4, "switches_per_group": 3, "hosts_per_switch": 2, "global_links": 2},
        "global",
    ),
    "`hyperx`": ({"topology": "hyperx", "sides": [4, 4], "hosts_per_switch": 1}, ""),
    "`torus`": ({"topology": "torus", "sides": [4, 4]}, ""),
    "`slim_fly`": ({"topology": "slim_fly", "q": 5, "hosts_per_switch": 1}, ""),
    "`random_regular`": ({"topology": "random_regular", "switches": 10, "degree": 4, "hosts_per_switch": 1}, ""),
}
"""The fabrics of the table in docs/faults.md, and the role of the cable that goes down; empty for the first one."""


def healed(fabric: dict[str, object], role: str) -> tuple[list[str], list[str]]:
    """The routings that a fabric keeps when a cable goes down, and those that up/down routing replaces."""
    kept, replaced = list[str](), list[str]()
    for routing in entries("routing"):
        job = {"ranks": 2, "workload": "ring"}
        try:
            network = {"sweep_time": "1 us"}
            simulation = Simulation(Scenario(fabric={**fabric, "routing": routing}, network=network, jobs=[job]))
        except ScenarioError:  # it does not fit the fabric
            continue
        links = Links(simulation.scenario.fabric).table
        between = pl.all_horizontal(pl.col("from_vertex", "to_vertex").str.starts_with("switch"))
        cables = links.filter(between)
        suiting = cables.filter(pl.col("role") == role) if role else cables
        simulation.fail_link(suiting["link_name"][0], at="1 us")
        simulation.run_until("10 us")
        (row,) = simulation.sweeps().to_dicts()
        assert row["routing"] in (routing, "up_down")
        assert (row["reason"] is None) == (row["routing"] == routing)
        (kept if row["routing"] == routing else replaced).append(f"`{routing}`")
    return kept, replaced


def test_the_page_says_how_each_routing_heals() -> None:
    table = pl.read_csv(Path(__file__).parents[2] / "docs" / "data" / "routes-after-a-failure.csv")
    assert table.rows() == [(name, *(", ".join(names) or "–" for names in healed(*of))) for name, of in FABRICS.items()]


def test_every_kind_can_be_added_to_a_running_simulation() -> None:
    quick = TREE.replace('sweep_time = "500 us"', 'sweep_time = "150 us"')  # before a packet is given up
    simulation = Simulation(Scenario(**_tables(quick)))
    simulation.run_for("1 ms")
    forks = {name: simulation.fork() for name in ("whole", "link", "errors", "slow", "adapter", "switch")}
    forks["link"].fail_link("leaf2 port 5 to spine0")
    forks["errors"].disturb_link("leaf2 port 1", 1e-6)
    forks["slow"].slow_down_host("host8", 10)
    forks["adapter"].fail_adapter("host15")
    forks["switch"].fail_switch("spine1", at="2 ms", until="3 ms")
    for one in forks.values():
        one.run_until("4 ms")
        one.engine.check_laws()
    whole = forks.pop("whole")
    assert whole.totals()["packets_lost"] == 0
    assert whole.sweeps().height == 0
    assert forks["errors"].work()["lives"] < whole.work()["lives"]
    assert forks["errors"].work()["dies"] == whole.work()["dies"]
    assert forks["link"].totals()["packets_lost"] == forks["link"].totals()["packets_retransmitted"] > 0
    assert forks["link"].totals()["packets_given_up"] == 0
    assert forks["link"].sweeps()["links_down"].to_list() == [2]
    assert forks["adapter"].sweeps()["cut_off"].to_list() == ["host15"]
    assert forks["switch"].sweeps()["links_down"].to_list() == [8, 0]
    assert all(one.failures().height == 0 for one in forks.values())


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
