"""Fabrics from reports of other tools: ibnetdiscover -p, iblinkinfo, UFM's topology files, Slurm's files."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabric_dumps import Device, dump, join, link_report, ndt, ports_report
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of, numbered
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.wiring import Wiring

REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers" / "fabrics"
Write = Callable[[list[Device]], str]


def read(folder: Path, text: str, bandwidth: int | None = None) -> Wiring:
    (folder / "file").write_text(text)
    return read_wiring(folder / "file", bandwidth=bandwidth)


def shape(wiring: Wiring) -> object:
    """Cables with ports and speeds, and the rails of each host, whatever the order."""
    hosts = set(wiring.hosts)
    rails = {
        host: [(it.ports or (0, 0))[it.ends.index(host)] for it in wiring.cables if host in it.ends] for host in hosts
    }
    ends = zip(numbered(wiring), wiring.cables, strict=True)
    return hosts, rails, sorted((tuple(sorted(pair)), cable.bandwidth) for pair, cable in ends)


def random_fabric(seed: int) -> list[Device]:
    """Leaves and spines with trunks, hosts with up to three adapters of one or two ports, speeds of two generations."""
    draw = random.Random(seed)
    leaves = [Device("Switch", 0xA000 + 256 * at, f"MF0;leaf{at}:MQM9700/U1", 1 + at, 40) for at in range(4)]
    spines = [Device("Switch", 0xB000 + 256 * at, f"spine {at} 'core'", 11 + at, 20) for at in range(2)]
    used = dict.fromkeys([*leaves, *spines], 0)

    def port(switch: Device) -> int:
        used[switch] += draw.randint(1, 2)
        return used[switch]

    for leaf in leaves:
        for spine in spines:
            for _ in range(draw.randint(1, 2)):
                join(leaf, port(leaf), spine, port(spine), draw.choice(["4xNDR", "4xHDR"]))
    adapters: list[Device] = []
    for host in range(6):
        for rail in draw.sample(range(4), draw.randint(1, 3)):
            size = draw.randint(1, 2)
            lid = 100 + 4 * len(adapters)
            adapters.append(Device("Ca", 0xC000 + 256 * len(adapters), f"n{host} mlx5_{rail}", lid, size))
            for number in range(1, size + 1):
                leaf = draw.choice(leaves)
                join(leaf, port(leaf), adapters[-1], number, draw.choice(["4xNDR", "4xHDR", "1xQDR"]))
    return draw.sample([*leaves, *spines, *adapters], 6 + len(adapters))


REPORTS: dict[str, Write] = {
    "ibnetdiscover -p": ports_report,
    "iblinkinfo": link_report,
    "iblinkinfo -l": lambda devices: link_report(devices, line_mode=True),
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("seed", range(8))
def test_reports_of_one_fabric_are_the_fabric_of_its_dump(report: str, seed: int, tmp_path: Path) -> None:
    devices = random_fabric(seed)
    plain, found = read(tmp_path, dump(devices)), read(tmp_path, REPORTS[report](devices))
    assert shape(found) == shape(plain)
    assert sorted(found.switches) == sorted(plain.switches)
    pasted = "\r\n".join(["[admin@head ~]# iblinkinfo", *REPORTS[report](devices).splitlines(), "[admin@head ~]#"])
    again = read(tmp_path, pasted)
    assert shape(again) == shape(plain)
    assert sum(" skipped, " in words for words in again.remarks) == 1


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(
    "header",
    [
        "StartDevice,StartPort,EndDevice,EndPort",
        "#StartDevice,StartPort,EndDevice,EndPort",
        "rack #,U height,#Fields:StartDevice,StartPort,EndDevice,EndPort",
    ],
)
def test_topology_files_of_ufm_have_the_cables_of_the_dump(both: bool, header: str, tmp_path: Path) -> None:
    for seed in range(4):
        devices = random_fabric(seed)
        plain = read(tmp_path, dump(devices))
        found = read(tmp_path, ndt(devices, both_ends=both, header=header), bandwidth=10**11)
        assert {cable.bandwidth for cable in found.cables} == {10**11}
        same_speed = replace(plain, cables=tuple(replace(it, bandwidth=10**11) for it in plain.cables))
        assert shape(found) == shape(same_speed)


def test_rows_of_ports_without_a_cable_and_ports_with_labels(tmp_path: Path) -> None:
    text = (
        "StartDevice,StartPort,EndDevice,EndPort,State,Domain\n"
        "leaf,Port 1/2/1,n1 mlx5_1,Port 1,Active,In-Scope\n"
        "leaf,Port 1/1/2,n1 mlx5_0,Port 1,Active,In-Scope\n"
        "leaf,Port 1/10/1,n2,SAT1 ibp12s0,Active,In-Scope\n"
        "leaf,Port 1/3/1,,,Disabled,Disconnected\n"
    )
    wiring = read(tmp_path, text)
    assert wiring.hosts == ("n1", "n2")
    assert sorted(numbered(wiring)) == [(("leaf", 1), ("n1", 1)), (("leaf", 2), ("n1", 2)), (("leaf", 3), ("n2", 1))]
    assert wiring.remarks == ("1 port without a cable left out: leaf Port 1/3/1 (line 5)",)
    with pytest.raises(ScenarioError, match=r"file:3: Port 1/2/1 of leaf has a cable already, on line 2"):
        read(tmp_path, text.replace("1/1/2", "1/2/1"))
    with pytest.raises(ScenarioError, match=r"file:2: has 3 cells, and the header 6: is the file cut off"):
        read(tmp_path, text.replace(",Port 1,Active,In-Scope", "", 1))


def test_the_ports_report_of_the_reproducer() -> None:
    wiring = read_wiring(REPRODUCERS / "ibnetdiscover-ports-report.txt")
    assert (wiring.hosts, wiring.switches) == (("n1", "n2"), ("leaf1",))
    assert [cable.kind for cable in wiring.cables] == ["4xEDR", "4xEDR"]


LINKS = """\
CA: n1 HCA-1:
      0x0002c903000d81f9      4    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       2    3[  ] "leaf" ( )
CA: n2 HCA-1:
      0x0002c903000d8200      5    1[  ] ==( 4X  10.0 Gbps (FDR10) Active/  LinkUp)==>       2    4[  ] "leaf" ( )
Switch: 0x0002c9020046c588 leaf:
           2    3[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       4    1[  ] "n1 HCA-1" ( )
           2    4[  ] ==( 4X  10.0 Gbps (FDR10) Active/  LinkUp)==>       5    1[  ] "n2 HCA-1" (Could be 14.0625 Gbps)
           2    5[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""


def test_a_report_of_links_in_its_own_words(tmp_path: Path) -> None:
    wiring = read(tmp_path, LINKS)
    assert [cable.kind for cable in wiring.cables] == ["4xQDR", "4xFDR10"]
    hosts = [host for host, _ in endpoints_of(wiring)]
    assert {lid: hosts[endpoint] for lid, endpoint in endpoint_lids(wiring).items()} == {4: "n1", 5: "n2"}
    for old, new, line, words in (
        ("4X          10.0", "4X          11.0", 2, "unknown speed 11.0 Gbps of a lane; allowed: 2.5, 5, 10, "),
        ("           2    3[  ]", "           2    4[  ]", 7, "used twice|has no line for that port|no section"),
        ('LinkUp)==>       2    4[  ] "leaf" ( )', "Lin", 4, "not a line of the report"),
    ):
        with pytest.raises(ScenarioError, match=rf"file:{line}: .*({words})"):
            read(tmp_path, LINKS.replace(old, new, 1))


def test_hints_do_not_offer_what_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each text that is read at all is read as it is; what is not gets the kinds that are."""
    (tmp_path / "x").write_text("nothing of interest\n")
    assert execute(["fabric", "import", str(tmp_path / "x")]) == 2
    words = capsys.readouterr().err
    assert "allowed: the output of ibnetdiscover (also with -p) or iblinkinfo" in words
    for name, text in (("p", ports_report(random_fabric(1))), ("l", link_report(random_fabric(1)))):
        (tmp_path / name).write_text(text)
        assert execute(["fabric", "import", str(tmp_path / name), "-o", str(tmp_path / f"{name}.json")]) == 0
