"""Jobs that arrive later and depart: in one simulation, and between episodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from typing_extensions import override

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.sim.controller import Controller, JobWork, Settings, Work, control, controller_of, row_of
from fairlane.sim.controller.episodes import missing, phases
from fairlane.sim.controller.loop import Mode
from samples import TREE

US = 10**6


def scenario(*jobs: dict[str, Any], duration: str = "1 ms") -> Scenario:
    ring: dict[str, Any] = {"name": "nearest_neighbor", "compute": "20 us", "jitter": 0.2}
    ring |= {"message_size": "4 KiB", "messages_per_iteration": 1}
    named = [{"name": f"job-{number}", "ranks": 4, "workload": ring, **job} for number, job in enumerate(jobs)]
    return Scenario(fabric=TREE, jobs=named, duration=duration)


def marks(found: Scenario, job: int = 0) -> list[tuple[int, int]]:
    """Iterations and time of the last one, by rank."""
    simulation = Simulation(found)
    simulation.run_for(found.duration)
    ranks = simulation.table("ranks")
    return list(ranks.filter(job=job).select("iterations", "last_mark_ps").iter_rows())


def test_a_job_that_starts_later_does_the_same_later() -> None:
    late = marks(scenario({"start": "300 us"}))
    early = marks(scenario({}, duration="700 us"))
    assert [count for count, _ in late] == [count for count, _ in early]
    assert [time - 300 * US for _, time in late] == [time for _, time in early]


@pytest.mark.parametrize("iterations", [1, 3, 8, 13, 16])
def test_a_job_departs_after_its_iterations(iterations: int) -> None:
    """Whatever part of the eight compute times that it repeats that is."""
    found = scenario({"stop": iterations}, {})
    simulation = Simulation(found)
    simulation.run_for(found.duration)
    assert simulation.progress()["job-0"] == [iterations] * 4
    assert min(simulation.progress()["job-1"]) > 16, "the other goes on"
    ranks = simulation.table("ranks")
    assert ranks["finished"][:4].all()
    assert not ranks["finished"][4:].any()


@pytest.mark.parametrize(("iterations", "imbalance"), [(2, 0), (9, 1), (20, 5)])
def test_stages_are_cut_where_the_job_departs(iterations: int, imbalance: int) -> None:
    workload = {"name": "mini_paradis", "compute": "10 us", "variant": imbalance, "messages_per_iteration": 1}
    job = {"workload": workload, "stop": iterations}
    assert [count for count, _ in marks(scenario(job))] == [iterations] * 4


def test_a_job_keeps_its_random_numbers_without_the_others() -> None:
    """Its hosts are listed, so that only the numbers of its streams tell the two scenarios apart."""
    hosts = {"placement": {"name": "list", "hosts": [9, 2, 5, 12]}}
    beside = scenario({"stop": 1}, {"name": "ring", "start": "500 us", **hosts})
    alone = scenario({"name": "ring", "start": "500 us", "stream": 1, **hosts})
    other = scenario({"name": "ring", "start": "500 us", "stream": 0, **hosts})
    assert marks(beside, 1) == marks(alone) != marks(other)


def test_a_job_departs_at_a_time() -> None:
    found = scenario({"stop": "300 us"}, {})
    whole, cut = marks(found, 1), marks(found, 0)
    assert max(last for _, last in cut) < 300 * US < min(last for _, last in whole)
    assert [count for count, _ in cut] == [count for count, _ in marks(scenario({}, duration="300 us"))]


def test_arrivals_are_not_part_of_a_calibration() -> None:
    ring = {"name": "nearest_neighbor", "compute_share": 0.5, "message_size": "4 KiB"}
    times = [scenario({"workload": ring, **job}).resolve().jobs[0].compute for job in ({}, {"start": "600 us"})]
    assert times[0] == times[1]


def test_bad_departures_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"jobs\[0\].stop = \"3 ms\".*not after the job's start"):
        scenario({"start": "3 ms", "stop": "3 ms"})
    with pytest.raises(ScenarioError, match=r"jobs\[0\].stop.*or a number of iterations"):
        scenario({"stop": "3 potatoes"})
    with pytest.raises(ScenarioError, match=r"jobs\[0\].stop"):
        scenario({"stop": 0})


def test_more_ranks_than_hosts_is_told_of_the_jobs_that_are_there_then() -> None:
    early, later = {"ranks": 12, "stop": "10 us"}, {"ranks": 10, "start": "20 us"}
    with pytest.raises(ScenarioError, match=r"jobs\[1\].ranks = 10: more ranks than hosts: .* need 18 hosts"):
        scenario(early, later, {"ranks": 8, "start": "20 us"}).resolve()
    scenario(early, later).resolve()


def test_a_trace_arrives_later_and_has_its_own_end() -> None:
    trace = str(Path(__file__).parents[1] / "data/traces/lulesh-64.tar.zst")
    fabric = {"topology": "fat_tree", "hosts": 64}
    later = Scenario(fabric=fabric, jobs=[{"trace": trace, "start": "1 ms"}]).resolve()
    assert later.jobs[0].start == 1000 * US
    with pytest.raises(ScenarioError, match=r"jobs\[0\].stop = 3: a trace has no number of iterations to stop after"):
        Scenario(fabric=fabric, jobs=[{"trace": trace, "stop": 3}])


def test_phases_follow_arrivals_and_departures() -> None:
    found = scenario({"stop": "250 us"}, {"start": "130 us"}, {})
    by_period = {start: [job.name for job in phase.jobs] for start, phase in phases(found, 100 * US, 10).items()}
    # Episodes begin at 0, 100, 200, 300 us and so on.
    assert by_period == {0: ["job-0", "job-2"], 2: ["job-0", "job-1", "job-2"], 3: ["job-1", "job-2"]}
    assert list(missing(found, 100 * US, 10)) == []
    assert list(missing(scenario({"stop": "250 us"}, {"start": "400 us"}), 100 * US, 10)) == [3]


def remembered(found: Scenario, mode: Mode, periods: int) -> list[tuple[int, str, list[str]]]:
    """What Algorithm 1 is doing in each period, and the jobs that it sees there."""
    controller = controller_of("process_prioritization")
    outcomes = control(found, controller, mode=mode, period="100 us", periods=periods)
    return [(one.period, one.state, sorted(one.treated.throughout().jobs)) for one in outcomes]


@pytest.mark.parametrize("mode", ["episodes", "online"])
def test_controllers_start_over_when_jobs_come_and_go(mode: Mode) -> None:
    found = scenario({"stop": "400 us"}, {"start": "700 us"}, {})
    periods = remembered(found, mode, 10)
    assert [jobs for _, _, jobs in periods] == [
        *[["job-0", "job-2"]] * 4,
        *[["job-2"]] * 3,
        *[["job-1", "job-2"]] * 3,
    ]
    states = [state for _, state, _ in periods]
    # The period in which the jobs are others is not judged; the one after it is another default run.
    assert (states[0], states[5], states[8]) == ("DEFAULT", "DEFAULT", "DEFAULT")
    assert states[1] == "RUNNING"


def test_online_work_adds_up_to_that_of_the_slowest_rank() -> None:
    found = scenario({"stop": 9}, {})
    outcomes = list(control(found, controller_of("none"), mode="online", period="100 us", periods=8, isolated=True))
    whole = Simulation(found)
    whole.run_for("800 us")
    for job, ranks in whole.progress().items():
        seen = [one.treated.jobs[job] for one in outcomes if job in one.treated.jobs]
        assert sum(done.done for done in seen) == min(ranks)
    end = whole.table("ranks")["finished_at_ps"][:4].to_numpy().max() * 1e-12
    there = [row_of(one, "job-0")["seconds"] for one in outcomes if "job-0" in one.treated.jobs]
    assert sum(there) == pytest.approx(end)


def test_online_levels_hold_once_a_job_is_there() -> None:
    """A table's from the beginning on; what depends on who is there, from the first period that begins with the job."""
    found = scenario({}, {"start": "250 us"})
    table = {"levels": {"job-1": {0: 1}}, "service_levels": 2}
    for one in control(found, {"name": "fixed", **table}, mode="online", period="100 us", periods=5):
        assert one.settings.levels == table["levels"]
    isolated = list(control(found, controller_of("isolate"), mode="online", period="100 us", periods=5))
    assert [list(one.settings.levels) for one in isolated] == [["job-0"]] * 3 + [["job-0", "job-1"]] * 2


class Keeps(Controller):
    """Gives one job a level, and remembers whose work it has seen."""

    seen: list[list[str]] = Field(default_factory=list)

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        return Settings({"job-0": {0: 1}}, (1, 4))

    @override
    def observe(self, work: Work) -> Settings:
        self.seen.append(sorted(work.jobs))
        return Settings({"job-0": {0: 1}}, (1, 4))


@pytest.mark.parametrize(
    ("other", "without", "seen"),
    [
        ({"stop": "200 us"}, [], 5),  # who is left is known
        ({"stop": "150 us"}, [], 5),
        ({"start": "200 us"}, [2], 5),
        ({"start": "150 us"}, [2], 5),
        ({"start": "150 us", "stop": "270 us"}, [2], 4),  # there as one period begins, and for none: not to be judged
        ({"start": "110 us", "stop": "170 us"}, [], 5),
    ],
)
def test_online_everyone_is_on_the_default_level_while_jobs_are_new(
    other: dict[str, Any], without: list[int], seen: int
) -> None:
    controller = Keeps(service_levels=2)
    outcomes = list(control(scenario({}, other), controller, mode="online", period="100 us", periods=5))
    assert [one.period for one in outcomes if not one.settings.levels] == without
    assert len(controller.seen) == seen


def test_online_what_was_not_in_force_is_not_judged() -> None:
    """A job is there as one period begins and gone before it ends: the trial that was due is made after it."""
    found = scenario({}, {}, {"start": "450 us", "stop": "570 us"})
    outcomes = list(control(found, controller_of("process_prioritization"), mode="online", period="100 us", periods=8))
    assert outcomes[5].settings.levels == {}
    assert not outcomes[5].accepted
    plain = list(control(found, controller_of("process_prioritization"), mode="online", period="100 us", periods=5))
    assert [one.settings for one in plain] == [one.settings for one in outcomes[:5]]
    assert outcomes[6].settings.levels
    assert outcomes[6].state == "RUNNING"


def test_online_a_job_that_ends_sooner_has_gained() -> None:
    """Both do as many iterations: what differs is the time that they take for them."""
    flood = {"name": "flood_pairs", "compute": "20 us", "message_size": "16 KiB", "messages_per_iteration": 4}
    found = scenario({"stop": 9, "ranks": 8, "workload": flood}, {"ranks": 8, "workload": flood})
    table = {"levels": {"job-0": dict.fromkeys(range(8), 1)}, "weights": [1, 20], "service_levels": 2}
    outcomes = list(control(found, {"name": "fixed", **table}, mode="online", period="100 us", periods=10))
    rows = [row_of(one, "job-0") for one in outcomes if "job-0" in one.jobs]
    treated, default = ([row for row in rows if row[key] is not None] for key in ("iterations", "default_iterations"))
    assert sum(row["iterations"] for row in treated) == sum(row["default_iterations"] for row in default) == 9
    assert len(treated) < len(default), "by default it is there for longer, and its rows are too"
    # Its last period is over for it sooner than by default: an iteration more or less there says nothing.
    assert treated[-1]["seconds"] < treated[-1]["default_seconds"]
    assert treated[-1]["improvement"] is None
    assert all(row["improvement"] is not None for row in treated[:-1])
    whole, other = (sum(row[key] for row in of) for key, of in (("seconds", treated), ("default_seconds", default)))
    for change, seconds in ((other / whole - 1, whole), (0, other)):
        work = JobWork((9,), (), (), seconds=seconds)
        assert work.over(JobWork((9,), (), (), seconds=other)) == pytest.approx(change)


def test_episodes_never_see_the_end_of_so_many_iterations() -> None:
    with pytest.raises(ScenarioError, match=r"jobs\[0\].stop = 9: episodes begin anew"):
        next(control(scenario({"stop": 9}), controller_of("none"), period="100 us", periods=2))
    with pytest.raises(ScenarioError, match="no job is there in period 2"):
        next(control(scenario({"stop": "200 us"}), controller_of("none"), period="100 us", periods=4))


def test_the_command_compares_rates_over_all_periods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flood = {"name": "flood_pairs", "compute": "20 us", "message_size": "16 KiB", "messages_per_iteration": 4}
    found = scenario({"stop": 9, "ranks": 8, "workload": flood}, {"ranks": 8, "workload": flood})
    (tmp_path / "two.toml").write_text(found.text)
    levels = json.dumps({"job-0": dict.fromkeys(map(str, range(8)), 1)})
    words = ["--controller", "fixed", "--with", f"levels={levels}", "--with", "weights=[1, 20]"]
    words += ["--with", "service_levels=2", "--mode", "online", "--period", "100 us", "--periods", "10"]
    assert execute(["control", str(tmp_path / "two.toml"), *words]) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("job-0")]
    name, default, treated, gain = row.split()[:4]
    assert (name, default, treated) == ("job-0", "9", "9")

    def end(**more: Any) -> int:
        first = {"stop": 9, "ranks": 8, "workload": flood, **more}
        simulation = Simulation(
            Scenario(
                **{
                    **found.model_dump(mode="json", exclude_none=True, exclude={"jobs", "qos"}),
                    "jobs": [{"name": "job-0", **first}, {"name": "job-1", "ranks": 8, "workload": flood}],
                    "qos": {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 20]}},
                }
            )
        )
        simulation.run_for("1 ms")
        return int(simulation.table("ranks")["finished_at_ps"][:8].to_numpy().max())

    assert float(gain.strip("%+")) == pytest.approx(100 * (end() / end(service_level=1) - 1), abs=0.06)
