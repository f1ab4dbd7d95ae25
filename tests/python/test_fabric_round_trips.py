"""Random built-in fabrics, with and without rails, written in every format and read again: the same graph."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.fabric import Cable, Fabric, Wiring, read_wiring
from fairlane.fabric.export import FORMATS, wiring_of
from fairlane.fabric.identities import numbered
from fairlane.fabric.table import FabricTable

SPEEDS = ("50 Gb/s", "100 Gb/s", "200 Gb/s", "400 Gb/s")
LATENCIES = ("100 ns", "250 ns", "1 us")
TOPOLOGIES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "fat_tree": st.fixed_dictionaries(
        {
            "hosts": st.just(24),
            "levels": st.just(2),
            "leaf_down": st.sampled_from([2, 4, 8]),
            "leaf_up": st.sampled_from([1, 2, 4]),
        }
    ),
    "torus": st.fixed_dictionaries(
        {"sides": st.lists(st.integers(2, 4), min_size=1, max_size=3), "hosts_per_switch": st.sampled_from([1, 2])}
    ),
    "dragonfly": st.fixed_dictionaries(
        {
            "groups": st.just(5),
            "switches_per_group": st.just(4),
            "global_links": st.just(1),
            "hosts_per_switch": st.sampled_from([1, 2]),
        }
    ),
    "hyperx": st.fixed_dictionaries(
        {"sides": st.lists(st.integers(2, 4), min_size=1, max_size=2), "hosts_per_switch": st.just(2)}
    ),
}


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    name = draw(st.sampled_from(sorted(TOPOLOGIES)))
    table: dict[str, Any] = {"topology": name, **draw(TOPOLOGIES[name])}
    table |= {"bandwidth": draw(st.sampled_from(SPEEDS)), "latency": draw(st.sampled_from(LATENCIES))}
    count = draw(st.sampled_from([1, 1, 2, 3]))
    if count > 1:
        adapter = st.fixed_dictionaries(
            {}, optional={"bandwidth": st.sampled_from(SPEEDS), "latency": st.sampled_from(LATENCIES)}
        )
        adapters = draw(st.just([]) | st.lists(adapter, min_size=count, max_size=count))
        table["rails"] = {"count": count, "wiring": "planes", "adapters": adapters}
    return wiring_of(Fabric.build(FabricTable.read(table).spec))


def graph(wiring: Wiring, *, speeds: bool, latencies: bool) -> object:
    """Hosts and switches by name, the cables of each host in the order of its rails, and all others."""
    hosts = set(wiring.hosts)
    rails: dict[str, list[object]] = {host: [] for host in hosts}
    others = []
    for (one, other), cable in zip(numbered(wiring), wiring.cables, strict=True):
        rate, delay = cable.bandwidth if speeds else None, cable.latency if latencies else None
        if one[0] in hosts or other[0] in hosts:
            here, there = (one, other) if one[0] in hosts else (other, one)
            rails[here[0]].append((here[1], there, rate, delay))
        else:
            others.append((*sorted((one, other)), rate, delay))
    return rails, sorted(others, key=str), sorted(wiring.switches)


KEPT = {"csv": (True, True), "graphml": (True, True), "ibnetdiscover": (True, False), "ibsim": (False, False)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@pytest.mark.parametrize("name", [*KEPT, "json"])
@given(wiring=wirings())
def test_the_same_graph_comes_back(name: str, wiring: Wiring, tmp_path: Path) -> None:
    file = tmp_path / "exported"
    notes: tuple[str, ...] = ()
    if name == "json":
        wiring.save(file)
    else:
        written = FORMATS[name].write(wiring)
        file.write_text(written.text, encoding="utf-8")
        notes = written.notes
    found = read_wiring(file)
    speeds, latencies = KEPT.get(name, (True, True))
    assert graph(found, speeds=speeds, latencies=latencies) == graph(wiring, speeds=speeds, latencies=latencies)
    assert found.hosts == wiring.hosts
    assert not any("other rails" in note for note in notes)
    # What the format does not say is reported, and nothing else is missing.
    assert any("bandwidths are left out" in note for note in notes) == (not speeds)
    assert any("latencies are left out" in note for note in notes) == (not latencies)


@pytest.mark.parametrize("name", ["ibnetdiscover", "ibsim"])
def test_rails_in_another_order_than_ports_are_reported(name: str, tmp_path: Path) -> None:
    """A list of links has the order of its lines; formats without an order have that of ports."""
    cables = [
        Cable(("h", "s"), (2, 1)),
        Cable(("h", "t"), (1, 1)),
        Cable(("s", "t"), (2, 2)),
        Cable(("g", "s"), (1, 3)),
    ]
    wiring = Wiring(("h", "g"), tuple(cables))
    written = FORMATS[name].write(wiring)
    assert "1 host has other rails when the file is read again: numbered by port: h" in written.notes
    (tmp_path / "exported").write_text(written.text)
    again = read_wiring(tmp_path / "exported")
    assert [end for it in again.cables if "h" in it.ends for end in it.ends if end != "h"] == ["t", "s"]
    assert not any("rails" in note for note in FORMATS[name].write(replace(wiring, cables=again.cables)).notes)
