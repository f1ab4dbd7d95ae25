"""Estimates of memory and time: near what is measured, and made before anything of their size is allocated."""

import copy
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from fairlane import FairlaneError, Scenario, ScenarioError, Simulation
from fairlane.core.wording import bytes_text, seconds_text
from fairlane.inputs.parameters import entries
from fairlane.model.pattern import program_of
from fairlane.model.placement import PLACEMENTS
from fairlane.model.scenario.estimate import HOP, machine_cores, machine_memory, packet_hop_time
from fairlane.model.scenario.models import Job
from fairlane.model.workload import WORKLOADS, JobScript, Rank, Workload
from fairlane.model.workload.counting import Tally, counted
from fairlane.study.plan import plan
from fairlane.study.study import Study
from fairlane.study.tasks.pools import affordable
from peak_memory import measured
from small_study import SCENARIO, STUDY
from waiting import LOOP_S

REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers"
FABRIC = {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16}
SMALL: dict[str, Any] = {
    "duration": "100 us",
    "fabric": FABRIC,
    "jobs": [{"name": "one", "ranks": 4, "workload": {"name": "ring", "compute": "5 us"}}],
}
HUGE = 10**12
GROWING = ("nccl_tests", "training", "inference")
"""Within 1 ms these send less than on average: small buffers come first, and layers are computed before."""
WAVEFRONTS = ("kripke", "lu", "milc", "sweep3d")
"""Ranks of these wait for others' computations in every iteration, and `milc` has iterations in its timesteps."""


@pytest.mark.parametrize("ranks", [2, 16, 60])
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_length_of_a_program_is_known_from_some_of_its_ranks(name: str, ranks: int) -> None:
    workload = WORKLOADS[name]()
    if workload.problem_with(ranks) or workload.offered():
        pytest.skip("not for so many ranks, or without a script")
    total, compute = 0, [[1] * workload.distinct_iterations for _ in workload.imbalance.stages(workload.variant)]
    for index in range(ranks):
        tally: Any = Tally(ranks, 10**9)
        workload.write(Rank(JobScript(ranks, builder=tally), index, tally), compute)
        total += tally.operations
    assert total / 2 <= counted(workload, ranks, None).operations <= 2 * total


@pytest.mark.parametrize("name", ["flood_pairs", "uniform_random", "ring", "ping_pong", "all_to_all"])
def test_messages_that_are_not_written_are_counted(name: str) -> None:
    messages = 500

    def operations(**parameters: Any) -> float:
        workload: Workload = WORKLOADS[name](messages_per_iteration=messages, **parameters)
        return counted(workload, 16, None).operations

    exact = 0
    for index in range(16):
        tally: Any = Tally(16, 10**9)
        workload = WORKLOADS[name](messages_per_iteration=messages, distinct_iterations=1)
        workload.write(Rank(JobScript(16, builder=tally), index, tally), [[1]])
        exact += tally.operations
    once, five = (operations(distinct_iterations=iterations) for iterations in (1, 5))
    assert once == pytest.approx(exact, rel=0.3)
    # What is the same in every iteration is kept once, with a time of each of the 16 ranks: a fifth of an operation.
    assert five == pytest.approx(once + 4 * 16 / 5 if WORKLOADS[name]().repeats() else 5 * once, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in (*WAVEFRONTS, *GROWING, "stepped")])
def test_packet_hops_are_known_before_they_are_simulated(name: str) -> None:
    compute = {} if WORKLOADS[name]().offered() else {"compute": "5 us"}
    simulated, estimated = packet_hops({"name": name, **compute})
    assert simulated / 2 < estimated < 2 * simulated


@pytest.mark.parametrize("name", ["halo3d", "ring", "ring_allgather", "shift"])
def test_delays_of_adapters_count_in_each_round(name: str) -> None:
    delays = [{"size": "1 B", "time": "20 us"}]
    simulated, estimated = packet_hops({"name": name, "compute": "5 us"}, mpi={"adapter_delays": delays})
    assert simulated / 2 < estimated < 2 * simulated


def packet_hops(workload: dict[str, Any], **tables: Any) -> tuple[float, float]:
    """Those of a job of 16 ranks within 1 ms, simulated and estimated."""
    job = {"name": "one", "ranks": 16, "workload": workload}
    simulation = Simulation(Scenario(fabric=FABRIC, jobs=[job], duration="1 ms", **tables))
    simulation.run_for("1 ms")
    assert simulation.scenario.estimate is not None
    return simulation.packet_hops, simulation.scenario.estimate.packet_hops


MEASURE = """
import sys
from fairlane import Scenario, Simulation
simulation = Simulation(Scenario.load(sys.argv[1]))
print(simulation.scenario.estimate.memory)
"""


def test_memory_is_known_before_it_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "large.toml"
    file.write_text(
        'duration = "10 us"\n[fabric]\ntopology = "fat_tree"\nhosts = 16384\nlevels = 3\nradix = 64\n'
        '[[jobs]]\nranks = 16384\nworkload = { name = "uniform_random", compute = "5 us" }\n'
    )
    (estimated,), peak = measured(MEASURE, file)
    # What a run takes besides, for figures and tables, is in the estimate only.
    assert peak / 1.5 < float(estimated) < 3 * peak


CROSSBARS = """
import sys
from fairlane import Scenario, Simulation
load = {"name": "open_loop", "pattern": "uniform", "message_size": "4 KiB", "load": 0.7}
scenario = Scenario(
    fabric={"topology": "fat_tree", "hosts": 8192, "levels": 3, "radix": 32},
    network={"switch": sys.argv[1]},
    qos={"service_levels": 8, "lanes": 8},
    placement="random",
    jobs=[{"name": f"level {level}", "ranks": 1024, "service_level": level, "workload": load} for level in range(8)],
)
simulation = Simulation(scenario, threads=1)
simulation.run_for("15 us")
print(simulation.scenario.estimate.memory)
"""


@pytest.mark.long("core", "model/scenario")
def test_memory_of_crossbars_is_known_before_it_is_taken() -> None:
    """The difference between the two architectures of switches, so that nothing else counts."""
    (queued, needed), (without, less) = (measured(CROSSBARS, name) for name in ("input_queued", "output_queued"))
    simulations = min(2, machine_cores())  # at a time, in the estimate
    difference = (float(queued[0]) - float(without[0])) / simulations
    assert (needed - less) / 1.5 < difference < 3 * (needed - less)


def test_the_time_of_a_packet_hop_is_known_for_both_architectures_of_switches() -> None:
    load = {"name": "open_loop", "pattern": "uniform", "message_size": "4 KiB", "load": 0.5}

    def nanoseconds(switch: str) -> float:
        job = {"name": "load", "ranks": 64, "workload": load}
        simulation = Simulation(Scenario(fabric=FABRIC, network={"switch": switch}, jobs=[job]), threads=1)
        simulation.run_for("10 us")
        before, started = simulation.packet_hops, time.process_time()
        simulation.run_for("300 us")
        return 1e9 * (time.process_time() - started) / (simulation.packet_hops - before)

    pairs = [(nanoseconds("input_queued"), nanoseconds("output_queued")) for _ in range(3)]
    links = 256
    expected = packet_hop_time(links, "input_queued") / packet_hop_time(links, "output_queued")
    assert expected / 2 < median(queued / without for queued, without in pairs) < 2 * expected


def test_every_architecture_of_switches_has_a_time() -> None:
    assert set(HOP) == set(entries("switch"))


@pytest.mark.parametrize(
    ("file", "key"), [("large_count", "jobs[0].count"), ("large_messages", "jobs[0].workload.messages_per_iteration")]
)
def test_large_numbers_are_refused_at_once(file: str, key: str) -> None:
    started = time.process_time()
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(REPRODUCERS / f"{file}.toml").resolve()
    assert time.process_time() - started < LOOP_S
    assert [problem.key for problem in caught.value.problems] == [key]
    assert caught.value.problems[0].line in (17, 18)


def placed(path: list[Any], value: Any) -> dict[str, Any]:
    """The small scenario with a value at this place."""
    scenario = copy.deepcopy(SMALL)
    table: Any = scenario
    for key in path[:-1]:
        table = table.setdefault(key, {}) if isinstance(table, dict) else table[key]
    table[path[-1]] = value
    return scenario


def numbers_of_tables(value: int) -> Iterator[tuple[str, dict[str, Any]]]:
    job = ["jobs", 0]
    keys = [[*job, key] for key in ("ranks", "count", "ranks_per_host", "stop", "stream", "service_level")]
    keys += [["qos", key] for key in ("service_levels", "lanes", "default")]
    keys += [["fabric", key] for key in ("hosts", "radix", "levels", "leaf_down", "leaf_up", "rails")]
    keys += [["seed"], ["power", "sockets"], ["power", "seed"], ["placement", "ranks_per_host"], ["placement", "seed"]]
    for path in keys:
        yield ".".join(map(str, path)), placed(path, value)
    full = placed([*job, "ranks"], value)
    full["jobs"][0]["ranks_per_host"] = value
    yield "ranks and ranks_per_host", full
    for key in ("ranks_per_host", "hosts", "seed"):
        background = {"jobs": [{"workload": "ring"}], "hosts": 4, key: value}
        yield f"background.{key}", placed(["background"], background)
    for name, kind in PLACEMENTS.items():
        needed = {key: 2 for key, info in kind.model_fields.items() if info.is_required()}
        for key, info in kind.model_fields.items():
            if "int" in str(info.annotation):
                table = {"name": name, **needed, key: value}
                yield f"placement {name}.{key}", placed(["placement"], table)


def numbers_of_fabrics(value: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in entries("topology").values():
        for example in entry.schema["examples"]:
            for key, given in example.items():
                if isinstance(given, int) and "bandwidth" not in key:
                    yield f"{entry.name}.{key}", placed(["fabric"], {"topology": entry.name, **example, key: value})


def numbers_of_workloads(value: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, kind in WORKLOADS.items():
        for key in kind(compute=0).whole_numbers():
            table = {"name": name, "compute": "5 us", key: value}
            yield f"workload {name}.{key}", placed(["jobs", 0, "workload"], table)
    imbalance = {"kind": "growing", "steps": value}
    yield "imbalance", placed(["jobs", 0, "workload"], {"name": "ring", "compute": "5 us", "imbalance": imbalance})


@pytest.mark.parametrize("value", [HUGE, 10**23])
@pytest.mark.parametrize("numbers", [numbers_of_tables, numbers_of_fabrics, numbers_of_workloads])
def test_any_number_may_be_huge(numbers: Any, value: int) -> None:
    slow = {}
    for name, scenario in numbers(value):
        started = time.process_time()
        with suppress(FairlaneError):  # nothing else, and nothing that is not ended by a test's time
            Scenario(**scenario, memory="1 GiB").resolve()
        spent = time.process_time() - started
        if spent > LOOP_S:
            slow[name] = spent
    assert not slow


def test_a_pattern_of_too_much_is_refused_before_it_is_written() -> None:
    for workload, ranks in (("ring", 50_000_000), ({"name": "ring", "messages_per_iteration": 10**9}, 64)):
        job = Job.model_validate({"ranks": ranks, "workload": workload})
        with pytest.raises(ScenarioError, match="too many for a communication matrix"):
            program_of(job.source, ranks)


def test_the_memory_that_may_be_taken_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ScenarioError, match=r"needs about .* MiB of memory.*at most 100 MiB, set by the key memory"):
        Scenario(**SMALL, memory="100 MiB").resolve()
    monkeypatch.setattr("fairlane.model.scenario.estimate.machine_memory", lambda: 2**20)
    with pytest.raises(ScenarioError, match=r"at most 1.0 MiB, the memory of this machine; the key memory"):
        Scenario(**SMALL).resolve()
    assert Scenario(**SMALL, memory="1 TiB").resolve().jobs


def test_the_largest_parts_are_named() -> None:
    large = {"ranks": 64, "workload": {"name": "flood_pairs", "compute": "5 us", "messages_per_iteration": 30_000_000}}
    with pytest.raises(ScenarioError) as caught:
        Scenario(**{**SMALL, "jobs": [*SMALL["jobs"], large]}).resolve()
    assert caught.value.problems[0].key == "jobs[1].workload"
    assert "operations" in str(caught.value)


def test_the_machine_s_memory_is_what_its_limits_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine_memory()
    assert 2**28 < whole < 2**50
    monkeypatch.setattr("resource.getrlimit", lambda _: (2**30, 2**31))
    assert machine_memory() == min(whole, 2**30)


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (100, "100 B"),
        (1.24 * 2**30, "1.2 GiB"),
        (999 * 2**20, "1,000 MiB"),
        (1001 * 2**20, "1.0 GiB"),
        (2**64, "16 EiB"),
    ],
)
def test_memory_in_words(amount: float, words: str) -> None:
    assert bytes_text(amount) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.3, "less than a second"),
        (7.04, "7.0 s"),
        (80, "80 s"),
        (180, "3.0 min"),
        (5000, "83 min"),
        (10**6, "12 days"),
    ],
)
def test_time_in_words(seconds: float, words: str) -> None:
    assert seconds_text(seconds) == words


def test_a_study_has_no_more_workers_than_memory_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "study.toml").write_text(STUDY)
    planned = plan(Study.load(tmp_path / "study.toml"))
    each = planned.cells[0].memory
    assert each > 2**27
    monkeypatch.setattr("fairlane.model.scenario.estimate.machine_cores", lambda: 8)
    for room in (1, 3, 20):
        monkeypatch.setattr("fairlane.model.scenario.estimate.machine_memory", lambda room=room: int(1.1 * room * each))
        assert affordable(planned.memory) == min(8, room)
        assert affordable(planned.memory, workers=room) == room
    monkeypatch.setattr("fairlane.model.scenario.estimate.machine_memory", lambda: int(3.5 * each))
    with pytest.raises(ScenarioError, match=r"--workers = 4: each takes about .* MiB of memory; allowed: at most 3"):
        affordable(planned.memory, workers=4)
