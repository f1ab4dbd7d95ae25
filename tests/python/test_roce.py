"""RoCE: go-back-N and HPCC in scenarios, the shipped example, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import Scenario, ScenarioError, Simulation
from fairlane.core.errors import BuildError
from fairlane.results.flows import flows
from report_runs import printed

EXAMPLE = Path(__file__).parents[2] / "examples" / "ai" / "roce.toml"
DCQCN = {"name": "dcqcn", "kmin": "40 kB", "kmax": "160 kB", "pmax": 0.2}
PAYLOAD, SENDERS = 1000, 4


def incast(transport: Any, retransmission: str, *, lossy: bool = False, rate: float = 0, **fabric: Any) -> Simulation:
    """Four hosts send 2 MB each to one, until all has come."""
    links = [f"host{host} port 1 to switch0" for host in range(1, 1 + SENDERS)] if rate else []
    workload = {"name": "incast", "messages_per_iteration": 1, "message_size": "2 MB", "compute": 0}
    document = {
        "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1, "radix": 8, "bandwidth": "100 Gb/s", **fabric},
        "network": {
            "mtu": f"{PAYLOAD} B",
            "transport": transport,
            "buffer": "200 kB",
            "retransmission": retransmission,
            "retransmission_timeout": "100 us",
        },
        "qos": {"lossy": lossy},
        "fault": [{"kind": "bit_errors", "link": link, "rate": rate, "retry": False, "at": "0 us"} for link in links],
        "jobs": [{"name": "incast", "stop": 1, "ranks": 1 + SENDERS, "workload": workload}],
        "duration": "50 ms",
    }
    simulation = Simulation(Scenario.read(document))
    simulation.run_for("50 ms")
    return simulation


@pytest.mark.parametrize("retransmission", ["selective", "go_back_n"])
@pytest.mark.parametrize("transport", ["credits_only", "swift", "hpcc", "uec", DCQCN])
def test_all_payload_comes_once_over_links_with_errors(transport: Any, retransmission: str) -> None:
    simulation = incast(transport, retransmission, rate=2e-6)
    totals = simulation.totals()
    assert simulation.table("ranks")["finished"].all()
    assert totals["bytes_delivered"] == totals["bytes_injected"] >= SENDERS * 2_000_000
    assert totals["packets_lost"] > 0
    assert totals["packets_retransmitted"] == totals["packets_lost"] + totals["packets_discarded"]
    assert (totals["packets_discarded"] > 0) == (retransmission == "go_back_n")
    assert totals["bytes_retransmitted"] <= PAYLOAD * totals["packets_retransmitted"]


def test_dcqcn_on_lossy_lanes_wastes_more_if_it_goes_back() -> None:
    selective, back = (incast(DCQCN, scheme, lossy=True) for scheme in ("selective", "go_back_n"))
    assert selective.totals()["packets_lost"] > 0
    assert back.totals()["bytes_retransmitted"] > 1.5 * selective.totals()["bytes_retransmitted"]


def test_without_losses_both_schemes_are_the_same() -> None:
    """Nothing is sent that selective retransmission does not send."""
    runs = [incast("hpcc", scheme).digest() for scheme in ("selective", "go_back_n")]
    assert runs[0] == runs[1]


def test_flows_of_one_link_get_equal_shares_of_95_percent_with_telemetry() -> None:
    """Three hosts send to one through 0.95 + 3 (1 - 0.95) / 10 of its link, each a third of it within 5%."""
    workload = {"name": "open_loop", "pattern": "incast", "load": 1.0, "message_size": "64 KiB"}
    links = {"bandwidth": "100 Gb/s", "latency": "1 us"}
    scenario = Scenario(
        fabric={"topology": "fat_tree", "hosts": 4, "levels": 1, "radix": 4, **links},
        network={"mtu": "1000 B", "header": "62 B", "buffer": "1 MB", "transport": {"name": "hpcc", "flows": 10}},
        jobs=[{"name": "incast", "ranks": 4, "workload": workload}],
        duration="5 ms",
    )
    simulation = Simulation(scenario)
    simulation.run_for("3 ms")
    before = simulation.table("ports")["bytes"]
    simulation.run_for("2 ms")
    ports = simulation.table("ports")
    sent = (ports["bytes"] - before).filter(ports["class"] == "host up") * 8 / 2e6
    rates = sent.sort()[1:].to_list()  # the first is the receiver's, of acknowledgements
    assert sum(rates) == pytest.approx(96.5, abs=1)
    assert rates == pytest.approx([96.5 / 3] * 3, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": {"retransmission": "goback"}}, ["network.retransmission", "goback", "go_back_n"]),
        (
            {"network": {"retransmission": "go_back_n"}, "fabric": {"routing": "adaptive"}},
            ["network.retransmission", "go_back_n", "on one path"],
        ),
        (
            {
                "network": {"retransmission": "go_back_n", "transport": "uec"},
                "qos": {"service_levels": 2, "lossy": [0], "trim_vl": 1},
            },
            ["network.retransmission", "go_back_n", "qos.trim_vl"],
        ),
        ({"network": {"transport": {"name": "hpcc", "eta": 2}}}, ["network.transport.eta", "2"]),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: list[str]) -> None:
    document: dict[str, Any] = {
        "fabric": {"topology": "fat_tree", "hosts": 8},
        "jobs": [{"name": "job", "ranks": 4, "workload": "all_to_all"}],
        "duration": "1 ms",
    }
    for table, keys in changes.items():
        document[table] = {**document.get(table, {}), **keys}
    with pytest.raises((ScenarioError, BuildError)) as error:
        Simulation(Scenario.read(document))
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.long
def test_short_flows_of_the_example_are_faster_with_telemetry() -> None:
    """As in Li et al., SIGCOMM 2019: the tail of short flows is that of queues, which HPCC keeps empty."""

    def tail(*settings: str) -> float:
        run = fairlane.run(Scenario.load(EXAMPLE, set=settings), isolated=False)
        assert ("discarded" in printed(run, 400)) == ("qos.lossy=true" in settings)
        table = flows(run)
        assert table is not None
        short = table.filter(table["bytes"] < 10_000)["slowdown"]
        assert short.null_count() == 0
        worst = short.quantile(0.99)
        assert worst is not None
        return worst

    dcqcn = 'network.transport={ name = "dcqcn", kmin = "40 kB", kmax = "160 kB", pmax = 0.2 }'
    assert tail() < 0.5 * tail(dcqcn)
    assert tail("qos.lossy=true", 'network.retransmission="go_back_n"') < 0.5 * tail(dcqcn)
