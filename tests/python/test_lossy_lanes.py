"""Lossy lanes: the closed form of a flow without losses, a small case of htsim's, and what is refused."""

from types import ModuleType
from typing import Any

import pytest

import fairlane
from fairlane.core.errors import BuildError, ScenarioError
from htsim_runs import BYTE, LATENCY, LINKS, benchmark, document


@pytest.fixture(scope="module")
def htsim() -> ModuleType:
    """The benchmark ``benches/htsim.py``."""
    return benchmark()


def test_a_flow_without_losses_takes_what_its_packets_take(htsim: ModuleType) -> None:
    """176.2 us until the sender has the last acknowledgement, as htsim publishes for its ``one.cm``.

    The last packet, which is shorter, starts after 489 full ones, and is stored whole at five switches.
    """
    simulation = fairlane.Simulation(fairlane.Scenario.read(document(htsim)))
    simulation.run_for("1 ms")
    end = simulation.table("ranks")["finished_at_ps"].max()
    last = 2_000_000 - 489 * htsim.PAYLOAD + htsim.HEADER
    # It is stored at each switch before the full packet ahead of it has left, and waits there for its end.
    full = htsim.HEADER + htsim.PAYLOAD
    assert end == (489 * full + (LINKS - 1) * full + last) * BYTE + LINKS * LATENCY
    acknowledgement = LINKS * (LATENCY + htsim.HEADER * BYTE)
    assert (end + acknowledgement) / 1e6 == pytest.approx(176.2, abs=0.1)
    totals = simulation.totals()
    assert totals["packets_trimmed"] == totals["packets_lost"] == 0
    assert totals["control_packets"] == 490


def test_an_incast_is_within_five_percent_of_htsim(htsim: ModuleType) -> None:
    """A small version of the benchmark: never faster than the last link allows, and as many trimmed packets within 30%.

    htsim trimmed 811. The queue here does not count the packet in transmission, and always trims the arriving one.
    """
    case = next(case for case in htsim.CASES if case.tree.hosts == 16)
    for seed in (1, 2, 3):
        tail, trimmed = case.tail(seed)
        assert tail == pytest.approx(case.htsim[0], rel=0.05)
        payload, packets = 15 * 2_000_000, 15 * 490
        assert tail > (payload + packets * htsim.HEADER) * BYTE / 1e6
        assert trimmed == pytest.approx(811, rel=0.3)


@pytest.mark.parametrize("trim_vl", [None, 1])
def test_all_payload_arrives_once_whether_packets_are_trimmed_or_dropped(
    htsim: ModuleType, trim_vl: int | None
) -> None:
    """Fifteen hosts send to one through queues of ten packets."""
    given = htsim.SMALL.document(
        {"name": "incast", "messages_per_iteration": 1, "message_size": "100 kB"}, spray=True, seed=1
    )
    given["network"] |= {"buffer": "41500 B", "retransmission_timeout": "100 us"}
    given["network"]["transport"] |= {"kmin": "8 kB", "kmax": "30 kB"}
    given["qos"]["trim_vl"] = trim_vl
    simulation = fairlane.Simulation(fairlane.Scenario.read(given))
    simulation.run_for("20 ms")
    totals = simulation.totals()
    assert simulation.table("ranks")["finished"].all()
    assert totals["bytes_delivered"] == totals["bytes_injected"] == 15 * 100_000
    assert totals["packets_lost"] + totals["packets_trimmed"] == totals["packets_retransmitted"] > 0
    assert (totals["packets_trimmed"] > 0) == (trim_vl is not None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"qos": {"lossy": [2]}}, ["qos.lossy", "2", "0 to 1"]),
        ({"qos": {"trim_vl": 7}}, ["qos.trim_vl", "7", "0 to 1"]),
        ({"qos": {"lossy": False}}, ["qos.trim_vl", "only with lossy lanes"]),
        (
            {"network": {"transport": "endpoint_cc"}},
            ["network.transport", "endpoint_cc", "lanes that lose nothing", "pair"],
        ),
        ({"network": {"switch": "input_queued", "transport": "swift"}}, ["qos.lossy", "output_queued"]),
        ({"network": {"retransmission_timeout": 0}}, ["network.retransmission_timeout"]),
        ({"network": {"retry_count": 8}}, ["network.retry_count", "8", "7"]),
    ],
)
def test_what_does_not_fit_is_refused(htsim: ModuleType, changes: dict[str, Any], words: list[str]) -> None:
    """With the key, the value, and what is allowed."""
    given = document(htsim)
    for table, keys in changes.items():
        given[table] = {**given[table], **keys}
    with pytest.raises((ScenarioError, BuildError)) as error:
        fairlane.Simulation(fairlane.Scenario.read(given))
    assert all(word in str(error.value) for word in words), error.value


def test_a_job_on_other_lanes_may_have_any_transport(htsim: ModuleType) -> None:
    """Service level 1 is mapped to lane 1, which loses nothing."""
    given = document(htsim)
    given["jobs"][0] |= {"service_level": 1, "transport": "credits_only"}
    simulation = fairlane.Simulation(fairlane.Scenario.read(given))
    simulation.run_for("1 ms")
    assert simulation.table("ranks")["finished"].all()


def test_a_class_on_a_lossy_lane_needs_a_transport_for_losses(htsim: ModuleType) -> None:
    given = document(htsim)
    given["jobs"][0] |= {"service_level": 1, "transport": "credits_only"}
    given["classes"] = {"large": {"size": {"above": "1 KiB"}, "service_level": 0}}
    with pytest.raises((ScenarioError, BuildError), match=r"lanes that lose nothing.*virtual lane 0"):
        fairlane.Simulation(fairlane.Scenario.read(given))
