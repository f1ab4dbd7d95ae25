"""Power: the model's equations, what a cap does to programs, and energy that adds up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Scenario, ScenarioError, Simulation, load, run
from fairlane.core.units import POWER
from fairlane.model.power import JobPower, Pace, PowerTable, Socket, by_job, stretch
from fairlane.views.kinds import draw, view_of
from pictures import assert_drawn

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8}
TRACE = Path(__file__).parents[1] / "data" / "traces" / "npb_ft-64.tar.zst"

watts = st.floats(0, 300)


@given(idle=st.floats(0, 50), busy=st.floats(1, 150), factor=st.floats(0.5, 1.5), above=st.floats(0.01, 200))
def test_a_cap_is_kept_and_used(idle: float, busy: float, factor: float, above: float) -> None:
    socket, cap = Socket(idle, idle + busy, factor), idle + above
    frequency = socket.frequency(cap)
    drawn = idle + socket.dynamic(frequency)
    assert 0 < frequency <= 1
    assert drawn <= cap * (1 + 1e-12)
    assert frequency == 1 or drawn == pytest.approx(cap), "no slower than it must be"
    assert socket.frequency(None) == 1


@given(frequency=st.floats(0.05, 1), part=st.floats(0, 1))
def test_only_what_does_not_wait_for_memory_is_slowed_down(frequency: float, part: float) -> None:
    assert stretch(1.0, part) == 1
    assert stretch(frequency, 1) == 1
    assert stretch(frequency, 0) == pytest.approx(1 / frequency)
    assert 1 <= stretch(frequency, part) <= 1 / frequency + 1e-12


def test_sockets_are_normally_distributed_and_the_machine_is_the_same_for_one_seed() -> None:
    table = PowerTable(variability=0.1)
    machine = table.draw(2000)
    efficiencies = np.array([socket.factor for host in machine for socket in host])
    # The standard error of the mean of 4000 is 0.0016, of the deviation 0.0011; a cut at three deviations takes 1.5%.
    assert efficiencies.mean() == pytest.approx(1, abs=0.006)
    assert efficiencies.std() == pytest.approx(0.1 * 0.9867, abs=0.005)
    assert abs(efficiencies - 1).max() <= 0.3
    assert machine == table.draw(2000)
    assert machine[:10] != PowerTable(variability=0.1, seed=1).draw(10)
    assert {socket.factor for host in PowerTable(variability=0).draw(4) for socket in host} == {1.0}


def test_ranks_share_the_sockets_of_their_host_in_order() -> None:
    def places(hosts: tuple[int, ...]) -> list[list[int]]:
        job = JobPower(None, 1.0, hosts, {host: [Socket(1, 2)] * 2 for host in hosts})
        return [list(place) for place in job.places()]

    assert places((7,)) == [[0, 1]], "one rank has both sockets"
    assert places((7, 7)) == [[0], [1]]
    assert places((7, 7, 7, 7)) == [[0], [0], [1], [1]]
    assert places((7, 3, 7)) == [[0], [0, 1], [1]]


def test_a_rank_on_two_sockets_is_as_fast_as_the_slower() -> None:
    good, bad = Socket(20, 100, 0.9), Socket(20, 100, 1.1)
    job = JobPower(80.0, 1.0, (0, 1, 1), {0: [good, bad], 1: [good, bad]})
    slow, fast = ((60 / (80 * factor)) ** (1 / 3) for factor in (1.1, 0.9))
    assert job.frequencies() == pytest.approx((slow, fast, slow))
    pace = Pace(job.frequencies(), memory_bound=0.5)
    assert pace.stretched(0, 10**9) == round(10**9 * (0.5 + 0.5 / slow))
    assert pace.stretched(0, 10**9, memory_bound=1) == 10**9


def scenario(power: dict[str, Any] | None = None, workload: dict[str, Any] | None = None, **job: Any) -> Scenario:
    flood = {"name": "flood_pairs", "compute": "1 ms", "imbalance": {"kind": "uniform", "low": 1}, "jitter": 0}
    jobs = [{"workload": {**flood, **(workload or {})}, "ranks": 8, "stop": 4, **job}]
    tables: dict[str, Any] = {} if power is None else {"power": power}
    return Scenario(fabric=FABRIC, jobs=jobs, duration="20 ms", **tables)


def digest(given: Scenario) -> str:
    simulation = Simulation(given)
    simulation.run_until(given.duration)
    return simulation.digest()


def test_without_a_cap_nothing_changes_by_a_bit() -> None:
    plain = digest(scenario())
    assert digest(scenario({})) == plain
    assert digest(scenario({"cap": "115 W"})) == plain, "which no socket of the machine reaches"
    assert digest(scenario({"cap": "65 W"}, {"memory_bound": 1.0})) == plain
    assert digest(scenario({"cap": "65 W"})) != plain
    assert digest(scenario({"cap": "65 W"}, power_cap="115 W")) == plain


@pytest.mark.parametrize("cap", [65, 80, 95])
@pytest.mark.parametrize("part", [0.0, 0.4])
def test_a_capped_program_computes_as_long_as_the_equation_says(cap: int, part: float) -> None:
    simulation = Simulation(scenario({"cap": f"{cap} W", "variability": 0}, {"memory_bound": part}))
    simulation.run_for("20 ms")
    frequency = ((cap - 20) / 80) ** (1 / 3)
    expected = 4 * round(10**9 * (part + (1 - part) / frequency))
    assert set(simulation.table("ranks")["compute_ps"]) == {expected}


def test_a_trace_is_slowed_down_rank_by_rank() -> None:
    def compute(**tables: Any) -> np.ndarray[Any, Any]:
        jobs = [{"trace": {"path": str(TRACE), "repeat": False, "memory_bound": 0.3}, "ranks_per_host": 8}]
        simulation = Simulation(Scenario(fabric=FABRIC, jobs=jobs, duration="1 s", **tables))
        simulation.run_for("1 s")
        found: np.ndarray[Any, Any] = simulation.table("ranks")["compute_ps"].to_numpy()
        return found

    capped = Scenario(
        fabric=FABRIC,
        jobs=[{"trace": {"path": str(TRACE), "memory_bound": 0.3}, "ranks_per_host": 8}],
        power={"cap": "65 W"},
    )
    power = capped.resolve().jobs[0].power
    assert power is not None
    factors = [stretch(frequency, 0.3) for frequency in power.frequencies()]
    assert len(set(factors)) > 8, "every socket is another"
    assert compute(power={"cap": "65 W"}) / compute() == pytest.approx(factors, rel=1e-3)
    assert (compute(power={"cap": "115 W"}) == compute()).all()


def test_energy_is_idle_power_all_the_time_and_dynamic_power_where_a_rank_is_at_work(tmp_path: Path) -> None:
    given = scenario({"cap": "65 W", "waiting": 0.5}, ranks_per_host=2)
    found = run(given, out=tmp_path / "run")
    power = found.power
    assert power is not None
    assert power.height == 4 * 2
    seconds = found.meta.simulated_ps * 1e-12
    ranks = found.ranks.sort("host", "rank")
    at_work = (ranks["compute_ps"] + 0.5 * ranks["communication_ps"]).to_numpy() * 1e-12
    # Two ranks a host: a socket each, all of them held at the cap.
    assert power["energy_j"].to_numpy() == pytest.approx(20 * seconds + 45 * at_work)
    assert power["mean_w"].to_numpy() == pytest.approx(power["energy_j"].to_numpy() / seconds)
    assert (power["frequency_share"] < 1).all()
    assert power["dynamic_power_factor"].to_numpy() == pytest.approx(
        (45 / 80) / power["frequency_share"].to_numpy() ** 3
    )
    job = by_job(power).row(0, named=True)
    energy = float(power["energy_j"].to_numpy().sum())
    assert job["energy_j"] == pytest.approx(energy)
    assert job["host_w"] == pytest.approx(energy / seconds / 4)
    assert load(tmp_path / "run").tables()["power"].equals(power)
    (picture,) = draw([found], ["power"])
    assert_drawn(picture)
    frequencies, _ = view_of([found]).pictures["power"]
    rows = next(rows for rows in frequencies.spec.to_dict()["datasets"].values() if "value" in rows[0])
    assert sorted(row["value"] for row in rows) == pytest.approx(sorted(power["frequency_share"]), rel=1e-7)


@pytest.mark.parametrize(
    ("power", "job", "key", "words"),
    [
        ({"cap": "20 W"}, {}, "power.cap", "draws 20 W when idle"),
        ({"cap": "5 W"}, {}, "power.cap", "allowed: > 20 W"),
        ({"idle": "60 W"}, {"power_cap": "55 W"}, "jobs[0].power_cap", "draws 60 W when idle"),
        (None, {"power_cap": "55 W"}, "jobs[0].power_cap", "no table `power`"),
        ({"idle": "60 W", "busy": "50 W"}, {}, "power.busy", "not above idle power"),
        ({"cap": 65}, {}, "power.cap", 'as "65 W"'),
        ({"cap": "65 GB"}, {}, "power.cap", "not a unit of power"),
        ({"variability": 0.5}, {}, "power.variability", "below"),
        ({"sockets": 0}, {}, "power.sockets", "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(power: dict[str, Any] | None, job: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(power, **job)
    assert key in str(caught.value)
    assert words in str(caught.value)


def test_watts_are_read_and_shown() -> None:
    assert [POWER.parse(given) for given in ("65 W", "0.065 kW", "65000 mW")] == [65_000] * 3
    assert POWER.format(65_000) == "65 W"
