"""The benchmark GPCNeT: division of hosts, what is measured against closed forms, what is stored, and wrong input."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, load, query
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.inputs.parameters import Entry, entries
from fairlane.study.shipped.base import Measurement
from fairlane.study.shipped.gpcnet import TESTS, Benchmark, Gpcnet, divided
from fairlane.study.tasks.task import Answer, Stopwatch
from fairlane.views.kinds import view_of
from pictures import assert_drawn

SWITCH = {"topology": "fat_tree", "hosts": 16, "levels": 1, "bandwidth": "100 Gb/s", "latency": "100 ns"}
DRAGONFLY = {
    "topology": "dragonfly",
    "groups": 8,
    "switches_per_group": 4,
    "hosts_per_switch": 4,
    "global_links": 2,
    "bandwidth": "100 Gb/s",
    "latency": "100 ns",
    "routing": "ugal_l",
}


def scenario(fabric: dict[str, Any] = SWITCH, **changes: Any) -> Scenario:
    """A fabric with a job that the benchmark replaces."""
    return Scenario(fabric=fabric, **{"jobs": [{"ranks": 2, "workload": "flood_pairs"}], **changes})


def planned(fabric: dict[str, Any] = SWITCH, **options: Any) -> Benchmark:
    return Benchmark(scenario(fabric), **options)


def at(plan: Benchmark, test: str, seed: int) -> Scenario:
    return plan.at({"transport": "credits_only", "test": test}, seed)


def measured(plan: Benchmark, test: str, *, congested: bool) -> Answer:
    condition = {"transport": "credits_only", "test": test, "congested": congested}
    return plan.measure(condition, plan.seeds[0], Stopwatch())


def test_a_fifth_of_the_hosts_has_the_network_test_and_congestors_share_the_rest() -> None:
    assert divided(128) == (26, [26, 26, 25, 25])
    for hosts in range(10, 200):
        tested, shares = divided(hosts)
        assert tested == hosts - int(np.floor(0.8 * hosts))
        assert tested + sum(shares) == hosts
        assert max(shares) - min(shares) <= 1
        assert min(tested, *shares) >= 2


def test_isolated_and_congested_trials_of_a_seed_have_the_same_hosts() -> None:
    plan = planned(replicates=2, ranks_per_host=2)
    first, second = (at(plan, "latency", seed).resolve() for seed in plan.seeds)
    assert first.alone(0).jobs[0].hosts == first.jobs[0].hosts != second.jobs[0].hosts
    assert sorted(host for job in first.jobs for host in job.hosts) == sorted(2 * list(range(16)))
    other = at(plan, "allreduce", plan.seeds[0]).resolve()
    assert [job.hosts for job in other.jobs] == [job.hosts for job in first.jobs]


def test_units_and_factors_are_those_of_the_benchmark() -> None:
    times = np.array([1_000_000] * 98 + [5_000_000] * 2)
    mean, worst = TESTS["latency"].measured(times)
    assert mean == pytest.approx(0.54), "half of an iteration with two messages, usec"
    assert worst == pytest.approx(2.5)
    assert TESTS["allreduce"].measured(times)[0] == pytest.approx(1.08)
    mean, worst = TESTS["bandwidth"].measured(times)
    assert mean == pytest.approx(2 / 1.08e-6), "two MiB an iteration, MiB/s"
    assert worst == pytest.approx(2 / 5e-6)
    assert TESTS["latency"].impact(2.0, 6.0) == TESTS["bandwidth"].impact(6.0, 2.0) == 3.0


def test_isolated_figures_on_a_switch_are_those_of_the_model() -> None:
    plan = planned(ranks_per_host=1)
    # Two sends; the second message takes two links, a switch and its 34 bytes; then two receives.
    iteration = 2 * 200 + (2 * 100 + 100 + 34 * 0.08) + 2 * 200
    found = measured(plan, "latency", congested=False)
    assert found["mean"] == pytest.approx(found["p99"]) == pytest.approx(iteration / 2 / 1000)
    assert (found["iterations"], found["samples"]) == (200, 200 * 4)
    # Two rounds of recursive doubling between four ranks, each with a send, a trip and a receive.
    found = measured(plan, "allreduce", congested=False)
    assert found["mean"] == pytest.approx(2 * (200 + 302.72 + 200) / 1000, rel=0.02)
    # The link carries two MiB in packets of 4 KiB, and a rendezvous and a barrier come on top.
    found = measured(plan, "bandwidth", congested=False)
    limit = 12.5e9 * 4096 / 4122 / 2**20
    assert 0.9 * limit < found["mean"] < limit
    assert found["samples"] == 8 * 4


def test_the_estimate_of_memory_is_of_the_iterations_that_are_measured() -> None:
    found = [at(planned(duration=time), "latency", 1).resolve().estimate for time in ("1 ms", "10 s")]
    memory = [estimate.memory for estimate in found if estimate is not None]
    assert memory[1] < 1.1 * memory[0]


def test_without_congestion_control_latency_is_tens_of_times_higher() -> None:
    plan = planned(DRAGONFLY, iterations=50)
    isolated, congested = (measured(plan, "latency", congested=congested) for congested in (False, True))
    assert congested["mean"] > 10 * isolated["mean"]
    assert congested["p99"] > 50 * isolated["p99"]


def test_transports_without_usable_defaults_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**entries("transport"), "other": Entry("other", "of a plug-in")}
    monkeypatch.setattr("fairlane.study.shipped.gpcnet.study.entries", lambda _: known)
    plan = planned()
    assert "other" not in plan.transports
    assert "unknown transport" in plan.left_out["other"]
    assert "credits_only" in plan.transports


SMALL = ["--ranks-per-host", "1", "--replicates", "3", "--iterations", "25", "--transport", "credits_only"]


def stored(folder: Path, *options: str) -> int:
    """The command on a small switch, in ``folder / "out"``."""
    file = folder / "scenario.toml"
    file.write_text(scenario().text)
    return execute(["gpcnet", str(file), "--out", str(folder / "out"), *SMALL, *options])


def test_the_command_prints_the_benchmarks_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stored(tmp_path) == 0
    said = capsys.readouterr()
    assert "jobs of the scenario are replaced" in said.err
    for words in ("16 ranks on 16 hosts", "4 hosts with Network Tests, 12 with", "Congestion Impact Factor", " ± "):
        assert words in said.out
    for words in ("RR Two-sided Lat (8 B)", "RR Two-sided BW+Sync (131072 B)", "Multiple Allreduce (8 B)"):
        assert said.out.count(words) == 3
    assert "fewer iterations" not in said.out


def test_the_command_stores_tables_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stored(tmp_path, "--json", "--seed", "7") == 0
    out, printed = tmp_path / "out", json.loads(capsys.readouterr().out)
    assert {path.name for path in out.iterdir()} == {
        "answers",
        "gpcnet.json",
        "gpcnet.png",
        "impact.csv",
        "impact.parquet",
        "manifest.json",
        "scenario.toml",
        "spec.json",
        "trials.parquet",
    }
    assert_drawn(out / "gpcnet.png")
    trials = pl.read_parquet(out / "trials.parquet")
    assert trials.height == 3 * 3 * 2
    assert trials["seed"].unique().sort().to_list() == [7, 8, 9]
    latency = trials.filter(pl.col("test") == "latency").pivot("congested", index="seed", values="mean")
    factors = latency["true"] / latency["false"]
    first = printed["impact"][0]
    assert (first["transport"], first["test"], first["unit"]) == ("credits_only", "latency", "usec")
    assert first["impact"] == pytest.approx(factors.mean())
    assert first["impact_low"] <= first["impact"] <= first["impact_high"]
    assert printed["seeds"] == [7, 8, 9]
    assert printed["hosts_of_test"] == 4
    assert stored(tmp_path) == 2, "the folder is taken"


def test_what_is_stored_is_read_again_and_damage_is_named(tmp_path: Path) -> None:
    assert stored(tmp_path, "--quiet") == 0
    out = tmp_path / "out"
    found = load(out)
    assert isinstance(found, Gpcnet)
    assert found.impact["test"].to_list() == list(TESTS)
    assert found.headline() == "Congestion impact factors: mean up to 1 with credits_only"
    assert "RR Two-sided Lat" in str(found._repr_html_())
    assert query(out, "select count(*) as n from trials")["n"].to_list() == [18]
    (out / "gpcnet.png").unlink()
    assert execute(["plot", str(out)]) == 0
    assert_drawn(out / "gpcnet.png")
    (out / "trials.parquet").write_bytes((out / "trials.parquet").read_bytes() + b"x")
    with pytest.raises(ResultsError, match=r"trials\.parquet: has changed"):
        load(out)


def test_transports_are_compared_in_one_figure_and_headline(tmp_path: Path) -> None:
    assert stored(tmp_path, "--quiet") == 0
    found = load(tmp_path / "out")
    assert isinstance(found, Gpcnet)
    factors = [name for name in found.impact.columns if name.startswith("impact")]
    other = found.impact.with_columns(pl.lit("other").alias("transport"), pl.col(factors) * 20)
    both = replace(found, impact=pl.concat([found.impact, other]))
    assert both.headline() == "Congestion impact factors: mean up to 20 with other and 1 with credits_only"
    (chart,) = view_of([both]).charts
    assert [row["transport"] for row in chart.data] == 3 * ["credits_only"] + 3 * ["other"]
    empty = replace(found, impact=found.impact.clear())
    assert empty.headline() == "No congestion impact factor was measured"


def test_what_is_stored_is_not_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated: list[str] = []
    compute = Measurement.compute

    def spied(self: Measurement, watch: Stopwatch) -> Answer:
        simulated.append(self.label)
        return compute(self, watch)

    monkeypatch.setattr(Measurement, "compute", spied)
    assert stored(tmp_path, "--quiet", "--replicates", "1") == 0
    assert len(simulated) == 6
    simulated.clear()
    assert stored(tmp_path, "--quiet", "--replicates", "2", "--resume") == 0
    assert len(simulated) == 6
    assert all(label.endswith("seed 2") for label in simulated)
    assert load(tmp_path / "out").impact["impact_low"].null_count() == 3  # type: ignore[union-attr]
    assert stored(tmp_path, "--resume", "--ranks-per-host", "2") == 2
    assert "ranks_per_host was 1, is 2" in capsys.readouterr().err


def test_few_replicates_and_iterations_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stored(tmp_path, "--replicates", "1", "--duration", "230 us") == 0
    said = capsys.readouterr().out
    assert "Fewer than three replicates give no confidence interval" in said
    assert "Ended after 230 µs with fewer iterations: " in said
    assert "credits_only bandwidth" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--transport", "credit_only"], ["--transport", "credit_only", "credits_only", "did you mean"]),
        (["--message-size", "4 XB"], ["--message-size", "4 XB"]),
        (["--warm-up", "soon"], ["--warm-up", "soon"]),
        (["--warm-up", "2 ms", "--duration", "1 ms"], ["--warm-up", "2 ms", "below 1 ms"]),
        (["--ranks-per-host", "0", "--window", "-1"], ["--ranks-per-host = 0", "--window = -1", "at least 1"]),
        (["--set", "fabric.hosts=9"], ["fabric", "9 hosts", "10 hosts or more"]),
        (["--set", "fabric.host=9"], ["fabric.host", 'did you mean "hosts"']),
    ],
)
def test_wrong_options_leave_nothing_behind(
    options: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stored(tmp_path, *options) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]


def test_a_scenario_with_background_jobs_is_refused() -> None:
    background = {"fill": 0.5, "lifetime": "100 us", "jobs": [{"weight": 1, "hosts": 4, "workload": "incast"}]}
    with pytest.raises(ScenarioError, match="background"):
        Benchmark(scenario(background=background))
