"""Random built-in fabrics, with and without rails, in every format and back: the same numbers and the same results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from fairlane import Scenario, run
from fairlane.core.errors import BuildError
from fairlane.model.fabric.export import FORMATS, wiring_of
from fairlane.model.fabric.export.infiniband import write_lfts
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring

DATA = Path(__file__).parents[1] / "data" / "fabrics"
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
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """The table of a fabric that can be built."""
    name = draw(st.sampled_from(sorted(TOPOLOGIES)))
    table: dict[str, Any] = {"topology": name, **draw(TOPOLOGIES[name]), "routing": "up_down"}
    table |= {"bandwidth": draw(st.sampled_from(SPEEDS)), "latency": draw(st.sampled_from(LATENCIES))}
    count = draw(st.sampled_from([1, 2, 2, 3, 4]))
    if count > 1:
        adapter = st.fixed_dictionaries(
            {}, optional={"bandwidth": st.sampled_from(SPEEDS), "latency": st.sampled_from(LATENCIES)}
        )
        adapters = draw(st.just([]) | st.lists(adapter, min_size=count, max_size=count))
        wiring = draw(st.sampled_from(["planes", "shared", "rail_optimised"]))
        table["rails"] = {"count": count, "wiring": wiring, "adapters": adapters}
    try:
        Fabric.build(FabricTable.read(table).spec)
    except BuildError:
        reject()  # the wirings in one fabric need a multiple of hosts, or of leaves
    return table


def graph(fabric: Fabric, *, speeds: bool, latencies: bool) -> object:
    """Names and all links with their numbers."""
    columns = ["from_host", "from_switch", "from_port", "to_host", "to_switch", "to_port", "rail"]
    columns += ["bandwidth"] * speeds + ["latency"] * latencies
    return fabric.host_names, fabric.switch_names, [fabric.links[name].tolist() for name in columns]


def digest(table: dict[str, Any]) -> str | None:
    """Of a short all-to-all of all hosts."""
    job = {"workload": {"name": "all_to_all", "message_size": "8 KiB", "compute": "1 us"}, "rails": "stripe"}
    hosts = Fabric.build(FabricTable.read(table).spec).hosts
    scenario = Scenario.read({"fabric": table, "duration": "8 us", "jobs": [{**job, "ranks": hosts}]})
    return run(scenario, isolated=False).meta.digest


def imported(file: Path, table: dict[str, Any], routing: str = "up_down") -> dict[str, Any]:
    """The table of an imported fabric with the default bandwidth and latency of another."""
    defaults = {key: table[key] for key in ("bandwidth", "latency")}
    return {"topology": "imported", "file": str(file), "routing": routing, **defaults}


KEPT = {"csv": (True, True), "graphml": (True, True), "ibnetdiscover": (True, False), "ibsim": (False, False)}


@settings(suppress_health_check=list(HealthCheck), max_examples=8, deadline=None)
@pytest.mark.parametrize("name", [*KEPT, "json"])
@given(table=tables())
def test_the_same_graph_comes_back_and_gives_the_same_results(name: str, table: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "exported"
    built = Fabric.build(FabricTable.read(table).spec)
    notes: tuple[str, ...] = ()
    if name == "json":
        wiring_of(built).save(file)
    else:
        written = FORMATS[name].write(wiring_of(built))
        file.write_text(written.text, encoding="utf-8")
        notes = written.notes
    found = read_wiring(file)
    speeds, latencies = KEPT.get(name, (True, True))
    again = found.fabric("up_down")
    assert graph(again, speeds=speeds, latencies=latencies) == graph(built, speeds=speeds, latencies=latencies)
    # What the format does not say is reported, and nothing else is missing.
    assert not any("when the file is read again" in note for note in notes)
    assert any("bandwidths are left out" in note for note in notes) == (not speeds)
    assert any("latencies are left out" in note for note in notes) == (not latencies)
    uniform = not table.get("rails", {}).get("adapters")
    if built.hosts > 1 and (uniform or (speeds and latencies)):
        found.save(tmp_path / "again.json")
        assert digest(imported(tmp_path / "again.json", table)) == digest(table)


@pytest.mark.parametrize("dump", ["x5.ibnetdiscover", "ndr-dgx.ibnetdiscover.xz"])
@pytest.mark.parametrize("name", ["csv", "graphml", "ibnetdiscover", "json"])
def test_a_real_cluster_keeps_its_numbers(dump: str, name: str, tmp_path: Path) -> None:
    wiring = read_wiring(DATA / dump)
    if name == "json":
        wiring.save(tmp_path / "exported")
    else:
        (tmp_path / "exported").write_text(FORMATS[name].write(wiring).text, encoding="utf-8")
    again = read_wiring(tmp_path / "exported")
    shown = graph(wiring.fabric(), speeds=True, latencies=True)
    assert graph(again.fabric(), speeds=True, latencies=True) == shown
    assert again.nodes == (wiring.nodes if name in ("ibnetdiscover", "json") else ())


@settings(suppress_health_check=list(HealthCheck), max_examples=8, deadline=None)
@given(
    rails=st.integers(2, 8),
    wiring=st.sampled_from(["planes", "shared", "rail_optimised"]),
    seed=st.integers(0, 2**32),
)
def test_random_forwarding_tables_give_the_same_results_when_read_again(
    rails: int, wiring: str, seed: int, tmp_path: Path
) -> None:
    """Packets climb over random ports of a tree, so that tables have nothing of a routing's own choice."""
    hosts = 8 if wiring == "planes" else 4 * rails
    table: dict[str, Any] = {
        "topology": "fat_tree",
        "levels": 2,
        "hosts": hosts,
        "leaf_down": 2,
        "leaf_up": 3,
        "routing": "up_down",
        "bandwidth": "100 Gb/s",
        "latency": "100 ns",
        "rails": {"count": rails, "wiring": wiring},
    }
    fabric = Fabric.build(FabricTable.read(table).spec)
    exported = wiring_of(fabric)
    (tmp_path / "dump").write_text(FORMATS["ibnetdiscover"].write(exported).text, encoding="utf-8")

    def read_back(tables: Mapping[str, Sequence[int]]) -> Wiring:
        (tmp_path / "lfts").write_text(write_lfts(exported, tables), encoding="utf-8")
        return read_wiring(tmp_path / "dump", tmp_path / "lfts")

    ups: dict[str, list[int]] = {name: [] for name in fabric.switch_names}
    columns = (fabric.links[it].tolist() for it in ("from_name", "from_port", "role"))
    for begin, port, role in zip(*columns, strict=True):
        if role == "up":
            ups[begin].append(port)
    chosen, complete = Random(seed), read_back({}).tables
    rows = {
        name: tuple(chosen.choice(ups[name]) if port in ups[name] else port for port in complete[name])
        for name in fabric.switch_names
    }
    replace(exported, tables=rows).save(tmp_path / "tables.json")
    read_back(rows).save(tmp_path / "again.json")
    again, before = (digest(imported(tmp_path / name, table, "tables")) for name in ("again.json", "tables.json"))
    assert again == before


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
    assert "1 host has other rails when the file is read again, by port number: h" in written.notes
    (tmp_path / "exported").write_text(written.text)
    again = read_wiring(tmp_path / "exported")
    assert [end for it in again.cables if "h" in it.ends for end in it.ends if end != "h"] == ["t", "s"]
    assert not any("rails" in note for note in FORMATS[name].write(replace(wiring, cables=again.cables)).notes)
