"""Advice: alternatives are what single runs are, costs are those of long runs, intervals cover what they say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from advised import SCENARIO
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.learn.advice import advise
from fairlane.sim import runner
from fairlane.study.shipped.advice import Alternatives, Check, ask
from fairlane.study.shipped.advice.measure import change, pace, progress
from fairlane.study.shipped.advice.question import Choice
from fairlane.study.shipped.advice.results import COVERAGE, Advice, lognormal_interval, ranked
from fairlane.study.shipped.advice.study import link_share, weights
from fairlane.study.tasks.task import Stopwatch
from fairlane.views.advice import view
from pictures import assert_drawn

RING = 'workload = { name = "ring", messages_per_iteration = 1, message_size = "16 KiB", compute = "%d us" }'
TRACE = Path(__file__).parent.parent / "data" / "traces" / "npb_ft-64.tar.zst"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def test_alternatives_are_what_single_runs_are(scenario: Path, tmp_path: Path) -> None:
    found = advise(scenario, cap="65 W", seeds=1, out=tmp_path / "advice", progress=False)
    table = found.alternatives
    assert table.height == 3 * 2 * 3
    assert table["iteration_ms"].is_sorted()
    assert table["low_ms"].null_count() == table.height, "one seed says nothing of another"
    for row in (table.row(0, named=True), table.row(-1, named=True)):
        rails = '"round_robin"' if row["rails"] == "all" else f"{{ {row['rails'].replace(' ', ' = ')} }}"
        changes = [
            "seed=1",
            f"jobs[0].rails={rails}",
            f"jobs[0].service_level={row['service_level']}",
            f'jobs[0].placement="{row["placement"]}"',
            'jobs[0].power_cap="65 W"',
        ]
        single = runner.run(
            Scenario.load(scenario, set=changes), out=tmp_path / f"{row['rails']}", progress=False, figures=False
        )
        job, neighbour = single.jobs.to_dicts()
        assert row["iteration_ms"] == pytest.approx(1e3 * job["seconds_per_iteration"], rel=0.03)
        assert row["isolated_ms"] == pytest.approx(1e3 * job["isolated_seconds_per_iteration"], rel=0.03)
        # Whole iterations of the neighbour say the same, as far as they say anything.
        assert row["neighbours"] == pytest.approx(neighbour["w"], abs=1.5 / neighbour["isolated_iterations"])


def test_a_short_simulation_tells_what_neighbours_lose(scenario: Path) -> None:
    """A ring in the lane of the lesser weight, beside one that never computes: a tenth of the time tells its loss."""
    changes = [
        f'jobs[{at}]={{ name = "{name}", ranks = 8, {RING % compute}, rails = {{ only = 0 }}, service_level = {at} }}'
        for at, (name, compute) in enumerate((("application", 0), ("neighbour", 20)))
    ]
    costs = []
    for duration in ("0.9 ms", "9 ms"):
        question = ask(scenario, None, None, None, [*changes, f'duration="{duration}"'])
        only = replace(question, choices=[Choice("only 0", 0, "random")])
        beside = Alternatives(only, seeds=2).run().runs.filter(pl.col("link_share").is_not_null())
        costs.append(float(beside["neighbours"].to_numpy().mean()))
        assert beside["iterations"].to_numpy().min() >= 8
    short, long = costs
    assert long < -0.02, "there is something to tell"
    assert short == pytest.approx(long, abs=0.01)


def test_whatever_was_simulated_before_an_interruption_is_ranked(scenario: Path) -> None:
    question = ask(scenario, None, None, [0], ['duration="0.2 ms"'])
    study = Alternatives(replace(question, choices=question.choices[:2]), seeds=1)
    rows = [{**task.condition, "seed": 1, **task.compute(Stopwatch())} for task in study.measurements()]
    heights = [study.tables_of(rows[:count])["alternatives"].height for count in range(len(rows) + 1)]
    assert heights == [0, *[2] * len(rows)]
    whole, part = (study.tables_of(rows[:count])["alternatives"] for count in (len(rows), 2))
    assert whole["neighbours"].null_count() == 0
    assert part["iteration_ms"].null_count() == 2, "neither has co-run with its neighbours yet"


def test_an_interrupted_check_compares_nothing(scenario: Path) -> None:
    question = ask(scenario, None, None, [0], ['duration="0.2 ms"'])
    study = Alternatives(replace(question, choices=question.choices[:2]), seeds=1, check="0.3 ms")
    rows = [{**task.condition, "seed": task.seed, **task.compute(Stopwatch())} for task in study.measurements()]
    meta = {**study.described(), **study.summary(), "seeds": [1]}
    for count in range(len(rows) + 1):
        tables: dict[str, Any] = study.tables_of(rows[:count])
        advice = Advice(**tables, meta={**meta, "partial": count < len(rows)})
        assert (advice.checked is None) == (count < len(rows))
        assert ("no alternative" in advice.headline()) == (not advice.alternatives["iteration_ms"].count())
        remarks = view({"advice": advice}).remarks
        assert any("Interrupted" in remark for remark in remarks) == (count < len(rows))
        assert any("Checked" in remark for remark in remarks) == (count == len(rows))
    unchecked = [row for row in rows if row["run"] != "co-run" or "length" not in row]
    incomplete: dict[str, Any] = study.tables_of(unchecked)
    advice = Advice(**incomplete, meta={**meta, "partial": False})
    assert any("Not checked: in 0.3 ms" in remark for remark in view({"advice": advice}).remarks)


def test_progress_compares_the_same_iterations() -> None:
    """Iterations that get longer: more of them are done in the faster run, and none of these may count."""
    times = {0: [10, 20, 40, 80], 1: [12, 24, 48]}
    rows = [(rank, at + 1, time) for rank, own in times.items() for at, time in enumerate(own)]
    marks = pl.DataFrame(rows, schema=["rank", "iteration", "at"], orient="row")
    found = progress(marks, ranks=2)
    assert found == {"last": [12.0, 24.0, 48.0], "mean": [11.0, 22.0, 44.0]}
    assert pace(found) == (48 - 12) / 2
    assert pace(found, 2) == 24 - 12
    assert pace({"last": [12.0]}) is None
    slower = {"mean": [22.0, 44.0, 88.0, 1000.0], "delivered": 1.0}
    assert change(slower, {**found, "delivered": 1.0}) == pytest.approx(-0.5)
    # Two marks are too few: the bytes that came tell it.
    assert change({"mean": [1.0, 2.0], "delivered": 0.9}, {"mean": [1.0, 2.0], "delivered": 1.0}) == pytest.approx(-0.1)


def test_the_interval_is_students_and_covers_what_it_says() -> None:
    low, middle, high = lognormal_interval([1.0, 4.0], COVERAGE)
    deviation = np.log(4) / np.sqrt(2)  # of two numbers: their distance over the square root of two
    half = stats.t.ppf(0.9, 1) * deviation * np.sqrt(1.5)
    assert middle == pytest.approx(2.0)
    assert [low, high] == pytest.approx([2 * np.exp(-half), 2 * np.exp(half)])
    assert lognormal_interval([3.0], COVERAGE)[0] is lognormal_interval([3.0], COVERAGE)[2] is None
    numbers = np.exp(np.random.default_rng(1).normal(0, 0.3, (4000, 4)))
    inside = 0
    for *known, unknown in numbers.tolist():
        ends = lognormal_interval(known, COVERAGE)
        assert ends[0] is not None
        assert ends[2] is not None
        inside += ends[0] <= unknown <= ends[2]
    assert inside / len(numbers) == pytest.approx(COVERAGE, abs=0.02)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--job", "aplication"], ["--job", "aplication", "application"]),
        (["--level", "2"], ["--level = 2", "0 to 1"]),
        (["--cap", "20 W"], ['--cap = "20 W"', "20 W when idle", "> 20 W"]),
        (["--length", "soon"], ["duration", "soon"]),
        (["--check", "soon"], ["duration", "soon"]),
        (["--model", "none.json"], ["none.json", "cannot be read"]),
        (["--set", "jobs[1].rails={ only = 2 }"], ["jobs[1].rails.only = 2", "0 to 1"]),
        (["--set", "qos.service_levels=3", "--set", "qos.lanes=2"], ["qos.lanes", "more service levels than lanes"]),
        (["--set", "qos.sl2vl=[0, 1, 2]"], ["qos.arbiter.weights", "as many weights as there are virtual lanes, 3"]),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    options: list[str], words: list[str], scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["advise", str(scenario), *options, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (tmp_path / "out").exists()


def test_one_that_is_too_short_says_so(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["advise", str(scenario), "--length", "4 us", "--out", str(tmp_path / "out")]) == 1
    assert "make it longer" in capsys.readouterr().err


def test_compute_times_that_are_to_be_found_are_the_same_for_all(scenario: Path) -> None:
    question = ask(scenario, None, None, None, ['jobs[0].workload="nearest_neighbor"', "jobs[1].workload.compute=0"])
    found = [question.point(choice, 1).pinned.scenario["jobs"][0]["workload"]["compute"] for choice in question.choices]
    assert len(set(found)) == 1


def test_background_jobs_are_neighbours(scenario: Path) -> None:
    with scenario.open("a") as file:
        file.write('[background]\nfill = 0.9\n[[background.jobs]]\nworkload = { name = "ring", compute = "5 us" }\n')
    question = ask(scenario, None, None, None, ["jobs[1].ranks=2"])
    point = question.point(question.choices[0], 1)
    assert len(point.decided.jobs) > len(question.scenario.jobs)
    assert len(point.pinned.scenario["jobs"]) == len(point.decided.jobs)


def test_a_trace_is_advised_and_checked(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TRACE.parent)  # neither where the scenario is nor where workers are
    trace = f'trace = {{ path = "{TRACE}", compute_scale = 0.05, iteration = {{ collective = "alltoall" }} }}'
    changes = [f'jobs[0]={{ name = "recorded", ranks_per_host = 8, {trace} }}', "jobs[1].ranks=6"]
    options = [word for one in changes for word in ("--set", one)]
    length = ["--length", "0.6 ms", "--check", "0.8 ms", "--seeds", "1", "--level", "0", "--show", "20"]
    assert execute(["advise", str(scenario), *options, *length, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "recorded: 9 alternatives" in said
    assert (tmp_path / "out" / "advice.html").is_file()
    assert_drawn(tmp_path / "out" / "advice.png")
    assert "without an interval" in said
    assert "simulations of 0.8 ms with 1 other seed" in said
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert set(runs["application"]) == {"npb_ft-64"}
    assert runs["iterations"].to_numpy().min() >= 2


def test_shares_of_links_are_those_of_lanes(scenario: Path) -> None:
    question = ask(scenario, None, None, None, ["jobs[1].ranks=2"])
    shares = [link_share(question.point(Choice("all", level, "random"), 1).decided, 0) for level in (0, 1)]
    assert shares == [pytest.approx(1 / 2), pytest.approx(1 / 8)], "both at level 0; the lane of weight 1 of 8"
    strict = ask(scenario, None, None, None, ['qos.arbiter={ name = "strict_priority", order = [1, 0] }'])
    assert weights(strict.point(Choice("all", 0, "random"), 1).decided) is None


def test_an_alternative_too_slow_to_be_told_stands_last(scenario: Path) -> None:
    question = ask(scenario, None, None, [0], ["jobs[0].rails={ only = 0 }", "fabric.rails=1"])
    assert [choice.placement for choice in question.choices] == ["packed", "spread", "random"]
    times: dict[str, list[float | None]] = {"packed": [1.0, None], "spread": [3.0, 3.0], "random": [2.0, 2.0]}
    rows = [
        {
            "rails": "only 0",
            "placement": placement,
            "service_level": level,
            "link_share": None if level is None else 0.5,
            "run_time_ms": 1.0 if level is None else time,
            "neighbours": None if level is None else -0.25,
            "digest": f"{placement} {seed} {level}",
        }
        for placement, own in times.items()
        for seed, time in enumerate(own)
        for level in (None, 0)
    ]
    table = ranked(question.choices, pl.DataFrame(rows))
    assert table["placement"].to_list() == ["random", "spread", "packed"]
    assert table["iteration_ms"].to_list() == [pytest.approx(2.0), pytest.approx(3.0), None]
    assert table["neighbours"].to_list() == [-0.25] * 3


def test_checking_counts_places_and_losses() -> None:
    def table(*times: float) -> pl.DataFrame:
        names = ["all", "only 0", "only 1"]
        rows = [(rail, 0, "random", time, time * 0.9, time * 1.1) for rail, time in zip(names, times, strict=True)]
        columns = ["rails", "service_level", "placement", "iteration_ms", "low_ms", "high_ms"]
        return pl.DataFrame(rows, schema=columns, orient="row").sort("iteration_ms")

    runs = table(2.0, 1.0, 1.5).select("rails", "service_level", "placement", "iteration_ms")
    runs = runs.rename({"iteration_ms": "run_time_ms"}).with_columns(link_share=pl.lit(0.5))
    found = Check.of(table(1.0, 1.2, 1.5), table(2.0, 1.0, 1.5), runs, "4 ms", 1)
    assert (found.rank, found.best) == (3, "only 0, level 0, random")
    assert [found.regret, found.random_regret] == pytest.approx([1.0, 0.5])
    assert found.coverage == pytest.approx(1 / 3), "only that of adapter 1"
