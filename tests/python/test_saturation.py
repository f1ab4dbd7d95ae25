"""Sweeps of open-loop load: what is accepted against theory, verdicts, what is stored and resumed, and wrong input."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation, load, query
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.core.statistics import FEWEST
from fairlane.results.latency import QUANTILES
from fairlane.study.shipped.base import Measurement
from fairlane.study.shipped.saturation import ACCEPTED_IN_FULL, LoadSweep, Saturation, loads_of
from fairlane.study.tasks.task import Answer, Stopwatch
from pictures import assert_drawn

DRAGONFLY = {
    "topology": "dragonfly",
    "groups": 9,
    "switches_per_group": 4,
    "hosts_per_switch": 2,
    "global_links": 2,
    "bandwidth": "100 Gb/s",
    "latency": "100 ns",
    "routing": "minimal",
}
SWITCH = {"topology": "fat_tree", "hosts": 8, "levels": 1, "bandwidth": "100 Gb/s", "latency": "100 ns"}
NEXT_GROUP = '{ name = "next_group", group = 8 }'


def scenario(fabric: dict[str, Any] = SWITCH, **changes: Any) -> Scenario:
    """A fabric with a job that is no open-loop load."""
    tables: dict[str, Any] = {"jobs": [{"name": "pairs", "ranks": 4, "workload": "flood_pairs"}], **changes}
    return Scenario(fabric=fabric, **tables)


def swept(of: Scenario, *loads: float, replicates: int = 2, **changes: Any) -> Saturation:
    """The scenario at these loads."""
    return LoadSweep(of, loads=list(loads), replicates=replicates, **changes).run()


def test_minimal_routing_to_the_next_group_accepts_an_eighth() -> None:
    # One global link carries what eight hosts send: each an eighth of its own link's rate, and no more.
    found = swept(scenario(DRAGONFLY), 0.1, 0.2, replicates=3, pattern=NEXT_GROUP, duration="200 us")
    below, above = found.points.rows(named=True)
    assert found.saturation() == (0.1, 0.2)
    assert below["accepted"] == pytest.approx(below["offered"], rel=1 - ACCEPTED_IN_FULL)
    assert above["accepted"] == pytest.approx(1 / 8, rel=0.01)
    # Hosts' links, and of three global paths in eight none, of three one, of one two local links: 4.5 links.
    assert below["links"] == pytest.approx(4.5, rel=0.02)
    assert above["message_mean_ps"] > 5 * below["message_mean_ps"]
    assert "saturated from 0.2 on" in found.headline()


def test_load_on_a_switch_waits_for_the_sender_and_the_receiver() -> None:
    # Random arrivals at a NIC wait there as in an M/D/1 queue, and at the switch for those that others send: more.
    load, wire = 0.5, 4122 * 80
    (point,) = swept(scenario(), load, replicates=4, duration="2 ms").points.rows(named=True)
    nic = load * wire / (2 * (1 - load))
    flight = 300_000 + wire
    assert flight + nic < point["message_mean_ps"] < flight + 2 * nic
    assert point["message_mean_ps_low"] < point["message_mean_ps"] < point["message_mean_ps_high"]
    assert point["message_p50_ps"] < point["message_p99_ps"] < point["message_p999_ps"]
    for of in ("message", "packet"):
        for name in ("p50", "p90", "p99", "p999"):
            assert point[f"{of}_{name}_ps_low"] < point[f"{of}_{name}_ps"] < point[f"{of}_{name}_ps_high"]
    assert point["saturated"] == "no"
    assert point["accepted"] == pytest.approx(load, rel=0.02)


def test_quantiles_of_few_messages_have_no_interval() -> None:
    found = swept(scenario(), 0.3, replicates=3, duration="60 us")
    (point,) = found.points.rows(named=True)
    fewest = min(found.runs["message_count"].to_list())
    for name, share in QUANTILES.items():
        known = fewest * (1 - share) >= FEWEST
        assert (point[f"message_{name}_ps_low"] is not None) == known, (name, fewest)
    assert point["message_p50_ps_low"] is not None
    assert point["message_p999_ps_low"] is None


def test_one_seed_decides_nothing() -> None:
    found = swept(scenario(), 0.2, replicates=1, duration="100 us")
    assert found.points["saturated"].to_list() == ["undecided"]
    assert found.points["accepted_low"].null_count() == 1
    assert found.saturation() == (None, None)


def test_open_loop_jobs_keep_their_neighbours_and_only_they_count() -> None:
    jobs = [
        {"name": "pairs", "ranks": 4, "workload": {"name": "flood_pairs", "compute": "10 us"}},
        {"name": "load", "count": 2, "ranks": 2, "workload": {"name": "open_loop", "message_size": "8 KiB"}},
    ]
    wanted = scenario(jobs=jobs, placement="linear", duration="300 us", observe={"counters": False})
    plan = LoadSweep(wanted, loads=[0.4], replicates=1, message_size="1 KiB")
    assert plan.remarks == []
    assert [job.kind for job in plan.at({"load": 0.4}, 1).jobs] == ["flood_pairs", "open_loop"]
    point = plan.run().points.row(0, named=True)
    simulation = Simulation(plan.at({"load": 0.4}, 1))
    simulation.run_until(plan.warm_up)
    before = simulation.latency()
    simulation.run_until(plan.duration)
    rows = simulation.latency().since(before).summary(("of", "job")).filter(pl.col("of") == "message")
    counts = dict(rows.select("job", "count").iter_rows())
    assert point["message_count"] == counts[1] + counts[2]
    assert counts[0] > 0
    expected = 4 * 0.4 * (plan.duration - plan.warm_up) / (80 * 1050)
    assert point["message_count"] == pytest.approx(expected, abs=5 * expected**0.5)


@pytest.mark.parametrize(
    ("pattern", "placement", "warned"),
    [("next_group", "random", True), ("next_group", "linear", False), ("uniform", "random", False)],
)
def test_groups_of_ranks_at_random_are_warned_of(pattern: str, placement: str, warned: bool) -> None:
    given = {"name": pattern, "group": 4} if pattern == "next_group" else pattern
    job = {"name": "load", "ranks": 8, "workload": {"name": "open_loop", "pattern": given}}
    plan = LoadSweep(scenario(jobs=[job], placement=placement), loads=[0.4], replicates=1)
    assert [words.startswith("load: next_group goes by numbers of ranks") for words in plan.remarks] == [True] * warned


def test_what_is_counted_since_is_the_difference() -> None:
    plan = LoadSweep(scenario(), loads=[0.5], replicates=1)
    simulation = Simulation(plan.at({"load": 0.5}, 1))
    simulation.run_for("50 us")
    before = simulation.latency()
    simulation.run_for("50 us")
    after = simulation.latency()
    since = after.since(before)
    for name in ("count", "sum"):
        assert since.exact[name].to_list() == (after.exact[name] - before.exact[name]).to_list()
    assert since.histogram["count"].sum() == since.exact["count"].sum()
    assert after.since(after).histogram.height == 0


def test_ranges_and_lists_of_loads() -> None:
    assert loads_of("0.05..1", 20) == [round(0.05 * step, 6) for step in range(1, 21)]
    assert loads_of("0.5,0.1", 20) == [0.1, 0.5]
    assert loads_of("0.3..0.3", 20) == [0.3]


@pytest.mark.parametrize(
    ("given", "words"),
    [("0..1", "out of range"), ("0.1,2", "out of range"), ("0.9..0.1", "ends before it begins"), ("a..1", "no number")],
)
def test_wrong_loads_are_named(given: str, words: str) -> None:
    with pytest.raises(ScenarioError, match="--load") as raised:
        loads_of(given, 5)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pattern", "unifrom"], ["--pattern", 'did you mean "uniform"']),
        (["--pattern", "next_group"], ["--pattern.group", "missing"]),
        (["--pattern", "{ name = "], ["--pattern", "no table"]),
        (["--pattern", "transpose"], ["a square number of ranks"]),
        (["--message-size", "4 XB"], ["--message-size", "4 XB"]),
        (["--arrivals", "uniform"], ["--arrivals", "poisson"]),
        (["--duration", "10 ns"], ["--duration", "nothing is left to measure"]),
        (["--duration", "10 us", "--warm-up", "10 us"], ["--warm-up", "nothing is left to measure"]),
    ],
)
def test_wrong_options_leave_nothing_behind(
    options: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(scenario().text)
    assert execute(["saturate", str(file), "--out", str(tmp_path / "out"), *options]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]


def test_the_command_stores_tables_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "scenario.toml", tmp_path / "out"
    file.write_text(scenario().text)
    options = ["--load", "0.2,0.4", "--replicates", "2", "--duration", "100 us", "--seed", "7", "--json"]
    assert execute(["saturate", str(file), "--out", str(out), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {path.name for path in out.iterdir()} == {
        "answers",
        "manifest.json",
        "points.csv",
        "points.parquet",
        "runs.parquet",
        "saturation.json",
        "saturation.png",
        "scenario.toml",
        "spec.json",
    }
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs.select("load", "seed").rows() == [(0.2, 7), (0.2, 8), (0.4, 7), (0.4, 8)]
    assert [point["load"] for point in printed["points"]] == [0.2, 0.4]
    assert printed["points"][0]["accepted"] == pytest.approx(runs["accepted"][:2].mean())
    assert json.loads((out / "saturation.json").read_text())["duration_ps"] == 100_000_000
    assert execute(["saturate", str(file), "--out", str(out), *options]) == 2, "the folder is taken"


SMALL = ["--replicates", "2", "--duration", "50 us", "--quiet"]


def stored(folder: Path, *options: str, loads: str = "0.2,0.4") -> int:
    """The command on a small switch, in ``folder / "out"``."""
    file = folder / "scenario.toml"
    file.write_text(scenario().text)
    return execute(["saturate", str(file), "--out", str(folder / "out"), "--load", loads, *SMALL, *options])


def test_what_is_stored_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[tuple[float, int]] = []

    compute = Measurement.compute

    def spied(self: Measurement, watch: Stopwatch) -> Answer:
        simulated.append((self.condition["load"], self.seed))
        return compute(self, watch)

    monkeypatch.setattr(Measurement, "compute", spied)
    assert stored(tmp_path) == 0
    assert sorted(simulated) == [(0.2, 1), (0.2, 2), (0.4, 1), (0.4, 2)]
    out = tmp_path / "out"
    before = (out / "points.parquet").read_bytes()
    # As a process leaves it that is killed after three of four, the last one half written.
    first, second, *_ = sorted((out / "answers").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    for name in ("manifest.json", "points.parquet", "points.csv", "runs.parquet", "saturation.json", "saturation.png"):
        (out / name).unlink()
    simulated.clear()
    assert stored(tmp_path, "--resume") == 0
    assert len(simulated) == 2
    assert (out / "points.parquet").read_bytes() == before
    assert json.loads((out / "saturation.json").read_text())["recomputed"] == [f"answers/{second.name}"]
    simulated.clear()
    assert stored(tmp_path, "--resume", loads="0.2,0.3") == 0, "loads can be added"
    assert sorted(simulated) == [(0.3, 1), (0.3, 2)]


def test_a_sweep_is_read_again_and_damage_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert stored(tmp_path) == 0
    out = tmp_path / "out"
    found = load(out)
    assert isinstance(found, Saturation)
    assert found.points["load"].to_list() == [0.2, 0.4]
    assert query(out, "select count(*) as n from runs")["n"].to_list() == [4]
    assert (
        execute(
            ["saturate", "scenario.toml", "--load", "0.1", "--replicates", "1", "--duration", "400 ns", "-o", "few"]
        )
        == 0
    )
    assert load(tmp_path / "few").points["accepted_low"].to_list() == [None], "one seed, and no message came in time"  # type: ignore[union-attr]
    (out / "saturation.png").unlink()
    assert execute(["plot", str(out)]) == 0
    assert_drawn(out / "saturation.png")
    (out / "runs.parquet").write_bytes((out / "runs.parquet").read_bytes() + b"x")
    with pytest.raises(ResultsError, match=r"runs\.parquet: has changed"):
        load(out)


def test_a_sweep_goes_on_only_if_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert stored(tmp_path) == 0
    assert stored(tmp_path, "--resume", "--message-size", "1 KiB") == 2
    assert 'workload.message_size was "4 KiB", is "1 KiB"' in capsys.readouterr().err
    assert execute(["saturate", "scenario.toml", "--resume"]) == 2
    assert "no unfinished sweep 'scenario-saturation'" in capsys.readouterr().err


def test_only_as_many_simulations_run_as_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.model.scenario.estimate.machine_cores", lambda: 8)
    plan = LoadSweep(scenario(), loads=[0.1], replicates=1)
    estimate = plan.at({"load": 0.1}, 1).resolve().estimate
    assert estimate is not None
    monkeypatch.setattr("fairlane.model.scenario.estimate.machine_memory", lambda: int(3.5 * estimate.memory))
    assert plan.workers == 3
