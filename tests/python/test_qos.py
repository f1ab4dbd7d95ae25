"""Strategies of quality of service: what they stand for, and how lanes share a link under them."""

from typing import Any

import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.model.qos import KINDS, STRATEGIES, JobShare, TrafficClass, packets

NARROW = {"topology": "fat_tree", "hosts": 8, "levels": 2, "leaf_down": 4, "leaf_up": 1, "bandwidth": "100 Gb/s"}
"""Two leaves of four hosts, and one cable from each to the top: what crosses it has to share it."""


def scenario(strategy: str, jobs: list[dict[str, Any]], **qos: Any) -> Scenario:
    return Scenario(fabric=NARROW, qos={"strategy": strategy, **qos}, jobs=jobs)


def pair(name: str, low: int, high: int, workload: dict[str, Any]) -> dict[str, Any]:
    """A job of two ranks under different leaves."""
    return {"name": name, "ranks": 2, "workload": {"compute": 0, **workload}, "placement": on(low, high)}


def on(*hosts: int) -> dict[str, Any]:
    return {"name": "list", "hosts": list(hosts)}


def floods(name: str, workload: dict[str, Any], *pairs: tuple[int, int]) -> list[dict[str, Any]]:
    return [pair(f"{name}-{low}", low, high, workload) for low, high in pairs]


def uplink_bytes(strategy: str, jobs: list[dict[str, Any]]) -> dict[int, int]:
    """Bytes by lane on the first leaf's cable to the top, from 1 to 3 ms: 25 MB at most."""
    simulation = Simulation(scenario(strategy, jobs))
    simulation.run_for("1 ms")
    before = simulation.table("ports")["bytes"]
    simulation.run_for("2 ms")
    ports = simulation.table("ports")
    after = (ports["bytes"] - before).to_numpy()

    links = simulation.scenario.fabric.links
    up = [
        link
        for link, from_switch, to_switch in zip(
            links["link"].tolist(), links["from_switch"].tolist(), links["to_switch"].tolist(), strict=True
        )
        if from_switch == 0 and to_switch >= 2
    ]
    assert len(up) == 1
    return {
        int(lane): int(count)
        for link, lane, count in zip(ports["link"], ports["lane"], after, strict=True)
        if link == up[0]
    }


BULK = {"name": "flood_pairs", "message_size": "256 KiB", "messages_per_iteration": 8, "distinct_iterations": 1}
ALLTOALL = {"name": "all_to_all", "message_size": "2 MiB", "messages_per_iteration": 4, "distinct_iterations": 1}


def test_without_a_strategy_everything_shares_one_lane() -> None:
    jobs = [pair("a", 0, 4, BULK)]
    plain = Scenario(fabric=NARROW, jobs=jobs).resolve()
    none = scenario("none", jobs).resolve()
    assert plain.spec == none.spec


def test_every_kind_of_traffic_has_a_class_and_the_classes_are_lanes() -> None:
    kinds = {"control", "eager", "bulk", "collective", "collective_control", "collective_eager"}
    assert set(KINDS) == kinds
    for name in ("split_priority", "bandwidth_weight"):
        qos = scenario(name, [pair("a", 0, 4, BULK)]).resolve().tables["qos"]
        assert qos["kinds"] == {kind: int(KINDS[kind]) for kind in kinds}
        assert qos["sl2vl"][:4] == [0, 1, 2, 3]
    assert TrafficClass.POINT_TO_POINT_DATA < TrafficClass.COLLECTIVE_DATA
    assert KINDS["control"] > KINDS["bulk"]


def test_bandwidth_weight_gives_collectives_a_quarter() -> None:
    jobs = floods("bulk", BULK, (0, 4), (1, 5)) + floods("all", ALLTOALL, (2, 6), (3, 7))
    lanes = uplink_bytes("bandwidth_weight", jobs)
    data = lanes[TrafficClass.COLLECTIVE_DATA] + lanes[TrafficClass.POINT_TO_POINT_DATA]
    assert lanes[TrafficClass.COLLECTIVE_DATA] / data == pytest.approx(0.25, abs=0.01)
    # Control messages are few.
    assert data == pytest.approx(25e6, rel=0.02)
    assert 0 < lanes[TrafficClass.POINT_TO_POINT_CONTROL] < 0.02 * data


def test_split_priority_puts_collective_data_first_up_to_its_share_and_shares_the_rest() -> None:
    jobs = floods("bulk", BULK, (0, 4), (1, 5)) + floods("all", ALLTOALL, (2, 6), (3, 7))
    lanes = uplink_bytes("split_priority", jobs)
    # 10 us carry 30.3 packets of 4122 bytes, a quarter is used up by the eighth. Beyond their quarters collectives, the
    # higher class, go first, so they have all the rest.
    data = lanes[TrafficClass.COLLECTIVE_DATA] + lanes[TrafficClass.POINT_TO_POINT_DATA]
    assert lanes[TrafficClass.POINT_TO_POINT_DATA] / data == pytest.approx(8 / 30.3, abs=0.01)
    assert data == pytest.approx(25e6, rel=0.02)


def test_isolate_shares_a_link_as_the_jobs_share_the_machine() -> None:
    big = {"name": "big", "ranks": 6, "placement": on(0, 1, 2, 4, 5, 6), "workload": {"compute": 0, **BULK}}
    lanes = uplink_bytes("isolate", [big, pair("small", 3, 7, BULK)])
    assert lanes[0] / sum(lanes.values()) == pytest.approx(0.75, abs=0.01)
    assert set(lanes) == {0, 1}


def test_weights_are_exact_where_they_can_be_small() -> None:
    assert packets([1024, 2048, 4096, 1024]) == [1, 2, 4, 1]
    assert packets([1024] * 8) == [1] * 8
    assert packets([4096, 2]) == [16, 1]
    assert packets([1000, 999, 500]) == [16, 16, 8]


def test_isolate_numbers_the_copies_of_a_job_and_refuses_more_jobs_than_levels() -> None:
    job = {"name": "job", "ranks": 2, "count": 4, "workload": {"name": "allreduce"}}
    resolved = scenario("isolate", [job]).resolve()
    assert [one.service_level for one in resolved.jobs] == [0, 1, 2, 3]
    assert resolved.tables["qos"]["sl2vl"][:4] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="1 to 16 jobs, and there are 17"):
        STRATEGIES["isolate"]([JobShare(str(number), 1) for number in range(17)])


def test_what_the_strategy_says_is_not_said_twice() -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario("isolate", [{**pair("a", 0, 4, BULK), "service_level": 2}], default=1)
    assert "qos.default" in str(caught.value)
    assert "jobs[0].service_level" in str(caught.value)
    assert scenario("isolate", [pair("a", 0, 4, BULK)], lanes=4).resolve().tables["qos"]["lanes"] == 4


def test_an_unknown_strategy_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="split_priority"):
        scenario("split_prio", [pair("a", 0, 4, BULK)])


def test_a_strategy_that_needs_more_lanes_than_the_switch_has_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"qos\.lanes"):
        scenario("split_priority", [pair("a", 0, 4, BULK)], lanes=3).resolve()


def test_every_strategy_has_a_line_about_it() -> None:
    assert all(entry.summary for entry in STRATEGIES.entries().values())
