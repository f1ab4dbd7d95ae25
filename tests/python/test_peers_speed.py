"""The cells of ``benches/peers.py``: the same shapes for both simulators, and what is read of a peer's output."""

import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

from fairlane import Scenario

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    """The benchmark, and the one whose settings it takes."""
    for name in ("htsim", "peers"):
        spec = spec_from_file_location(name, BENCHES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules["peers"]


def program(folder: Path, output: str) -> None:
    """A peer that prints an output."""
    for name in ("model-net-synthetic-fattree", "model-net-synthetic-dragonfly-all", "htsim_uec"):
        path = folder / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n", encoding="utf-8")
        path.chmod(0o755)


def test_every_cell_is_a_scenario_of_as_many_hosts_as_its_name_says(peers: ModuleType) -> None:
    for name, cell in peers.CELLS.items():
        document = cell.system.scenario(*([1000] if name.startswith("htsim") else []))
        scenario = Scenario.read(document)
        (job,) = scenario.resolve().jobs
        assert f" of {job.ranks}," in name


def test_codes_has_two_links_of_one_cable_between_all_groups_and_its_hops_are_links(
    peers: ModuleType, tmp_path: Path
) -> None:
    summary = "hops traversed 3.5 average chunk latency 2.25 us maximum 4 us finished messages 9 finished chunks 10"
    program(tmp_path, f" Net Events Processed    150\n Average number of {summary}")
    cell = peers.CELLS["CODES, dragonfly of 1056, minimal"]
    work = cell.system.peer(tmp_path, tmp_path, 100)
    assert (work.packets, work.hops, work.time, work.events) == (10, 45, 2.25, 150)
    cables = list(struct.iter_unpack("2i", (tmp_path / "inter").read_bytes()))
    assert {(b, a) for a, b in cables} == set(cables)
    assert sorted((a // 8, b // 8) for a, b in cables) == [
        pair for pair in product(range(33), repeat=2) if len({*pair}) > 1
    ]
    assert all(sum(a == switch for a, _ in cables) == 4 for switch in range(264))


def test_a_permutation_of_htsim_counts_packets_and_acknowledgements_on_all_links(
    peers: ModuleType, tmp_path: Path
) -> None:
    flows = "\n".join(f"Flow finished at {end}.5 total" for end in range(1024))
    program(tmp_path, f"{flows}\nNew: 1000 Rtx: 5 RTS: 0 Bounced: 0 ACKs: 995 NACKs: 0")
    work = peers.CELLS["htsim, permutation of 1024, spraying"].system.peer(tmp_path / "htsim_uec", tmp_path, 4000)
    assert (work.packets, work.time) == (2000, 1023.5)
    # Of 1023 other hosts, 7 are on the same leaf and 56 more in the same pod.
    assert work.hops / work.packets == pytest.approx((7 * 2 + 56 * 4 + 960 * 6) / 1023, rel=0.02)
    pairs = [line.split(" ")[0].split("->") for line in (tmp_path / "peer.cm").read_text("utf-8").splitlines()[2:]]
    assert sorted(int(to) for _, to in pairs) == list(range(1024)) == sorted(int(source) for source, _ in pairs)
    program(tmp_path, "Flow finished at 3.5 total")
    with pytest.raises(SystemExit, match="1 of 1024 flows"):
        peers.CELLS["htsim, permutation of 1024, spraying"].system.peer(tmp_path / "htsim_uec", tmp_path, 4000)
