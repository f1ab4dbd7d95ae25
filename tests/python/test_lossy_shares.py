"""Two equal flows over one bottleneck of a lossy lane: equal shares, and losses that do not all hit the same flow."""

from typing import Any

import pytest

from fairlane import Scenario, Simulation
from oracle.fabrics import decode

MS = 10**9


def simulation(transport: dict[str, Any], buffer: str, trim_vl: int | None) -> Simulation:
    """Hosts 0 and 1 send to host 2 all the time, in step: their packets come to the switch at the same instants."""
    stream = {"name": "open_loop", "load": 1.0, "arrivals": "fixed", "message_size": "1 MiB"}
    document = {
        "duration": "8 ms",
        "fabric": {"topology": "fat_tree", "hosts": 3, "levels": 1, "radix": 3, "bandwidth": "100 Gb/s"},
        "network": {"buffer": buffer, "transport": transport, "retransmission_timeout": "100 us"},
        "qos": {"sl2vl": [0, 1], "service_levels": 2, "arbiter": "strict_priority", "lossy": [0]},
        "jobs": [{"ranks": 3, "workload": {**stream, "pattern": {"name": "incast", "to": 2}}}],
    }
    if trim_vl is not None:
        document["qos"]["trim_vl"] = trim_vl  # type: ignore[index]
    return Simulation(Scenario.read(document))


def carried(of: Simulation) -> list[int]:
    """What hosts 0 and 1 have sent on lane 0, packets."""
    ports = decode(of.engine.table("ports"))
    rows = zip(ports["link"], ports["lane"], ports["packets"], strict=True)
    sent = {link: packets for link, lane, packets in rows if lane == 0}
    return [sent[0], sent[1]]


def test_flows_of_uec_share_a_link_equally_with_the_round_trip_of_the_fabric() -> None:
    """With the round trip of a longer path, 12 us, the flow that wins at the start keeps more than three quarters."""
    one = simulation({"name": "uec", "notice_vl": 1}, "178 kB", 1)
    one.run_until(2 * MS)
    before = carried(one)
    one.run_until(6 * MS)
    first, second = (after - earlier for after, earlier in zip(carried(one), before, strict=True))
    assert first + second > 0.98 * 4 * MS / (4122 * 80)
    assert 0.45 < first / (first + second) < 0.55


@pytest.mark.parametrize("trim_vl", [1, None])
def test_losses_hit_flows_in_step_alike(trim_vl: int | None) -> None:
    """Windows that always fill the queue: what each flow sends again is between a third and three times the other's."""
    swift = {"name": "swift", "notice_vl": 1, "base_target_delay": "100 us", "fs_range": "0 us", "max_cwnd": 64.0}
    one = simulation(swift, "60 kB", trim_vl)
    one.run_until(4 * MS)
    totals = decode(one.engine.table("totals"))
    assert totals["packets_trimmed" if trim_vl else "packets_lost"][0] > 100
    first, second = carried(one)
    assert 0.4 < first / (first + second) < 0.6
