"""TraceR's times beside fairlane's: the page's table is what fairlane gives, and as near to TraceR as the page says."""

import csv
import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("otf2")
ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reproduction" / "peers" / "tracer.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
STORED = {row["cell"]: row for row in ROWS}
ALIKE, COLLECTIVE, REPEATED = 0.063, 0.117, 0.02
"""How far fairlane with TraceR's rules is from TraceR, as the page says; all-to-all; and its cause taken away."""


@pytest.fixture(scope="module")
def peer() -> Any:
    spec = spec_from_file_location("cells", ROOT / "examples" / "peers" / "tracer" / "cells.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cells", module)  # where dataclasses look for annotations
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(peer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archives of one size between two hosts, and of an all-to-all."""
    found = tmp_path_factory.mktemp("tracer")
    peer.message(found, "two leaves", "1 KiB")
    peer.job(found, 6)
    return found


@pytest.mark.parametrize("cell", ["message on two leaves: 1 KiB", "isolated: alltoall-0"])
def test_the_table_is_what_fairlane_gives(cell: str, peer: Any, folder: Path) -> None:
    (found,) = (one for one in peer.cells() if one.name == cell)
    for column, rules in (("fairlane_rules", True), ("fairlane_default", False)):
        (time,) = peer.times(found, folder, rules=rules).values()
        assert time == pytest.approx(float(STORED[cell][column]), rel=1e-9)


def test_tracers_rules_give_tracers_times(peer: Any) -> None:
    names = [one.name if len(one.jobs) == 1 else f"{one.name}: {job}" for one in peer.cells() for job in one.jobs]
    assert list(STORED) == names
    for cell, row in STORED.items():
        ratio = float(row["fairlane_rules"]) / float(row["peer"])
        assert ratio == pytest.approx(1, abs=COLLECTIVE if "alltoall" in cell else ALIKE), cell
    defaults = [abs(float(row["fairlane_default"]) / float(row["peer"]) - 1) for row in ROWS]
    assert sum(change > COLLECTIVE for change in defaults) > len(ROWS) / 3, "and without them it does not"


def test_the_page_shows_the_table() -> None:
    shown = TABLE.with_name("tracer-shown.csv")
    page = (TABLE.parents[1] / "peers.md").read_text(encoding="utf-8")
    assert f":file: peers/{shown.name}\n" in page
    with shown.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    assert len(rows) == 31
    for cell, *fields in rows:
        peer, rules, default = (float(STORED[cell][key]) for key in ("peer", "fairlane_rules", "fairlane_default"))
        times = [
            f"{peer:.2f}",
            f"{rules:.2f}",
            f"{rules / peer - 1:+.1%}",
            f"{default:.2f}",
            f"{default / peer - 1:+.1%}",
        ]
        assert fields == times


def test_the_all_to_all_is_longer_because_messages_of_late_ranks_take_turns(peer: Any, folder: Path) -> None:
    (found,) = (one for one in peer.cells() if one.name == "isolated: alltoall-0")
    (time,) = peer.times(found, folder, rules=True, network={"injection": "fifo"}).values()
    row = STORED["isolated: alltoall-0"]
    assert time == pytest.approx(float(row["peer"]), rel=REPEATED)
    assert float(row["fairlane_rules"]) > (1 + 4 * REPEATED) * float(row["peer"])


def test_what_is_prepared_for_tracer_is_what_fairlane_simulates(peer: Any, tmp_path: Path) -> None:
    """TraceR's files have the hosts, levels and weights of the cells, and the routes of fairlane's scenario."""
    peer.prepare(tmp_path)
    for cell in peer.cells():
        target = tmp_path / "tracer" / cell.folder
        lines = (target / "tracer.conf").read_text().splitlines()
        assert lines[:2] == ["ranks.bin", str(len(cell.jobs))]
        placed = dict.fromkeys(struct.iter_unpack("3i", (target / "ranks.bin").read_bytes()))
        for number, (name, (archive, hosts)) in enumerate(cell.jobs.items()):
            path, ranks, count, repeats, levels = lines[2 + number].split()
            assert path.endswith(f"archives/{archive}/traces.otf2")
            assert (int(count), repeats) == (len(hosts), "1")
            assert list(struct.unpack(f"{count}i", (target / ranks).read_bytes())) == hosts
            assert all((host, rank, number) in placed for rank, host in enumerate(hosts))
            default, *listed = (target / levels).read_text().split()
            own = cell.levels.get(name, 0)
            assert own == (int(default) if not listed else {int(listed[0]): int(listed[1])})
