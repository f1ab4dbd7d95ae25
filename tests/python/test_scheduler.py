"""The scheduler: job logs read and refused, EASY by hand, laws of every schedule, the command."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import expand, slurm_names
from fairlane.learn.scheduler.compare import metrics_of
from fairlane.learn.scheduler.easy import replay
from fairlane.learn.scheduler.log import LoggedJob, PatternMix, Schedule, read_log
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import PLACEMENTS, Communication

LOG = Path(__file__).parents[1] / "data" / "jobs" / "nasa-ipsc-1993-first-400.swf.gz"
TORUS = Fabric.build(
    {"topology": "torus", "params": {"sides": [4, 2, 2], "hosts_per_switch": 1}, "routing": "dimension_order"}
)
LINE = Fabric.build(
    {"topology": "torus", "params": {"sides": [4], "hosts_per_switch": 1, "mesh": True}, "routing": "dimension_order"}
)
ALLOCATORS = {
    "linear": PLACEMENTS["linear"](),
    "random": PLACEMENTS["random"](),
    "row": PLACEMENTS["linear"].model_validate({"fit": "best"}),
    "box": PLACEMENTS["box"](),
    "pattern": PLACEMENTS["pattern"](),
}


def logged(number: int, submit: int, hosts: int, run: int, estimate: int | None = None) -> LoggedJob:
    return LoggedJob(number, submit, run, hosts, estimate or run, number)


def starts(schedule: Schedule) -> dict[int, float]:
    return {one.job.number: one.start for one in schedule.jobs}


def test_easy_backfills_what_does_not_delay_the_head() -> None:
    jobs = [logged(1, 0, 3, 10), logged(2, 1, 4, 10), logged(3, 2, 1, 5), logged(4, 3, 1, 20)]
    found = replay(jobs, LINE, ALLOCATORS["linear"])
    # 2 waits for 1 until 10. 3 ends before that and goes first; 4 would hold a host until 23 and has to wait for 2.
    assert starts(found) == {1: 0, 3: 2, 2: 10, 4: 20}
    metrics = metrics_of(found, 4)
    assert (metrics.jobs, metrics.makespan) == (4, 40)
    assert metrics.utilisation == pytest.approx((30 + 40 + 5 + 20) / (4 * 40))
    assert metrics.mean_wait == pytest.approx((0 + 9 + 0 + 17) / 4)
    assert metrics.mean_bounded_slowdown == pytest.approx((1 + 1.9 + 1 + 37 / 20) / 4)
    assert metrics.fragmentation == 0


def test_a_long_job_backfills_on_hosts_that_the_head_does_not_need() -> None:
    jobs = [logged(1, 0, 3, 10), logged(2, 1, 2, 10), logged(3, 2, 1, 99)]
    # 2 gets the hosts 0 and 1 at 10, so 3 may have host 3 for as long as it likes.
    found = replay(jobs, LINE, ALLOCATORS["linear"])
    assert starts(found) == {1: 0, 3: 2, 2: 10}
    assert [one.hosts for one in found.jobs] == [(0, 1, 2), (3,), (0, 1)]


def test_estimates_too_long_only_make_backfilling_careful_and_early_ends_are_used() -> None:
    jobs = [logged(1, 0, 3, 10, 100), logged(2, 1, 4, 10), logged(3, 2, 1, 5, 99)]
    # 3 asks for 99 s: until 101, one second after 2's reservation.
    assert starts(replay(jobs, LINE, ALLOCATORS["linear"])) == {1: 0, 2: 10, 3: 20}


def test_hosts_that_are_free_but_not_in_a_row_are_fragmentation() -> None:
    jobs = [logged(1, 0, 1, 10), logged(2, 0, 1, 30), logged(3, 0, 1, 10), logged(4, 0, 1, 10), logged(5, 1, 3, 10)]
    found = replay(jobs, LINE, ALLOCATORS["row"])
    # From 10 to 30 host 1 is busy and 0, 2, 3 are free: three hosts, but no three in a row.
    assert starts(found)[5] == 30
    assert found.fragmented == 3 * 20
    assert starts(replay(jobs, LINE, ALLOCATORS["linear"]))[5] == 10


def test_a_job_that_no_box_ever_holds_is_refused_and_the_others_run() -> None:
    jobs = [logged(1, 0, 4, 10), logged(2, 0, 5, 10), logged(3, 0, 1, 10)]
    found = replay(jobs, LINE, ALLOCATORS["box"])
    assert [job.number for job in found.refused] == [2]
    assert set(starts(found)) == {1, 3}


@pytest.mark.parametrize("name", ALLOCATORS)
@given(data=st.data())
@settings(max_examples=25)
def test_laws_of_every_schedule(name: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    rows = [
        (data.draw(st.integers(0, 30)), data.draw(st.integers(1, 16)), data.draw(st.integers(1, 20)))
        for _ in range(count)
    ]
    extra = [data.draw(st.integers(0, 20)) for _ in range(count)]
    jobs = [
        logged(at, submit, hosts, run, run + more)
        for at, ((submit, hosts, run), more) in enumerate(zip(sorted(rows), extra, strict=True))
    ]
    kinds = [Communication("many-to-many"), Communication("hybrid", 3)]
    found = replay(jobs, TORUS, ALLOCATORS[name], communication=lambda number: kinds[number % 2])
    assert sorted([one.job.number for one in found.jobs] + [job.number for job in found.refused]) == list(range(count))
    for one in found.jobs:
        assert one.wait >= 0
        assert len(set(one.hosts)) == one.job.hosts
    for at, one in enumerate(found.jobs):
        for other in found.jobs[at + 1 :]:
            overlap = one.start < other.end and other.start < one.end
            assert not overlap or not set(one.hosts) & set(other.hosts)
    metrics = metrics_of(found, 16)
    assert 0 <= metrics.utilisation <= 1
    assert metrics.mean_bounded_slowdown >= 1
    assert metrics.utilisation + metrics.fragmentation <= 1 + 1e-9
    assert found == replay(jobs, TORUS, ALLOCATORS[name], communication=lambda number: kinds[number % 2])


@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 16), st.integers(1, 20)), min_size=1, max_size=14),
    extra=st.integers(0, 30),
)
@settings(max_examples=50)
def test_allocators_that_take_any_hosts_give_the_same_schedule(rows: list[tuple[int, int, int]], extra: int) -> None:
    """Where hosts do not matter, only their number does: EASY as it is usually written."""
    jobs = [logged(at, *row, row[2] + extra * (at % 2)) for at, row in enumerate(sorted(rows))]
    blind = [starts(replay(jobs, TORUS, ALLOCATORS[name])) for name in ("linear", "random")]
    assert blind[0] == blind[1] == counted(jobs, 16)


def counted(jobs: list[LoggedJob], hosts: int) -> dict[int, int]:
    """EASY with a count of hosts instead of hosts, second by second."""
    found: dict[int, int] = {}
    now = 0
    while len(found) < len(jobs):
        waiting = [job for job in jobs if job.submit <= now and job.number not in found]
        while waiting and waiting[0].hosts <= hosts - busy(jobs, found, now):
            found[waiting.pop(0).number] = now
        if waiting:
            head, *others = waiting
            ends = sorted(found[job.number] + job.estimate for job in jobs if is_running(job, found, now))
            held = [(found[job.number] + job.estimate, job.hosts) for job in jobs if is_running(job, found, now)]
            room = {end: hosts - sum(count for until, count in held if until > end) for end in ends}
            shadow = next(end for end in ends if room[end] >= head.hosts)
            spare = room[shadow] - head.hosts
            for job in others:
                outlasts = now + job.estimate > shadow
                if job.hosts <= min(hosts - busy(jobs, found, now), spare if outlasts else hosts):
                    found[job.number] = now
                    spare -= job.hosts if outlasts else 0
        now += 1
    return found


def is_running(job: LoggedJob, started: dict[int, int], now: int) -> bool:
    return job.number in started and started[job.number] <= now < started[job.number] + job.run


def busy(jobs: list[LoggedJob], started: dict[int, int], now: int) -> int:
    return sum(job.hosts for job in jobs if is_running(job, started, now))


@given(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=10))
@settings(max_examples=50)
def test_nobody_is_idle_while_the_head_could_run(rows: list[tuple[int, int, int]]) -> None:
    jobs = [logged(at, *row) for at, row in enumerate(sorted(rows))]
    found = replay(jobs, LINE, ALLOCATORS["linear"])
    for one in found.jobs:
        for instant in range(one.job.submit, round(one.start)):
            busy = sum(other.job.hosts for other in found.jobs if other.start <= instant < other.end)
            is_head = all(other.start <= instant for other in found.jobs if other.job.number < one.job.number)
            assert not is_head or busy + one.job.hosts > 4


def test_the_recorded_log_is_read_whole_and_replayed() -> None:
    read = read_log(LOG, hosts=128)
    assert (len(read.jobs), read.problems) == (400, ())
    first = read.jobs[0]
    assert (first.number, first.submit, first.run, first.hosts, first.estimate) == (1, 0, 1451, 128, 1451)
    assert len(read_log(LOG, max_jobs=7).jobs) == 7


LINES = """; Version: 2.2
1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
2 5 -1 100 4 -1 -1 4 200
3 6 -1 1oo 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
4 7 -1 100 400 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
5 8 -1 0 4 -1 -1 4 200 -1 5 1 1 1 1 1 -1 -1
6 9 -1 100 -1 -1 -1 3 20 -1 1 1 1 1 1 1 -1 -1
-7 9 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
"""


def test_lines_that_cannot_be_used_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(LINES, encoding="utf-8")
    read = read_log(path, hosts=16)
    # Job 5 was cancelled. Job 6 has its size from the request, and its estimate is not below its run time.
    assert [(job.number, job.hosts, job.estimate) for job in read.jobs] == [(1, 4, 200), (6, 3, 100)]
    assert [str(problem) for problem in read.problems] == [
        f'{path}:3: line = "2 5 -1 100 4 -1 -1 4 200": has 9 fields; allowed: 18 numbers or more',
        f'{path}:4: field 4 = "1oo": not a number',
        f"{path}:5: processors = 400: job 4 is larger than the machine; allowed: 1 to 16",
        f"{path}:8: job number = -7: is negative; allowed: 0 or more",
    ]
    with pytest.raises(ScenarioError, match="has 9 fields"):
        read_log(path, hosts=16, strict=True)
    path.write_bytes(gzip.compress(LINES.encode())[:-20])
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_log(path)
    path.write_text("; nothing\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="holds no job"):
        read_log(path)


def test_fields_after_the_eighteenth_are_counted_and_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = LINES.splitlines()[:2]
    extra = f"{first[0]}\n{first[1]} 17 node[1-4] 0.5\n{first[1].replace('1 0', '2 9', 1)} x y z\n"
    (tmp_path / "log.swf").write_text(extra)
    read = read_log(tmp_path / "log.swf", strict=True)
    assert [(job.number, job.submit, job.hosts, job.estimate) for job in read.jobs] == [(1, 0, 4, 200), (2, 9, 4, 200)]
    assert read.notes == ("2 lines with more than 18 fields: the others are not read",)
    assert execute(["schedule", str(tmp_path / "log.swf"), "--set", "sides=[4,4]"]) == 0
    assert "fairlane: 2 lines with more than 18 fields" in capsys.readouterr().err


def test_a_log_is_replayed_on_a_fabric_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = LINES.splitlines()[:2]
    (tmp_path / "log.swf").write_text("\n".join([*first, first[1].replace("1 0 -1 100 4", "2 1 -1 100 89")]))
    dump = LOG.parents[1] / "fabrics" / "x5.ibnetdiscover"
    placed = tmp_path / "placed.csv"
    command = ["schedule", str(tmp_path / "log.swf"), "--fabric", str(dump), "--allocator", "linear"]
    assert execute([*command, "--placed", str(placed), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["linear"]["jobs"] == 2  # the second takes all 89 hosts of the dump
    rows = pl.read_csv(placed)
    names = {name for text in rows["node_list"] for name in expand(text)}
    assert names == set(slurm_names(read_wiring(dump).hosts))
    for wrong, words in (("none.json", "there is no such file"), ("tora", 'did you mean "torus"')):
        assert execute(["schedule", str(LOG), "--fabric", wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_mix_gives_every_job_a_pattern_by_the_shares(tmp_path: Path) -> None:
    mix = PatternMix.model_validate(
        {"pattern": [{"kind": "many-to-many", "share": 1}, {"kind": "hybrid", "unit": 4, "share": 3}]}
    )
    found = [mix.of(job, 1) for job in range(1000)]
    dense = sum(one.kind == "many-to-many" for one in found)
    # A quarter of 1000 with a standard deviation of sqrt(1000/4*3/4) = 13.7.
    assert abs(dense - 250) < 5 * 13.7
    assert {one.unit for one in found if one.kind == "hybrid"} == {4}
    path = tmp_path / "mix.toml"
    path.write_text('[[pattern]]\nkind = "many"\nshare = 1\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match="many-to-many"):
        PatternMix.from_file(path)


def test_the_command_compares_allocators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = Path(__file__).parents[2] / "examples" / "schedules" / "pattern-mix.toml"
    fabric = ["--set", "sides=[8,4,4]", "--jobs", "60"]
    options = ["--allocator", "linear:fit=first", "--allocator", "pattern", "--mix", str(mix)]
    assert execute(["schedule", str(LOG), *fabric, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["linear:fit=first", "pattern"]
    assert all(row["jobs"] == 60 and 0 < row["utilisation"] < 1 for row in found.values())
    assert execute(["schedule", str(LOG), *fabric]) == 0
    assert "bounded" in capsys.readouterr().out
    for wrong, words in (
        (["--allocator", "bax"], 'did you mean "box"?'),
        (["--allocator", "units:size=5"], "allocator.units.size = 5: does not divide"),
        (["--allocator", "list"], "unknown allocator"),
        (["--mix", str(tmp_path / "none.toml")], "cannot be read"),
    ):
        assert execute(["schedule", str(LOG), *fabric, *wrong]) == 2
        assert words in capsys.readouterr().err
    (tmp_path / "log.swf").write_text(LINES, encoding="utf-8")
    assert execute(["schedule", str(tmp_path / "log.swf"), "--set", "sides=[4,4]"]) == 0
    assert "left out" in capsys.readouterr().err
    assert execute(["schedule", str(tmp_path / "log.swf"), "--set", "sides=[4,4]", "--strict"]) == 2
