"""What fairlane counts in traces and fabrics of other simulators, and what a few independent lines count in them.

The files are those of ``tests/data/traces``, samples in the forms that public files have, and, if ``FAIRLANE_PUBLIC``
names the folder that ``tools/public_inputs.py`` has written, the public files of ``tests/public_inputs.csv``.
"""

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.main import execute
from fairlane.model.workload.trace import unpack
from public_counts import FABRICS, TRACES

TESTS = Path(__file__).parent.parent
RECORDED = TESTS / "data" / "traces"
TABLE = list(csv.DictReader((TESTS / "public_inputs.csv").read_text().splitlines()))
COLLECTED = os.environ.get("FAIRLANE_PUBLIC")
LARGE = 20_000
"""So many operations or hosts are described, and not checked as a scenario."""

SAMPLES: dict[str, tuple[str, str]] = {
    "htsim-connections": (
        "a.cm",
        "# two\nNodes 4\nConnections 2\n0->1 id 1 msg start 0 size 40860\n2->3 id 2 start 5 size 1\n",
    ),
    "ns3-flows": (
        "flow.txt",
        "2\n0 1 3 100 5000 0\n7 2 3 100 70 2\n\nFirst line: # of flows\nsrc0 dst0 3 port0 size0 start0\n",
    ),
    "simai": (
        "workload.txt",
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 8\n"
        "2\nlayer -1 556000 ALLREDUCE 16777216 1 NONE 0 1 NONE 0 1\n"
        "layer -1 5 ALLGATHER 64 1 REDUCESCATTER 64 1 ALLREDUCE 0 0\n",
    ),
    "htsim-topology": (
        "a.topo",
        "Nodes 128\nTiers 3\nPodsize 16\nTier 0\nOversubscribed 4\nRadix_Down 8\nRadix_Up 2\nDownlink_speed_Gbps 100\n"
        "Downlink_Latency_ns 1000\nTier 1\nRadix_Down 2\nRadix_Up 2\nDownlink_speed_Gbps 100\n"
        "Downlink_Latency_ns 1000\nTier 2\nRadix_Down 8\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\n",
    ),
    "ns3-topology": (
        "t.txt",
        "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n\nFirst line: total node #, switch node #, link #\n",
    ),
    "astra-network": (
        "net.yml",
        "topology: [ FullyConnected, Ring ]\nnpus_count: [ 4, 2 ]  # NPUs\n"
        "bandwidth: [ 400, 50 ]\nlatency: [ 936.25, 1000 ]\n",
    ),
}


def recorded(kind: str, name: str) -> tuple[Path, list[Path]]:
    """A trace as fairlane takes it, and its files."""
    path = RECORDED / name
    if kind != "chakra":
        return path, [path]
    files = sorted(unpack(path).glob("*.et"), key=lambda file: int(file.suffixes[-2][1:]))
    return path, files


def public(row: Mapping[str, str]) -> tuple[Path, list[Path]]:
    assert COLLECTED is not None
    path = Path(COLLECTED) / row["repository"] / row["path"]
    if "*" not in path.name:
        return path, [path]
    files = sorted(path.parent.glob(path.name), key=lambda file: int(file.suffixes[-2][1:]))
    return path.parent, files


def cases(kinds: Mapping[str, Any]) -> list[Any]:
    local = [
        ("chakra", "chakra_allreduce-8.tar.zst"),
        ("chakra", "chakra_ring-8.tar.zst"),
        ("chakra", "chakra_pytorch-1.tar.zst"),
        ("goal", "binary_tree-32.goal"),
    ]
    chosen: list[Any] = [pytest.param(kind, name, id=name) for kind, name in local if kind in kinds]
    chosen += [pytest.param(kind, name, id=f"sample of {kind}") for kind, (name, _) in SAMPLES.items() if kind in kinds]
    rows = TABLE if COLLECTED else []
    return chosen + [pytest.param(row["kind"], row, id=row["path"]) for row in rows if row["kind"] in kinds]


def files_of(kind: str, case: Any, folder: Path) -> tuple[Path, list[Path]]:
    if not isinstance(case, str):
        return public(case)
    if kind in SAMPLES:
        (folder / case).write_text(SAMPLES[kind][1])
        return folder / case, [folder / case]
    return recorded(kind, case)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert execute([*arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(("kind", "case"), cases(TRACES))
def test_traces_have_the_counts_of_an_independent_reader(
    kind: str, case: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, files = files_of(kind, case, tmp_path)
    expected = TRACES[kind](files)
    described = printed(capsys, "trace", "describe", str(path))
    assert {
        "ranks": described["ranks"],
        "messages": described["p2p_messages"],
        "bytes": described["p2p_bytes"],
        "calls": described["calls"],
    } == expected
    if expected["ranks"] * sum(expected["calls"].values()) > LARGE:
        return
    if expected["messages"]:
        pattern = printed(capsys, "trace", "pattern", str(path))
        assert (pattern["ranks"], pattern["bytes"]) == (expected["ranks"], expected["bytes"])
    scenario = tmp_path / "job.toml"
    scenario.write_text(
        f'duration = "1 ms"\nfabric = {{ topology = "fat_tree", hosts = {max(8, expected["ranks"])} }}\n'
        f'jobs = [{{ trace = {{ path = "{path}", repeat = false }} }}]\n'
    )
    assert execute(["check", str(scenario)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("kind", "case"), cases(FABRICS))
def test_fabrics_have_the_counts_of_an_independent_reader(
    kind: str, case: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, files = files_of(kind, case, tmp_path)
    described = printed(capsys, "fabric", "describe", str(path))
    links = sum(row["links"] for row in described["links"])
    assert {"hosts": described["hosts"], "links": links} == FABRICS[kind](files)
