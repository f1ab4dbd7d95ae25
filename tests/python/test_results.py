"""The tables of a run, its folder, and SQL over it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane.views.run.interference
from fairlane import Scenario, query
from fairlane.core.errors import ResultsError
from fairlane.core.tables import EngineTables, Work, frame
from fairlane.core.wording import percent, seconds, short_percent
from fairlane.results import derive
from fairlane.results.parquet import read_parquet
from fairlane.results.run import Run, RunMeta, Source, load_run, new_folder
from fairlane.results.schemas import SCHEMA_VERSION
from fairlane.results.views import Interference, by_link
from fairlane.sim import runner
from fake_engine import MS, FakeEngine, fake_links, table
from report_runs import printed
from samples import TREE

JOBS = [
    {"name": "flood-0", "hosts": [0, 1], "pace": MS},
    {"name": "flood-1", "hosts": [2, 3, 4], "pace": 2 * MS},
    {"name": "pairs", "hosts": [5, 6], "pace": 4 * MS},
]


def label(name: str, workload: str, start: int = 0, stop: int | None = None) -> Any:
    """What tables have of a job."""
    return SimpleNamespace(name=name, workload=workload, start=start, stop=stop, iterates=True, background=False)


LABELS = [label("flood-0", "flood"), label("flood-1", "flood"), label("pairs", "pairs")]
DURATION = 17 * MS


def engine_after(jobs: list[dict[str, object]], span: int) -> FakeEngine:
    engine = FakeEngine(json.dumps({"jobs": jobs}))
    engine.run_window_budget(span, 10**9)
    return engine


def ended(at: int) -> Work:
    """The first job after four iterations, of which the last ended then."""
    ranks = frame(engine_after(JOBS[:1], DURATION).table("ranks"))
    done = {"iterations": pl.lit(4, pl.UInt64), "finished_at": pl.lit(at, pl.UInt64), "finished": pl.lit(1, pl.UInt8)}
    return Work(DURATION, ranks.with_columns(**done))


@pytest.fixture
def run() -> Run:
    together = EngineTables.of(engine_after(JOBS, DURATION))
    alone = [Work.of(engine_after([job], DURATION)) for job in JOBS]
    raw, classes = fake_links()
    meta = RunMeta(
        version="1.2.3",
        scenario="fake",
        seed=5,
        digest=together.digest,
        duration_ps=DURATION,
        simulated_ps=together.now,
        packet_hops=together.packet_hops,
        wall_s=2.0,
        cpu_s=3.0,
        started=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        partial=False,
    )
    return Run(
        meta=meta,
        source=Source('name = "fake"\n', "{}"),
        jobs=derive.jobs(LABELS, together, alone),
        ranks=derive.ranks(LABELS, together, [f"host{host}" for host in range(7)]),
        completions=derive.completions(LABELS, together),
        calls=derive.calls(LABELS, together),
        ports=derive.ports(derive.links(frame(raw), classes), together),
        interference=derive.interference(LABELS, together),
    )


def test_work_is_compared_with_the_same_job_alone(run: Run) -> None:
    # Marks at 1 ms and then every pace: flood-0 alone 1 + 16 / 1 = 17 iterations, beside others 1 + 16 / 2 = 9.
    # flood-1: 1 + 16 / 2 = 9; pairs: 1 + 16 / 4 = 5; both the same alone.
    assert run.jobs["iterations"].to_list() == [9, 9, 5]
    assert run.jobs["isolated_iterations"].to_list() == [17, 9, 5]
    assert run.jobs["w_iterations"].to_list() == pytest.approx([9 / 17 - 1, 0, 0])
    # The last iteration that flood-0 completed in both is the ninth: at 1 + 8 * 2 = 17 ms, alone at 1 + 8 = 9 ms.
    assert run.jobs.select("compared_iterations", "compared_ps", "isolated_compared_ps").row(0) == (9, 17 * MS, 9 * MS)
    assert run.jobs["w"].to_list() == pytest.approx([9 / 17 - 1, 0, 0])
    assert run.jobs["ranks"].to_list() == [2, 3, 2]


def test_time_per_iteration_is_from_one_completed_iteration_to_the_next(run: Run) -> None:
    assert run.jobs["seconds_per_iteration"].to_list() == pytest.approx([2e-3, 2e-3, 4e-3])
    assert run.jobs["isolated_seconds_per_iteration"].to_list() == pytest.approx([1e-3, 2e-3, 4e-3])
    # 17 equal iterations have an interval without width, five are too few for one.
    ends = [run.jobs[f"isolated_seconds_per_iteration_{end}"].to_list() for end in ("low", "high")]
    assert [end[0] for end in ends] == pytest.approx([1e-3, 1e-3])
    assert [end[2] for end in ends] == [None, None]


def test_time_per_iteration_needs_two_marks_of_every_rank() -> None:
    engine = engine_after(JOBS[:1], 3 * MS)
    ranks = frame(engine.table("ranks")).with_columns(iterations=pl.Series([3, 1], dtype=pl.UInt64))
    once = frame(engine.table("job_marks")).head(1)
    jobs = derive.jobs(LABELS[:1], Work(3 * MS, ranks, once), [None])
    assert jobs["seconds_per_iteration"].to_list() == [None]
    assert jobs["iterations"].to_list() == [1], "the slowest rank counts"


def test_shares_are_of_the_time_in_compute_and_in_calls(run: Run) -> None:
    assert run.jobs["compute_share"].to_list() == pytest.approx([0.6] * 3)
    assert run.jobs["communication_share"].to_list() == pytest.approx([0.4] * 3)


def test_without_an_isolated_run_there_is_nothing_to_compare() -> None:
    together = Work.of(engine_after(JOBS, DURATION))
    jobs = derive.jobs(LABELS, together, [None, Work.of(engine_after([JOBS[1]], DURATION)), None])
    assert jobs["w"].to_list() == [None, 0.0, None]
    assert jobs["isolated_iterations"].to_list() == [None, 9, None]


def test_a_job_without_iterations_has_no_w() -> None:
    short = Work.of(engine_after(JOBS, MS // 2))
    assert short.ranks["iterations"].sum() == 0
    jobs = derive.jobs(LABELS, short, [Work.of(engine_after([job], MS // 2)) for job in JOBS])
    assert jobs["w"].to_list() == [None, None, None]
    assert jobs["seconds_per_iteration"].to_list() == [None, None, None]


def test_a_job_that_is_stopped_is_compared_until_then() -> None:
    """Alone, the simulation is over when nothing is left to happen: soon after the job was stopped."""
    ranks = frame(engine_after(JOBS[:1], 8 * MS).table("ranks"))
    stopped = [label("flood-0", "flood", stop=8 * MS)]
    assert derive.jobs(stopped, Work(DURATION, ranks), [Work(9 * MS, ranks)])["w_iterations"].to_list() == [0.0]
    # Interrupted before, it is compared over what was simulated.
    found = derive.jobs(stopped, Work(2 * MS, ranks), [Work(4 * MS, ranks)])
    assert found["w_iterations"].to_list() == pytest.approx([1.0])


def test_a_job_that_starts_later_is_compared_from_then_on() -> None:
    """Its rate is over the time that it was there, and so is what others' packets cost it."""
    ranks = frame(engine_after(JOBS[:1], DURATION).table("ranks"))
    late = [label("flood-0", "flood", start=6 * MS)]
    # Four iterations in 4 ms instead of in 2 ms.
    assert derive.jobs(late, ended(10 * MS), [ended(8 * MS)])["w"].to_list() == pytest.approx([-0.5])
    assert derive.work(ended(10 * MS), late)["span_ps"].to_list() == [4 * MS]
    assert derive.work(Work(DURATION, ranks), late)["span_ps"].to_list() == [DURATION - 6 * MS]
    # Interrupted before it began, it has no rate.
    nothing = derive.work(Work(5 * MS, ranks), late)
    assert (nothing["span_ps"].to_list(), nothing["rate"].to_list()) == ([0], [None])


def test_who_delays_whom_is_in_percent_of_the_time_of_the_job(tmp_path: Path) -> None:
    """In the table and in what is printed: a job that is there for a quarter of the run has a quarter of the time."""
    flood = {"name": "flood_pairs", "compute": "10 us", "messages_per_iteration": 4}
    jobs = [{"name": "early", "ranks": 8, "workload": flood}, {"name": "late", "ranks": 8, "workload": flood}]
    scenario = Scenario(fabric=TREE, jobs=[jobs[0], {**jobs[1], "start": "750 us"}], duration="1 ms")
    found = runner.run(scenario, out=tmp_path / "run")
    assert found.jobs["span_ps"].to_list() == pytest.approx([10**9, 25 * 10**7], rel=1e-3)
    matrix = Interference.of(found)
    shares = matrix.share(matrix.others) + np.diag(matrix.share(matrix.own))
    of = {(a, b): share for a, b, share in found.interference.select("victim", "aggressor", "share_of_time").rows()}
    assert of["late", "late"] > 0
    for a, delayed in enumerate(matrix.labels):
        for b, delaying in enumerate(matrix.labels):
            assert shares[a, b] == pytest.approx(of.get((delayed, delaying), 0))
    seconds = found.interference.filter(victim="late", aggressor="late")["queueing_s"].item()
    assert of["late", "late"] == pytest.approx(seconds / (8 * 250e-6), rel=1e-3)


def test_a_program_that_ends_is_compared_by_its_rate_of_work() -> None:
    # Four iterations in 10 ms instead of in 8 ms: 8 / 10 of the work per time.
    assert derive.jobs(LABELS[:1], ended(10 * MS), [ended(8 * MS)])["w"].to_list() == pytest.approx([-0.2])


def test_interference_in_seconds_and_as_share_of_the_delayed_jobs_time(run: Run) -> None:
    cell = run.interference.filter(victim="flood-1", aggressor="pairs").row(0, named=True)
    # Job 1 waits (1 + 1) * (2 + 2) thousandths of 17 ms for job 2; it has three ranks.
    assert cell["queueing_ps"] == 8 * 17 * MS // 1000
    assert cell["queueing_s"] == pytest.approx(8 * 17e-6)
    assert cell["share_of_time"] == pytest.approx(8 / 1000 / 3)


def test_matrix_between_jobs_keeps_own_packets_apart(run: Run) -> None:
    matrix = Interference.of(run)
    unit = 17e-6
    assert matrix.labels == ["flood-0", "flood-1", "pairs"]
    np.testing.assert_allclose(matrix.others, unit * np.array([[0, 3, 4], [4, 0, 8], [6, 9, 0]]))
    np.testing.assert_allclose(matrix.own, unit * np.array([2, 6, 12]))
    np.testing.assert_allclose(matrix.share(matrix.own), [2e-3 / 2, 6e-3 / 3, 12e-3 / 2])
    assert matrix.others.sum() + matrix.own.sum() == pytest.approx(run.interference["queueing_s"].sum())


def test_matrix_by_workload_sums_jobs_and_their_time(run: Run) -> None:
    matrix = Interference.of(run, by="workload")
    unit = 17e-6
    assert matrix.labels == ["flood", "pairs"]
    np.testing.assert_allclose(matrix.others, unit * np.array([[3 + 4, 4 + 8], [6 + 9, 0]]))
    np.testing.assert_allclose(matrix.own, unit * np.array([2 + 6, 12]))
    np.testing.assert_allclose(matrix.share(matrix.others)[0], [7e-3 / 5, 12e-3 / 5])


def test_ports_say_where_they_are_and_how_busy(run: Run) -> None:
    port = run.ports.filter(link=3, lane=1).row(0, named=True)
    assert (port["from_vertex"], port["to_vertex"], port["class"], port["from_level"]) == (
        "switch 0",
        "host 1",
        "host down",
        1,
    )
    assert port["port_active_share"] == pytest.approx(3 / 4)
    assert port["stalled_ps"] == 17 * MS // 8
    assert port["latency_ps"] == 100_000


def test_lanes_of_a_port_add_up(run: Run) -> None:
    links = by_link(run.ports)
    assert links["link"].to_list() == [0, 1, 2, 3]
    assert links["port_active_share"].to_list() == pytest.approx([3 / 4] * 4)
    assert links["port_stalled_share"].to_list() == pytest.approx([1 / 5] * 4)
    assert links["port_idle_share"].to_list() == pytest.approx([1 - 3 / 4 - 1 / 5] * 4)
    assert links["mean_queue"].to_list() == pytest.approx((links["queueing_ps"] / DURATION).to_list())
    assert links["bytes"].to_list() == [3 * 4096] * 4


def test_text_columns_and_exact_integers_come_through() -> None:
    big = 2**63 + 1
    decoded = frame(table(name=("json", ["a", "ü"]), time=("<u8", [0, big])))
    assert decoded["name"].to_list() == ["a", "ü"]
    assert decoded["time"].to_list() == [0, big]


def test_a_saved_run_is_loaded_as_it_was(run: Run, tmp_path: Path) -> None:
    stored = run.save(tmp_path / "deep" / "run")
    again = load_run(tmp_path / "deep" / "run")
    assert again.meta == run.meta
    assert stored.folder == again.folder
    for name, written in run.tables().items():
        assert written.equals(again.tables()[name]), name
    assert (tmp_path / "deep" / "run" / "scenario.toml").read_text() == 'name = "fake"\n'
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["run"], "no unfinished folder is left"
    copy = again.save(tmp_path / "copy")
    assert copy.folder == tmp_path / "copy"
    assert (tmp_path / "copy" / "scenario.toml").read_text() == 'name = "fake"\n'
    assert load_run(copy.folder).ranks.equals(run.ranks)


def test_a_folder_that_is_in_use_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(ResultsError, match="exists and is not an empty directory"):
        new_folder("x", run.meta.started, tmp_path)
    with pytest.raises(ResultsError, match="exists and is not an empty directory"):
        run.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_folders_of_one_second_do_not_collide(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = new_folder("quick", run.meta.started, None)
    assert first == Path("runs/quick-20240506-070809")
    first.mkdir(parents=True)
    assert new_folder("quick", run.meta.started, None) == Path("runs/quick-20240506-070809-2")


def test_a_wrong_folder_is_named_with_the_nearest(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "quickstart")
    with pytest.raises(ResultsError, match=r"quickstar: there is no such folder.*did you mean .*quickstart\?"):
        load_run(tmp_path / "quickstar")


def test_a_damaged_folder_is_named(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "a")
    (tmp_path / "a" / "ports.parquet").write_text("no")
    with pytest.raises(ResultsError, match=r"ports\.parquet: has changed since it was written"):
        load_run(tmp_path / "a")
    (tmp_path / "a" / "ports.parquet").unlink()
    with pytest.raises(ResultsError, match=r"ports\.parquet: is missing"):
        load_run(tmp_path / "a")


def test_a_folder_of_another_version_is_refused(run: Run, tmp_path: Path) -> None:
    newer = replace(run, meta=run.meta.model_copy(update={"schema_version": 99}))
    newer.save(tmp_path / "a")
    with pytest.raises(ResultsError, match=f"schema_version is 99; this version of fairlane reads {SCHEMA_VERSION}"):
        load_run(tmp_path / "a")
    meta = json.loads((tmp_path / "a" / "run.json").read_text())
    (tmp_path / "a" / "run.json").write_text(json.dumps(meta | {"seed": "many"}))
    with pytest.raises(ResultsError, match=r"run\.json: seed: "):
        load_run(tmp_path / "a")


def test_a_query_joins_tables(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "a")
    answer = query(
        tmp_path / "a",
        "select name, sum(queueing_s) s from jobs join interference on victim = name group by 1 order by 1",
    )
    assert answer["name"].to_list() == ["flood-0", "flood-1", "pairs"]
    assert answer["s"].to_list() == pytest.approx([17e-6 * 9, 17e-6 * 18, 17e-6 * 27])
    assert query(tmp_path / "a", "describe jobs").height == run.jobs.width
    assert run.query("select 1 as b, 2 as b, 3 as b").row(0, named=True) == {"b": 1, "b_1": 2, "b_2": 3}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select queue_ps from ports", "nearest to 'queue_ps': queueing_ps (of ports, interference)"),
        ("select * from port", "nearest to 'port': ports"),
        ("selec 1", "syntax error"),
    ],
)
def test_a_wrong_query_is_explained(run: Run, tmp_path: Path, sql: str, words: str) -> None:
    run.save(tmp_path / "a")
    with pytest.raises(ResultsError, match=rf"(?s){re.escape(words)}.*tables: jobs, ranks"):
        query(tmp_path / "a", sql)


@pytest.mark.parametrize(
    "sql",
    [
        "copy jobs to 'stolen.csv'",
        "create table t as select 1",
        "select 1; select 2",
        "",
        "select * from read_csv('/etc/passwd')",
        "attach 'x.db'",
    ],
)
def test_a_query_only_reads_the_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.chdir(tmp_path)
    run.save(tmp_path / "a")
    with pytest.raises(ResultsError):
        query(tmp_path / "a", sql)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_summary_shows_jobs_and_matrix(run: Run) -> None:
    text = printed(run)
    row = next(line for line in text.splitlines() if line.split()[:2] == ["flood-0", "flood"])
    assert row.split() == ["flood-0", "flood", "2", "9", "2.00", "ms", "60.0%", "40.0%", "−47.1%"]
    # flood-0 waits 3 and 4 thousandths of 17 ms (51 and 68 µs), together 119 µs, and 34 µs for itself.
    cells = next(line for line in text.splitlines() if line.split()[:2] == ["A", "flood-0"])
    assert cells.split() == ["A", "flood-0", "·", "51.0", "68.0", "119", "34.0"]


def test_the_summary_of_many_jobs_is_by_workload(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = printed(run, width=45)
    monkeypatch.setattr(fairlane.views.run.interference, "MOST_COLUMNS", 2)
    text = printed(run)
    assert "A flood " in narrow
    assert "B pairs " in narrow
    cells = next(line for line in text.splitlines() if line.split()[:2] == ["A", "flood"])
    assert cells.split() == ["A", "flood", "119", "204", "323", "136"]


def test_the_summary_says_that_a_run_is_partial(run: Run) -> None:
    partial = replace(run, meta=run.meta.model_copy(update={"partial": True, "duration_ps": 60 * MS}))
    assert "17.0 ms of 60.0 ms (partial: interrupted) simulated" in printed(partial)
    assert "partial" not in printed(run)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00123, "1.23 ms"), (12.3456, "12.3 s"), (999.6e-6, "1.00 ms"), (4e-10, "400 ps"), (0, "0 s"), (None, "–")],
)
def test_seconds_as_people_read_them(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_percentages_as_people_read_them() -> None:
    assert percent(-0.1234, signed=True) == "−12.3%"
    assert percent(0.05, signed=True) == "+5.0%"
    assert percent(0.0001) == "<0.1%"
    assert percent(None) == "–"
    assert percent(0.0, signed=True) == percent(-0.0004, signed=True) == "0.0%"
    assert percent(13.784) == "1378%"
    assert [short_percent(share) for share in (0, 0.0001, 0.0044, 0.0994, 0.0996, 1.354)] == [
        *("0.0%", "<.1%", "0.4%", "9.9%", "10%", "135%")
    ]


def test_a_column_name_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"column": [1]}).write_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"column", b"\xff\xfe\xff\xfe\xff\xfe"))
    with pytest.raises(ResultsError, match="damaged"):
        read_parquet(path)
