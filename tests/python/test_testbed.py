"""The testbed without a network: its file, the plan of namespaces, scripts, the host model, and the comparison."""

import math
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pytest
from scipy import stats

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.core.wording import listed, percent, with_half_width
from fairlane.lab.testbed import file as files
from fairlane.lab.testbed import machine
from fairlane.lab.testbed.experiment import fitted
from fairlane.lab.testbed.machine import TestbedError as NotPossible
from fairlane.lab.testbed.measure import ISOLATED, TOGETHER, TREATED, phases_of
from fairlane.lab.testbed.plan import PREFIX, Plan
from fairlane.lab.testbed.results import Results, comparison, effects, judge, measured_effect, measured_w, prepare
from fairlane.lab.testbed.script import script_of
from fairlane.lab.testbed.simulate import Fit, HostModel, fit, isolated_s, predicted_w, qos_table
from fairlane.lab.testbed.view import view
from pages import ROOT, table
from view_checks import assert_complete

EXAMPLE = Path(__file__).parents[2] / "examples" / "testbed" / "two-switches.toml"


def example(**changes: Any) -> files.TestbedFile:
    return files.TestbedFile.load(EXAMPLE, set=[f"{key.replace('__', '.')}={value}" for key, value in changes.items()])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('fabric.host_link.rate="0 Mb/s"', ["fabric.host_link.rate", "100"]),
        ('jobs[0].hosts=["a0", "a9"]', ["jobs[0].hosts", "a9", "unknown host; allowed: a0, a1"]),
        ('jobs[1].hosts="a[0-1],b[1-2]"', ["jobs[1].hosts", "host a0 belongs to job latency"]),
        ('jobs[0].hosts=["a0", "a0"]', ["jobs[0].hosts", "a host is listed twice"]),
        ('jobs[0].workload.name="ping_pongs"', ["jobs[0].workload", "ping_pong"]),
        ('jobs[0].workload={name="allreduce", compute="1 ms"}', ["jobs[0].workload.name", "allreduce"]),
        ('fabric.trunks[0].between=["left", "rigth"]', ["fabric.trunks[0].between", 'did you mean "right"']),
        ("fabric.trunks=[]", ["fabric.trunks", "nothing connects switch right with left"]),
        ('fabric.switches[1].hosts="a[0-7]"', ["fabric.switches[1].hosts", "duplicate name"]),
        ("qos.treatments[0].levels.latency=2", ["qos.treatments[0].levels.latency", "has no class"]),
        ("qos.treatments[0].levels.late=1", ["qos.treatments[0].levels.late", 'did you mean "latency"']),
        ("agent.levels=[2]", ["agent.levels[0]", "has no class of its own"]),
        ("measure.repetitions=1", ["measure.repetitions", "2"]),
        ('fabric.congestion_control="bbr"', ["fabric.congestion_control", "no", "fixed window", "reno or cubic"]),
    ],
)
def test_wrong_files_are_refused_with_key_and_allowed_values(
    change: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["testbed", "run", str(EXAMPLE), "--set", change]) == 2
    error = capsys.readouterr().err
    for one in words:
        assert one in error, error


def test_a_machine_without_programs_is_named_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "program", lambda name: None if name == "mpirun" else f"/usr/bin/{name}")
    assert execute(["testbed", "run", str(EXAMPLE), "--out", str(tmp_path / "out")]) == 2
    assert "mpirun: not installed; on Debian: apt install openmpi-bin" in capsys.readouterr().err
    monkeypatch.setattr(machine, "program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert execute(["testbed", "run", str(EXAMPLE), "--out", str(tmp_path / "out")]) == 2
    assert "network namespaces need root" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folders_of_killed_testbeds_are_removed_and_those_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = tmp_path / "memory"
    for name in (f"{PREFIX}left/pages", "other"):
        (memory / name).mkdir(parents=True)
    (memory / f"{PREFIX}link").symlink_to(memory / "other")
    for name, value in (("SHARED_MEMORY", memory), ("LOCK", tmp_path / "lock"), ("NAMESPACES", tmp_path / "none")):
        monkeypatch.setattr(machine, name, value)
    monkeypatch.setattr(machine, "up", lambda _: None)
    with machine.established(Plan(example().fabric)) as folder:
        assert folder.parent == memory
        assert execute(["testbed", "down"]) == 2, "while there is one on this machine"
        assert "another process of this machine has a testbed" in capsys.readouterr().err
        assert machine.down() == [str(memory / f"{PREFIX}left")], "not what a process has taken"
        assert folder.is_dir()
    assert sorted(path.name for path in memory.iterdir()) == [f"{PREFIX}link", "other"]
    (memory / f"{PREFIX}left").mkdir()
    assert execute(["testbed", "down"]) == 0
    assert capsys.readouterr().out == f"removed {memory / f'{PREFIX}left'}\n"
    assert execute(["testbed", "down"]) == 0
    assert capsys.readouterr().out == "there is no testbed\n"


def test_every_device_is_made_in_a_namespace_of_the_testbed() -> None:
    plan = Plan(example().fabric)
    assert all(name.startswith(PREFIX) for name in plan.namespaces)
    assert len(set(plan.namespaces)) == len(plan.namespaces) == 1 + 2 + 1 + 16
    for name, commands in [*plan.links(), *plan.shaping()]:
        assert name in plan.namespaces
        for command in commands:
            other = command.partition(" netns ")[2]
            assert not other or other in plan.namespaces
    # Each cable has its rate at both ends, and the devices of the switches on trunks are left to the agent.
    shaped = [command for _, commands in plan.shaping() for command in commands]
    assert len(shaped) == 2 * 16 + 2
    assert all("rate 5000000bit" in command for command in shaped)
    assert [(one.device, one.rate) for one in plan.trunk_devices] == [("trunk0", 5_000_000)] * 2


def test_scripts_have_the_messages_of_the_workload() -> None:
    file = example()
    for job in file.jobs:
        script = script_of(job.workload, len(job.hosts))
        assert not script.refused
        sends = [line.split() for lines in script.lines for line in lines if line.startswith("isend")]
        receives = [line for lines in script.lines for line in lines if line.startswith("irecv")]
        assert len(sends) == len(receives)
        assert all(lines.count("mark") >= 1 for lines in script.lines)
    ping_pong = script_of(file.jobs[0].workload, 2)
    assert {line.split()[2] for line in ping_pong.lines[0] if line.startswith("isend")} == {"64"}


def test_replicates_have_the_programs_that_ranks_execute_and_starts_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Another seed would divide the computation of a job among its ranks in another way: that would be another job.
    seen = []

    class Ran:
        def tables(self) -> dict[str, pl.DataFrame]:
            return {"jobs": pl.DataFrame({"name": ["latency"], "w": [-0.5]})}

    def run(scenario: Scenario, **_: Any) -> Ran:
        seen.append(scenario)
        return Ran()

    monkeypatch.setattr("fairlane.lab.testbed.simulate.run", run)
    file = example(seed=7)
    predicted_w(file, HostModel(0.95, 50e-6))
    assert len(seen) == file.simulate.replicates
    assert {one.seed for one in seen} == {7}
    assert len({tuple(job.start for job in one.jobs) for one in seen}) == len(seen)


def test_a_congestion_control_that_the_kernel_lacks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded").write_text("reno cubic\n")
    monkeypatch.setattr(machine, "CONGESTION_CONTROLS", tmp_path / "loaded")
    monkeypatch.setattr(machine, "check", lambda: None)
    with pytest.raises(NotPossible, match=r'fabric\.congestion_control = "vegas": .*allowed: reno, cubic'):
        machine.up(Plan(example(fabric__congestion_control='"vegas"').fabric))


def test_repetitions_have_their_phases_in_both_orders() -> None:
    file = example()
    kinds = [phase.kind for phase in phases_of(file, 0)]
    assert kinds == [ISOLATED] * 5 + [TOGETHER, f"{TREATED}latency-first", f"{TREATED}stencil-and-latency-first"]
    assert [phase.kind for phase in phases_of(file, 1)] == kinds[::-1]


def test_the_fit_finds_the_model_of_simulated_measurements() -> None:
    file = example()
    model = HostModel(0.91, 150e-6)
    ones = {job.name: 1.0 for job in file.jobs}
    times = isolated_s(file, model, isolated_s(file, model, ones))
    rows = [("isolated", job, 0, time) for job, time in times.items()]
    table = pl.DataFrame(rows, ["kind", "job", "repetition", "seconds_per_iteration"], orient="row")
    found = fitted(file, table)
    assert found.error < 0.02
    assert found.model.efficiency == pytest.approx(0.91, abs=0.02)
    assert found.model.overhead_s == pytest.approx(150e-6, rel=0.5)


def test_a_fit_of_a_formula_is_exact() -> None:
    def simulate(model: HostModel) -> dict[str, float]:
        return {"large": 0.1 / model.efficiency + 2 * model.overhead_s, "small": 1e-4 + 2 * model.overhead_s}

    true = HostModel(0.8, 3e-4)
    found = fit(simulate(true), simulate)
    assert found.model.efficiency == pytest.approx(0.8, rel=1e-3)
    assert found.model.overhead_s == pytest.approx(3e-4, rel=1e-2)


def test_classes_become_weights_or_priorities() -> None:
    levels = example().qos
    assert levels is not None
    assert qos_table(levels.levels)["arbiter"] == {"name": "weighted_round_robin", "weights": [1, 3]}
    first = [one.model_copy(update={"priority": 1 - one.level}) for one in levels.levels]
    assert qos_table(first)["arbiter"]["order"] == [1, 0]


def phases(changes: dict[str, tuple[float, float]]) -> pl.DataFrame:
    """Times per iteration of jobs, isolated, together and treated, with noise over repetitions."""
    rng = numpy.random.default_rng(4)
    rows = []
    for repetition in range(8):
        drift = 1 + 0.2 * repetition  # affects all phases of a repetition alike
        for job, (together, treated) in changes.items():
            for kind, factor in ((ISOLATED, 1.0), (TOGETHER, together), ("treated:x", treated)):
                rows.append((repetition, kind, job, 20, drift * factor * rng.normal(1, 0.01)))
    return pl.DataFrame(rows, ["repetition", "kind", "job", "iterations", "seconds_per_iteration"], orient="row")


def test_repetitions_are_compared_in_pairs_and_judged() -> None:
    times = phases({"a": (2.0, 1.0), "b": (1.25, 1.25), "c": (1.0, 1.1)})
    w = measured_w(times)
    found = comparison(w, {"a": [-0.48, -0.5, -0.52], "b": [-0.1, -0.11, -0.12], "c": [0.0, 0.01, 0.02]})
    assert found["measured"].to_list() == pytest.approx([-0.5, -0.2, 0.0], abs=0.02)
    for row in found.iter_rows(named=True):
        assert row["measured_low"] < row["measured"] < row["measured_high"]
        assert row["measured_high"] - row["measured_low"] < 0.05, "the drift of the machine cancels"
    treated = effects("x", measured_effect(times, "treated:x"), {"a": [1.0] * 3, "b": [0.1] * 3, "c": [0.2] * 3})
    assert treated["beyond_noise"].to_list() == [True, False, True]
    assert treated["sign_right"].to_list()[0] is True
    assert treated["sign_right"].to_list()[2] is False
    verdict = judge(found, treated)
    assert verdict.spearman == 1.0
    assert verdict.most_different == "b"
    assert verdict.most_difference == pytest.approx(0.09, abs=0.02)
    assert verdict.signs == (1, 2)
    assert "sign of effects beyond noise: 1 of 2 right" in verdict.lines()
    other = judge(comparison(w, {"a": [0.0, 0.01], "b": [-0.1, -0.11], "c": [-0.5, -0.51]}), None)
    assert other.spearman == -1.0


def test_results_are_stored_and_drawn(tmp_path: Path) -> None:
    file = example()
    times = phases({job.name: (1.5 + 0.1 * at, 1.2) for at, job in enumerate(file.jobs)})
    model = HostModel(0.95, 1e-4)
    w = comparison(
        measured_w(times),
        predicted_w(
            file.model_copy(
                update={"simulate": file.simulate.model_copy(update={"replicates": 3, "duration": 2 * 10**12})}
            ),
            model,
        ),
    )
    treated = effects("x", measured_effect(times, "treated:x"), {job.name: [0.2, 0.3, 0.25] for job in file.jobs})
    ones = {job.name: 1.0 for job in file.jobs}
    control = treated.with_columns(level=pl.lit(0))
    results = Results(file, Fit(model, ones, ones), w, treated, judge(w, treated), control, ("decision 1: ...",))
    results.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"w.csv", "effects.csv", "agent.csv", "testbed.json"}
    made = view(results)
    assert [chart.name for chart in made.charts] == ["w", "treatment0", "agent"]
    assert "decision 1: ..." in made.remarks
    assert_complete(made, tmp_path)
    assert all(math.isfinite(value) for value in w["predicted"])


def test_a_folder_of_another_testbed_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "out", example(), resume=False)
    with pytest.raises(ScenarioError, match="directory exists"):
        prepare(tmp_path / "out", example(), resume=False)
    prepare(tmp_path / "out", example(simulate__replicates=4), resume=True)
    with pytest.raises(ScenarioError, match="measurements of another testbed"):
        prepare(tmp_path / "out", example(seed=9), resume=True)


def test_the_page_about_a_controller_shows_what_is_stored() -> None:
    rows = table("docs/progress.md", "measured", "simulated", "simulated − measured, points")
    shown = [(row["measured"], row["simulated"], row["simulated − measured, points"]) for row in rows]
    stored = pl.read_csv(ROOT / "docs" / "validation" / "steered.csv").rows(named=True)
    assert [row["job"].split(":")[0] for row in rows] == [*(row["job"] for row in stored[:-1]), "mean over jobs"]

    def change(row: dict[str, float], key: str) -> str:
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        return with_half_width(row[key], low, high, lambda value: percent(value, signed=True))

    def points(row: dict[str, float]) -> str:
        ends = (f"{100 * row[key]:+.1f}" for key in ("difference", "difference_low", "difference_high"))
        return "{} ({} to {})".format(*ends).replace("-", "−")

    assert shown == [(change(row, "measured"), change(row, "predicted"), points(row)) for row in stored]
    repetitions = pl.read_csv(ROOT / "docs" / "validation" / "steered-repetitions.csv")
    gains = repetitions.with_columns(gain=pl.col("without_s") / pl.col("controlled_s") - 1)
    means = gains.group_by("repetition").agg(pl.col("gain").mean())
    for row in stored:
        gain = (means if row["job"] == "(mean)" else gains.filter(job=row["job"]))["gain"].to_numpy()
        half = stats.t.ppf(0.975, gain.size - 1) * stats.sem(gain)
        expected = [row[key] for key in ("measured", "measured_low", "measured_high")]
        assert [gain.mean(), gain.mean() - half, gain.mean() + half] == pytest.approx(expected, abs=1e-5)
    costs = pl.read_csv(ROOT / "docs" / "validation" / "steered-costs.csv").to_numpy()
    reads, changes = 1e3 * costs[:, 2], 1e3 * costs[costs[:, 3] > 0, 3]
    typical = f"takes {numpy.median(reads):.1f} ms, a verified change {numpy.median(changes):.1f} ms"
    said = f"{typical} (medians; 95th percentile {numpy.quantile(changes, 0.95):.0f} ms)"
    page = (ROOT / "docs" / "progress.md").read_text("utf-8")
    assert said in page
    by_hosts = (
        pl.read_csv(ROOT / "docs" / "validation" / "opensm-costs.csv").group_by("hosts").agg(pl.median("change_s"))
    )
    hosts, medians = by_hosts.sort("hosts").get_columns()
    said = f"{listed([f'{1e3 * it:.0f}' for it in medians])} ms with {listed([*map(str, hosts)])} hosts (medians)"
    assert f"a change of weights takes {said}" in page
    apart = [row["job"] for row in stored if row["difference_low"] > 0 or row["difference_high"] < 0]
    *first, last = [name.replace("(mean)", "the mean") for name in apart]
    assert f"For {', '.join(first)} and {last} the interval of the difference excludes zero." in page
    by_cost = pl.read_csv(ROOT / "docs" / "validation" / "steered-by-cost.csv")
    gains = by_cost.group_by("cost_s", "replicate").agg(pl.col("improvement").mean()).sort("cost_s", "replicate")
    costs_said, gains_said = [], []
    for group in gains.partition_by("cost_s"):
        gain = group["improvement"].to_numpy()
        low, high = stats.t.interval(0.95, gain.size - 1, gain.mean(), stats.sem(gain))
        gains_said.append(with_half_width(gain.mean(), low, high, lambda value: percent(value, signed=True)))
        costs_said.append(f"{1e3 * group['cost_s'][0]:.0f}")
    assert f"{listed(costs_said)} ms in 300 ms the simulated mean gain is {listed(gains_said)} (40 replicates)" in page
