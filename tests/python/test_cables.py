"""Surveys of failures: forks of one beginning, the most critical cable, what is stored and resumed, and wrong input."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from fairlane import Scenario, Simulation, load, query
from fairlane.cli.main import execute
from fairlane.results.milestones import Milestones
from fairlane.study.shipped.base import Measurement
from fairlane.study.shipped.cables import Cables, Survey
from fairlane.study.shipped.cables.forks import of_iterations
from fairlane.study.tasks.task import Answer, Stopwatch
from pictures import assert_drawn

# Three leaves with two cables each to one spine. All traffic of "across" crosses; that of "inside" stays on its leaf.
TRUNK = """
name = "trunk"
duration = "1 ms"
[fabric]
topology = "fat_tree"
hosts = 12
levels = 2
leaf_down = 4
leaf_up = 2
bandwidth = "100 Gb/s"
[network]
retransmission_timeout = "10 us"
sweep_time = "20 us"
[[jobs]]
name = "across"
ranks = 4
placement = { name = "list", hosts = [0, 2, 4, 6] }
workload = { name = "flood_pairs", message_size = "4 KiB", compute = "1 us" }
[[jobs]]
name = "inside"
ranks = 4
placement = { name = "list", hosts = [8, 9, 10, 11] }
workload = { name = "flood_pairs", message_size = "4 KiB", compute = "1 us" }
"""


def written(folder: Path, text: str = TRUNK) -> Path:
    file = folder / "scenario.toml"
    file.write_text(text)
    return file


def surveyed(folder: Path, *options: str) -> int:
    """The command, in ``folder / "out"``."""
    return execute(["cables", str(written(folder)), "--out", str(folder / "out"), "--replicates", "1", *options])


def test_the_unbroken_fork_is_the_plain_run(tmp_path: Path) -> None:
    scenario = Scenario.load(written(tmp_path))
    answers = [task.compute(Stopwatch()) for task in list(Survey(scenario, replicates=1).measurements())[:2]]
    plain = Simulation(scenario)
    plain.run_until(scenario.duration)
    assert {answer["unbroken_digest"] for answer in answers} == {plain.digest()}
    assert {answer["routing"] for answer in answers} == {"d_mod_k"}
    # Destinations are even, so that all of them are reached over the first cable of a leaf.
    assert [answer["packets_lost"] > 0 for answer in answers] == [True, False]
    assert [answer["digest"] == plain.digest() for answer in answers] == [False, True]


def test_a_fork_is_the_run_with_the_same_fault(tmp_path: Path) -> None:
    scenario = Scenario.load(written(tmp_path))
    plan = Survey(scenario, replicates=1, cables=["leaf0 port 5"])
    (task,) = plan.measurements()
    answer = task.compute(Stopwatch())
    plain = Simulation(scenario)
    plain.fail_link("leaf0 port 5", at=plan.trunk(1, Stopwatch()).now)
    plain.run_until(scenario.duration)
    assert plain.digest() == answer["digest"]


def test_one_beginning_serves_all_forks_of_a_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    whole = Stopwatch.advance

    def spied(self: Stopwatch, engine: Simulation, until: int, *others: int) -> None:
        begun.append(engine.now)
        whole(self, engine, until, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Stopwatch, "advance", spied)
    assert surveyed(tmp_path, "--quiet") == 0
    assert begun.count(0) == 1
    assert len(begun) == 1 + 1 + 6


def test_the_most_critical_cable_is_one_that_all_traffic_crosses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert surveyed(tmp_path) == 0
    said = capsys.readouterr().out
    assert "each of 6 cables fails after 250 µs of 1.00 ms, on 1 seed" in said
    assert "Fewer than three seeds" in said
    found = load(tmp_path / "out")
    assert isinstance(found, Cables)
    crossed = {f"leaf{leaf} port {port} to spine0" for leaf, port in product((0, 1), (5, 6))}
    ranking = found.ranking
    worst = ranking.row(0, named=True)
    assert worst["part"] in crossed
    assert worst["worst_job"] == "across"
    assert 1.2 < worst["slowdown"] < 4
    assert (worst["jobs_failed"], worst["hosts_cut_off"]) == (0, 0)
    of_other_leaf = found.slowdowns.filter(pl.col("part").str.starts_with("leaf2"))
    assert of_other_leaf.filter(pl.col("name") == "across")["slowdown"].to_list() == [1.0, 1.0]
    assert found.slowdowns.filter(pl.col("name") == "inside")["slowdown"].to_list() == pytest.approx([1.0] * 6)
    assert found.headline().startswith(f"Most critical cable: {worst['part']} (slowdown ")


def test_tables_json_and_a_figure_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert surveyed(tmp_path, "--json", "--cable", "spine0 port 1", "--cable", "leaf0 port 6") == 0
    out, printed = tmp_path / "out", json.loads(capsys.readouterr().out)
    assert {path.name for path in out.iterdir()} == {
        "answers",
        "cables.json",
        "cables.png",
        "jobs.parquet",
        "manifest.json",
        "ranking.csv",
        "ranking.parquet",
        "runs.parquet",
        "scenario.toml",
        "slowdowns.parquet",
        "spec.json",
    }
    assert_drawn(out / "cables.png")
    names = {"leaf0 port 5 to spine0", "leaf0 port 6 to spine0"}
    assert {row["part"] for row in printed["ranking"]} == names
    assert printed["at_ps"] == 250_000_000
    assert query(out, "select count(*) as n from jobs")["n"].to_list() == [4]
    found = load(out)
    assert isinstance(found, Cables)
    assert "leaf0 port" in str(found._repr_html_())
    assert "Slowdown against the unbroken fork" in found.plot().to_json()


def test_what_is_stored_is_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[str] = []
    compute = Measurement.compute

    def spied(self: Measurement, watch: Stopwatch) -> Answer:
        if len(simulated) == 2 and not (tmp_path / "resumed").exists():
            raise KeyboardInterrupt
        simulated.append(self.label)
        return compute(self, watch)

    monkeypatch.setattr(Measurement, "compute", spied)
    monkeypatch.setattr("fairlane.study.tasks.task.time.perf_counter", lambda: 0.0)
    monkeypatch.setattr("fairlane.study.shipped.base.affordable", lambda *_: 1)
    assert surveyed(tmp_path, "--quiet", "--cable", "leaf0 port 5", "--cable", "leaf0 port 6") == 0
    assert len(simulated) == 2
    (tmp_path / "resumed").touch()
    assert surveyed(tmp_path, "--quiet", "--resume") == 0
    assert sorted(simulated)[:2] == [f"leaf0 port {port} to spine0, seed 1" for port in (5, 6)]
    assert len(simulated) == 6
    assert surveyed(tmp_path, "--quiet", "--resume", "--replicates", "3") == 0
    assert len(simulated) == 18
    found = load(tmp_path / "out")
    assert isinstance(found, Cables)
    assert found.ranking["slowdown_low"].null_count() == 0
    assert (
        execute(["cables", str(tmp_path / "scenario.toml"), "--resume", "--out", str(tmp_path / "out"), "--at", "1 us"])
        == 2
    )


def test_a_dead_switch_or_pair_cuts_hosts_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("leaf0 port 5", "leaf0 port 6")
    assert surveyed(tmp_path, "--quiet", "--pairs", "1", *(part for name in pair for part in ("--cable", name))) == 0
    found = load(tmp_path / "out")
    assert isinstance(found, Cables)
    (row,) = found.ranking.to_dicts()
    assert row["part"] == "leaf0 port 5 to spine0 and leaf0 port 6 to spine0"
    assert (row["jobs_failed"], row["hosts_cut_off"]) == (1.0, 4.0)
    capsys.readouterr()
    assert found.headline().endswith("1 job failed, 4 hosts cut off)")
    assert_drawn(tmp_path / "out" / "cables.png")
    names = [*Survey(Scenario.load(tmp_path / "scenario.toml"), switches=True).parts]
    assert names == ["leaf0", "leaf1", "leaf2", "spine0"]


def test_pairs_are_sampled_without_repetition(tmp_path: Path) -> None:
    scenario = Scenario.load(written(tmp_path))
    some, again, all_ = ([*Survey(scenario, pairs=pairs).parts] for pairs in (5, 5, 99))
    assert some == again
    assert len(set(some)) == 5
    assert len(set(all_)) == 6 * 5 // 2
    assert len(Survey(scenario, hosts=True).parts) == 6 + 12


def test_slowdown_is_of_the_iterations_that_both_forks_completed() -> None:
    unbroken = Milestones(1, [10, 20, 30, 40, 50], 5)
    found = of_iterations(unbroken, Milestones(1, [10, 20, 35, 55], 4), 20)
    assert (found["count"], found["slowdown"], found["stalled"]) == (2, 35 / 20, False)
    assert of_iterations(unbroken, Milestones(1, [10, 20], 2), 20)["stalled"]
    assert of_iterations(unbroken, unbroken, 60)["slowdown"] is None
    ended = of_iterations(Milestones(1, [10, 20], 2, ended=25), Milestones(1, [10, 30], 2, ended=35), 15)
    assert ended["slowdown"] == 2.0


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("at", [20, 23, 29])
def test_the_time_per_iteration_does_not_depend_on_when_in_one_the_failure_comes(at: int, stride: int) -> None:
    """Nothing changes in the fork that fails, so both take 10 an iteration: of the one under way its rest counts."""
    times = [10 * stride * number for number in range(1, 6)]
    same = Milestones(stride, times, 5 * stride)
    found = of_iterations(same, same, stride * at)
    assert found["unbroken_s"] == found["broken_s"] == pytest.approx(10e-12)
    # Also of a program that ends, and if it fails in its last iteration.
    ended = Milestones(1, [10, 20], 3, ended=30)
    found = of_iterations(ended, replace(ended, ended=30 + (30 - at)), at)
    assert found["unbroken_s"] == pytest.approx(10e-12)
    assert found["slowdown"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cable", "leaf0 port 7"], ["--cable", "unknown cable", "leaf0 port 7", "did you mean"]),
        (["--at", "2 ms"], ["--at", "2 ms", "below 1 ms"]),
        (["--at", "soon"], ["--at", "soon"]),
        (["--replicates", "0"], ["--replicates = 0", "at least 1"]),
        (["--pairs", "0"], ["--pairs = 0", "at least 1"]),
        (["--pairs", "1", "--cable", "leaf0 port 5"], ["--pairs", "two"]),
        (["--switches", "--hosts"], ["--switches"]),
        (["--set", "fabric.levels=1"], ["fabric"]),
        (["--set", "network.switch=input_queued"], ["output_queued"]),
        (["--set", "network.retry_count=8"], ["network.retry_count"]),
    ],
)
def test_wrong_options_leave_nothing_behind(
    options: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert surveyed(tmp_path, *options) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]
