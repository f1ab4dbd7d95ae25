"""Traffic classes: which messages they select, and the service level that these have."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typing_extensions import override

import chakra_nodes
from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.model.qos import STRATEGIES, JobShare
from fairlane.model.scenario.levels import operations
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import Rank
from fairlane.sim.controller import control
from fairlane.sim.controller.base import Work
from fairlane.study.pinned import pin

TRACES = Path(__file__).parent.parent / "data" / "traces"
RANKS, MTU, HEADER = 8, 4096, 26
BLOCK = 32 * 1024
ENDLESS = "100 ms"


def scenario(
    classes: dict[str, Any], qos: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **tables: Any
) -> Scenario:
    """A job of eight ranks on one switch whose messages are all eager; two service levels with a lane each."""
    return Scenario(
        fabric={"topology": "fat_tree", "hosts": RANKS, "levels": 1},
        mpi={"eager_threshold": "1 MiB"},
        qos={"service_levels": 2} if qos is None else qos,
        classes=classes,
        jobs=[{"name": "job", "ranks": RANKS, "workload": "all_to_all", **(job or {})}],
        **tables,
    )


def finished(one: Scenario) -> Simulation:
    simulation = Simulation(one)
    assert simulation.run_for(ENDLESS)
    return simulation


def injected(simulation: Simulation) -> dict[int, int]:
    """Bytes that hosts have sent, by lane."""
    sent = simulation.table("ports").filter(pl.col("role") == "host", pl.col("from_vertex").str.starts_with("host"))
    return dict(sent.group_by("lane").agg(pl.col("bytes").sum()).filter(pl.col("bytes") > 0).iter_rows())


def wire(size: int) -> int:
    return size + -(-size // MTU) * HEADER


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A recorded allreduce of all ranks, and an all-to-all and an allreduce of two process groups at the same time."""
    folder = tmp_path_factory.mktemp("step")
    trace = chakra_nodes.extended(
        TRACES / "chakra_allreduce-8.tar.zst",
        folder / "trace",
        chakra_nodes.collective(100, "alltoall", RANKS * BLOCK, "expert_parallel"),
        chakra_nodes.collective(101, "allreduce", 1 << 20, "data_parallel"),
    )
    groups = folder / "groups.json"
    groups.write_text(json.dumps({"expert_parallel": list(range(RANKS)), "data_parallel": list(range(RANKS))}))
    return {"trace": {"path": trace, "groups": groups, "repeat": False}, "ranks": None, "workload": None}


EXPERTS = {"communicator": "expert_parallel", "service_level": 1}


def test_a_process_group_of_a_trace_has_the_lane_of_its_class(step: dict[str, Any]) -> None:
    """In an all-to-all of blocks each rank sends seven of them."""
    expected = RANKS * (RANKS - 1) * wire(BLOCK)
    simulation = finished(scenario({"experts": EXPERTS}, job=step))
    assert injected(simulation)[1] == expected
    # The recorded allreduce and that of the other group are on lane 0, as without classes.
    everything = injected(finished(scenario({}, job=step)))
    assert everything.keys() == {0}
    assert injected(simulation)[0] == everything[0] - expected
    by_pattern = {"others": {"communicator": ["data_*", "world"], "service_level": 1}}
    swapped = injected(finished(scenario(by_pattern, job=step)))
    assert (swapped[0], swapped[1]) == (expected, everything[0] - expected)


def test_operations_and_sizes_select_as_communicators_do(step: dict[str, Any]) -> None:
    """The all-to-all's messages are one block; those of the ring of an allreduce of 1 MiB an eighth of it."""
    digests = {
        finished(scenario({"one": {**selectors, "service_level": 1}}, job=step)).digest()
        for selectors in (
            {"communicator": "expert_parallel"},
            {"operation": "alltoall"},
            {"operation": ["alltoall", "one_sided"], "job": "j*"},
            {"communicator": "expert_parallel", "size": {"above": "31 KiB", "up_to": "32 KiB"}},
        )
    }
    assert len(digests) == 1
    nothing = finished(scenario({"one": {"size": {"above": "1 MiB"}, "service_level": 1}}, job=step))
    assert injected(nothing).keys() == {0}


def test_the_first_class_that_selects_a_message_counts(step: dict[str, Any]) -> None:
    both = {"experts": EXPERTS, "rest": {"service_level": 0}}
    assert injected(finished(scenario(both, job=step)))[1] == RANKS * (RANKS - 1) * wire(BLOCK)
    # A class without a level keeps others from selecting its messages: they have the level of the job.
    kept = {"experts": {"communicator": "expert_parallel"}, "rest": {"service_level": 0}}
    assert injected(finished(scenario(kept, job={**step, "service_level": 1})))[1] == RANKS * (RANKS - 1) * wire(BLOCK)


def test_a_class_of_all_messages_is_the_level_of_the_job() -> None:
    """Also where other levels stand against it: kinds give way to a class, and a class to ranks."""
    job = {"workload": "fft"}
    run = {"duration": "1 ms"}

    def digest(classes: dict[str, Any], qos: dict[str, Any], job: dict[str, Any]) -> str:
        simulation = Simulation(scenario(classes, {"service_levels": 2, **qos}, job, **run))
        simulation.run_for("1 ms")
        return simulation.digest()

    all_on_one = digest({}, {}, {**job, "service_level": 1})
    assert digest({"all": {"service_level": 1}}, {"kinds": {"collective_eager": 0}}, job) == all_on_one
    assert digest({"rows": {"communicator": "row", "service_level": 1}}, {}, job) != all_on_one
    none = digest({}, {}, job)
    assert digest({"all": {"service_level": 1}}, {}, {**job, "service_levels": {"default": 0}}) == all_on_one
    ranks = {"ranks": dict.fromkeys(range(RANKS), 0)}
    assert digest({"all": {"service_level": 1}}, {}, {**job, "service_levels": ranks}) == none
    assert (
        digest({"unused": {"operation": "scan", "service_level": 1}, "none": {"size": {"up_to": "4 B"}}}, {}, job)
        == none
    )


def test_a_level_of_a_class_changes_while_jobs_run(step: dict[str, Any]) -> None:
    simulation = Simulation(scenario({"experts": {"communicator": "expert_parallel"}}, job=step))
    simulation.set_class_service_level("experts", 1)
    assert simulation.run_for(ENDLESS)
    assert injected(simulation)[1] == RANKS * (RANKS - 1) * wire(BLOCK)
    with pytest.raises(ScenarioError, match='did you mean "experts"'):
        simulation.set_class_service_level("expert", 0)


def test_the_strategy_gives_each_class_a_lane(step: dict[str, Any]) -> None:
    tables = {"experts": {"communicator": "expert_parallel"}, "large": {"size": {"above": "64 KiB"}}}
    lanes = injected(finished(scenario(tables, {"strategy": "classes"}, step)))
    assert lanes.keys() == {1, 2}
    assert lanes[1] == RANKS * (RANKS - 1) * wire(BLOCK)
    with pytest.raises(ValueError, match="1 to 15"):
        STRATEGIES.find("classes")([JobShare("job", 8)])
    with pytest.raises(ScenarioError, match="is set by the QoS strategy classes"):
        scenario({"experts": EXPERTS}, {"strategy": "classes"}, step)


class Halves(Workload):
    """An all-to-all in a copy of the communicator of a half of the ranks."""

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.comm_split(3, rank.index // 4, name="low" if rank.index < 4 else "high")
        rank.comm_dup(4, comm=3)
        rank.collective("alltoall", BLOCK, comm=4)
        rank.comm_free(4)
        rank.comm_free(3)


def test_a_copy_of_a_communicator_has_its_name() -> None:
    """Four ranks send three blocks each on the copy, and dup an allreduce of four bytes on the original."""
    simulation = finished(
        scenario(
            {"low": {"communicator": "low", "operation": ["alltoall", "allreduce"], "service_level": 1}},
            job={"workload": Halves(), "stop": 1},
        )
    )
    rounds = 2  # recursive doubling among four
    assert injected(simulation)[1] == 4 * (3 * wire(BLOCK) + rounds * wire(4))


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ('[classes.a]\ncommunicator = "rows"\n', 'classes.a.communicator[0] = "rows": unknown communicator'),
        ('[classes.a]\ncommunicator = "rows"\n', 'did you mean "row"?'),
        ('[classes.a]\njob = ["jab"]\n', 'classes.a.job[0] = "jab": unknown job; allowed: job'),
        ('[classes.a]\noperation = "altoall"\n', 'did you mean "alltoall"?'),
        ("[classes.a]\nservice_level = 16\n", "classes.a.service_level"),
        ('[classes.a]\nsize = { above = "8 KiB", up_to = "8 KiB" }\n', "classes.a.size.up_to"),
        ("[classes.a]\n[classes.b]\n", "classes.b: selects no message: classes.a comes first and selects all of them"),
        (
            '[classes.a]\noperation = "collective"\n[classes.b]\noperation = ["alltoall", "neighbor_alltoall"]\n',
            "classes.b: selects no message",
        ),
        ('[classes.a]\njob = "j*"\n[classes.b]\njob = "job"\n', "classes.b: selects no message"),
        ('[classes.a]\nsize = { below = "8 KiB" }\n', "classes.a.size.below"),
        ("[qos]\nservice_levels = 1\n[classes.a]\nservice_level = 1\n", "classes.a.service_level = 1: service level"),
    ],
)
def test_bad_classes_are_named(tables: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.toml"
    job = '[[jobs]]\nname = "job"\nranks = 8\nworkload = "fft"\n'
    file.write_text(f'duration = "1 ms"\nfabric = {{ topology = "fat_tree", hosts = 8 }}\n{job}{tables}')
    assert execute(["check", str(file)]) == 2
    found = " ".join(capsys.readouterr().err.split())
    assert expected in found
    assert "scenario.toml" in found


def test_the_simulator_knows_every_operation() -> None:
    finished_at = Simulation(
        scenario({name: {"operation": name, "job": "job"} for name in operations() if name != "collective"})
    )
    assert finished_at.run_for("1 us") is False


@pytest.mark.parametrize("mode", ["online", "episodes"])
def test_a_controller_sets_levels_of_classes(mode: Any) -> None:
    """A fixed table has the effect of the scenario's own level, and a class that does not exist is named."""

    def works(level: dict[str, int], controller: dict[str, Any]) -> list[Work]:
        classes = {"rows": {"communicator": "row", **level}}
        qos = {"service_levels": 2, "arbiter": "weighted_round_robin"}
        one = scenario(classes, qos, {"workload": "fft"})
        return [outcome.treated for outcome in control(one, controller, period="200 us", periods=2, mode=mode)]

    fixed = {"name": "fixed", "service_levels": 2}
    assert works({}, {**fixed, "classes": {"rows": 1}}) == works({"service_level": 1}, {"name": "none"})
    with pytest.raises(ScenarioError, match='did you mean "rows"'):
        works({}, {**fixed, "classes": {"row": 1}})


def test_a_study_keeps_the_classes_of_every_job() -> None:
    jobs = [
        {"name": "wide", "ranks": 4, "count": 2, "workload": {"name": "ft", "compute": "10 us"}},
        {"name": "other", "ranks": 4, "workload": {"name": "all_to_all", "compute": "10 us"}},
    ]
    classes = {"columns": {"communicator": "column", "service_level": 1}, "wide": {"job": "wide", "service_level": 2}}
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2}
    whole = Scenario.read({"duration": "200 us", "fabric": fabric, "jobs": jobs, "classes": classes})
    pinned = pin(whole, whole.decide(), ".", "default")
    again = Scenario.read(pinned.scenario).resolve().tables["qos"]["classes"]
    assert again == whole.resolve().tables["qos"]["classes"]
    assert [one["jobs"] for one in again] == [None, ["wide-0", "wide-1"]]
    copy, other = (Scenario.read(pinned.isolated(job).scenario).resolve().tables["qos"] for job in (1, 2))
    assert [(one["jobs"], one["communicators"]) for one in copy["classes"]] == [(None, ["column"]), (["wide-1"], None)]
    assert [(one["jobs"], one["communicators"]) for one in other["classes"]] == [(None, [])]
