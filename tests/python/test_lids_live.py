"""Several LIDs of a port, and several adapters of a host, on subnets of a real OpenSM, whose tables lead to all."""

from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario
from fairlane.cli.command import write_folder
from fairlane.cluster.opensm.check import check
from fairlane.cluster.opensm.check.layout import layout_of
from fairlane.cluster.opensm.check.simulated import simulated_subnet
from fairlane.cluster.opensm.export import export
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.export import FORMATS
from fairlane.model.fabric.identities import endpoint_lids
from fairlane.model.fabric.reader import read_wiring
from possible import no_subnet
from simulated_subnets import QOS, TREES, lid_tree
from waiting import wait_for

pytestmark = pytest.mark.live("cluster/opensm", "model/fabric", absent=no_subnet)


def scenario(fabric: dict[str, Any], hosts: int) -> Scenario:
    """Two jobs with service levels 3 and 2."""
    jobs = [
        {"ranks": hosts // 2, "workload": load, "service_level": level, "placement": "linear"}
        for load, level in (("ping_pong", 3), ("ring", 2))
    ]
    return Scenario.read({"duration": "20 us", "fabric": fabric, "qos": QOS, "jobs": jobs})


def test_what_real_tools_print_of_several_lids_is_read(tmp_path: Path) -> None:
    """OpenSM gives each port four LIDs in a row, ibnetdiscover and dump_fts print them."""
    layout = layout_of(lid_tree(0, rails=2))
    (tmp_path / "fabric.net").write_text(layout.network)
    options = f"log_flags 0x43\ndump_files_dir {tmp_path}\nforce_log_flush TRUE\nsweep_interval 0\n"
    (tmp_path / "opensm.conf").write_text(f"lmc 2\nrouting_engine minhop\n{options}")
    with simulated_subnet(tmp_path, layout.hosts, layout.sizes) as subnet:
        (tmp_path / "dump").write_bytes(subnet.run(["ibnetdiscover"]))
        (tmp_path / "lfts").write_bytes(subnet.run(["dump_fts"]))
        own = tmp_path / "opensm-lfts.dump"
        wait_for(lambda: own.exists() and own.read_text().count("lids dumped") == 4)
    wiring = read_wiring(tmp_path / "dump", tmp_path / "lfts")
    assert (len(wiring.hosts), len(endpoint_lids(wiring))) == (4, 8 * 4)
    assert wiring.remarks == ()
    wiring.fabric("tables")
    assert read_wiring(tmp_path / "dump", own).tables == wiring.tables
    own.write_text(own.read_text().replace("lids dumped", "0 lids dumped", 1).replace(" 0 lids", "0 lids"))
    with pytest.raises(ScenarioError, match=r"the table has LIDs up to (\d+), but its last line counts (\1)0"):
        read_wiring(tmp_path / "dump", own)
    text = (tmp_path / "lfts").read_text()
    last = max(endpoint_lids(wiring))  # lead it over the first port of every switch
    lines = (f"{line[:7]}001{line[10:]}" if line.startswith(f"0x{last:04x} ") else line for line in text.splitlines())
    (tmp_path / "lfts").write_text("\n".join(lines) + "\n")
    (words,) = read_wiring(tmp_path / "dump", tmp_path / "lfts").remarks
    assert f"1 of 32 LIDs of adapters is led elsewhere: LID {last} of " in words


@pytest.mark.parametrize(("lmc", "rails"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("engine", [None, "minhop"])
def test_tables_for_all_lids_are_loaded_and_read_back(engine: str | None, lmc: int, rails: int, tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(FORMATS["ibnetdiscover"].write(lid_tree(lmc, rails)).text)
    dump = read_wiring(tmp_path / "dump")
    dump.save(tmp_path / "tree.json")
    imported = {"topology": "imported", "file": str(tmp_path / "tree.json")}
    files = export(scenario(imported, 4).decide(), approximate=True, dump=dump).files
    write_folder(tmp_path / "qos", files, "--opensm")
    (tmp_path / "files").mkdir()
    found = check(tmp_path / "qos", tmp_path / "files", engine=engine)
    assert (found.engine, found.differences) == (engine or "file", ())
    assert found.counts["forwarding table entries"] == 4 * 4 * rails * 2**lmc


@pytest.mark.parametrize(("wiring", "rails"), [("shared", 2), ("rail_optimised", 4)])
def test_tables_for_all_adapters_are_loaded_and_read_back(wiring: str, rails: int, tmp_path: Path) -> None:
    fabric = {**TREES[16], "rails": {"count": rails, "wiring": wiring}}
    write_folder(tmp_path / "qos", export(scenario(fabric, 16 // rails).decide(), approximate=True).files, "--opensm")
    (tmp_path / "files").mkdir()
    found = check(tmp_path / "qos", tmp_path / "files")
    assert (found.engine, found.differences) == ("file", ())
    assert found.counts["forwarding table entries"] == 6 * 16
