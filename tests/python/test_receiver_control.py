"""Ultra Ethernet's control by receivers: closed forms, path choice, the stored comparison, bad input."""

import csv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fairlane
from fairlane.core.errors import BuildError, ScenarioError
from htsim_runs import BYTE, LINKS, benchmark, document

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def htsim() -> ModuleType:
    """The benchmark ``benches/htsim.py``."""
    return benchmark()


def simulated(scenario: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """When the last rank ends, us, and the totals of a run."""
    simulation = fairlane.Simulation(fairlane.Scenario.read(scenario))
    simulation.run_for("20 ms")
    assert simulation.table("ranks")["finished"].all()
    return float(simulation.table("ranks")["finished_at_ps"].max()) / 1e6, simulation.totals()  # type: ignore[arg-type]


@pytest.mark.parametrize(("control", "published"), [("receiver", 177.368), ("both", 177.368), ("sender", 176.2)])
def test_a_flow_takes_what_htsim_publishes(htsim: ModuleType, control: str, published: float) -> None:
    """Its ``one.cm``, 2 MB: credit at 0.99 of the rate of the link takes a little longer than a window."""
    scenario = document(htsim)
    scenario["network"]["transport"]["control"] = control
    end, totals = simulated(scenario)
    assert end + LINKS * (1 + htsim.HEADER * BYTE / 1e6) == pytest.approx(published, rel=0.005)
    assert totals["packets_trimmed"] == 0


@pytest.mark.parametrize(("senders", "size"), [(3, 400_000), (7, 400_000), (15, 200_000)])
def test_an_incast_takes_the_time_of_its_bytes_and_a_round_trip(htsim: ModuleType, senders: int, size: int) -> None:
    """The last link is never idle and carries every byte once: between its whole rate and 0.99 of it.

    Only packets of the speculative windows, of 1.5 bandwidth-delay products and a packet each, can be trimmed.
    """
    scenario = document(htsim)
    scenario["network"]["transport"]["control"] = "receiver"
    workload = {"name": "incast", "messages_per_iteration": 1, "message_size": f"{size} B", "compute": 0}
    hosts = {"hosts": list(range(senders + 1))}
    scenario["jobs"] = [{"name": "all", "ranks": senders + 1, "stop": 1, "placement": hosts, "workload": workload}]
    end, totals = simulated(scenario)
    packets = -(-size // htsim.PAYLOAD)
    bytes_time = senders * (size + packets * htsim.HEADER) * BYTE / 1e6
    assert bytes_time < end < bytes_time / 0.99 + htsim.SMALL.round_trip
    assert 0 < totals["packets_trimmed"] == totals["packets_retransmitted"]
    assert totals["packets_trimmed"] <= senders * (1.5 * htsim.SMALL.window + 1)
    assert totals["bytes_delivered"] == senders * size


def test_all_payload_arrives_if_credits_and_acknowledgements_are_lost(htsim: ModuleType) -> None:
    """Everything on one lossy lane with queues of three packets, and two messages of each flow."""
    scenario = document(htsim, trim_vl=None)
    scenario["network"] |= {"buffer": "12450 B", "retransmission_timeout": "50 us"}
    scenario["network"]["transport"] |= {"control": "receiver", "kmin": "4 kB", "kmax": "8 kB", "notice_vl": 0}
    workload = {"name": "incast", "messages_per_iteration": 2, "message_size": "30 kB", "compute": 0}
    hosts = {"hosts": list(range(8))}
    scenario["jobs"] = [{"name": "all", "ranks": 8, "stop": 2, "placement": hosts, "workload": workload}]
    _, totals = simulated(scenario)
    assert totals["packets_lost"] > 0
    assert totals["bytes_delivered"] == 7 * 2 * 2 * 30_000


@pytest.mark.parametrize("choice", ["reps", "mixed"])
def test_paths_without_marks_are_recycled(htsim: ModuleType, choice: str) -> None:
    """A leaf has two links up, one at a quarter of its bandwidth: a flow that is sprayed takes both alike."""
    scenario = document(htsim)
    scenario["fault"] = [{"kind": "degraded_link", "link": "leaf0 port 3 to aggregation0", "at": 0}]
    sprayed, _ = simulated(scenario)
    scenario["network"]["transport"] |= {"path_choice": choice, "paths": 16}
    chosen, _ = simulated(scenario)
    assert chosen < sprayed


def test_the_stored_comparison_is_within_five_percent_or_explained() -> None:
    """The page names each case of control by receivers and of path choice that is further off, with its reason."""
    page = (DOCS / "ultra-ethernet.md").read_text(encoding="utf-8")
    with (DOCS / "data" / "htsim.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    for row in rows:
        mean, low, high = (float(row[key]) for key in ("mean_us", "htsim_low_us", "htsim_high_us"))
        near = 0.95 * low <= mean <= 1.05 * high
        assert near or row["case"] in page.partition("## What differs")[2], row["case"]


@pytest.mark.parametrize(
    ("changes", "routing", "names"),
    [
        ({"control": "receivers"}, "packet", ["network.transport", "receivers", "receiver"]),
        ({"oversubscription": 4}, "packet", ["network.transport.oversubscription", "4", "receiver"]),
        ({"control": "receiver", "oversubscription": 91}, "packet", ["network.transport.oversubscription", "91", "90"]),
        ({"path_choice": "reps", "paths": 100}, "packet", ["network.transport.paths", "100", "power of two"]),
        ({"path_choice": "reps"}, "flow", ["network.transport.path_choice", "reps", 'by = "packet"']),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    htsim: ModuleType,
    changes: dict[str, Any],
    routing: str,
    names: list[str],
) -> None:
    """With the key, the value, and what is allowed."""
    scenario = document(htsim)
    scenario["network"]["transport"] |= changes
    scenario["fabric"]["routing"]["by"] = routing
    with pytest.raises((ScenarioError, BuildError)) as error:
        fairlane.Simulation(fairlane.Scenario.read(scenario))
    assert all(name in str(error.value) for name in names), error.value
