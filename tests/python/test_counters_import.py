"""Counters of real machines as their tools, exporters and terminals leave them: read whole, or refused with reason."""

from pathlib import Path

import pytest

from fairlane.cli.main import execute
from fairlane.cluster.counters.base import Reading
from fairlane.cluster.counters.prometheus import OF_HOSTS
from fairlane.cluster.counters.reader import located, read_counters
from fairlane.core.errors import ScenarioError
from fairlane.inputs.csv_rows import added_by_paste
from fairlane.model.fabric.reader import read_wiring
from port_counters import BASIC, IBQUERYERRORS, PERFQUERY, PROMETHEUS, PYTHON_EXPORTER, SYSFS

DATA = Path(__file__).parents[1] / "data" / "fabrics"
HOST, SWITCH = "H-003048c749cd0000", "S-0008f10500200b50"
TEXTS = {
    "perfquery": PERFQUERY,
    "basic": BASIC,
    "ibqueryerrors": IBQUERYERRORS,
    "prometheus": PROMETHEUS,
    "python": PYTHON_EXPORTER,
    "sysfs": SYSFS,
}
SUM = """# Port extended counters: Lid 7 port 255 (CapMask: 0x5300)
PortSelect:......................255
PortXmitData:....................123456789
"""


def read(tmp_path: Path, text: str | bytes) -> Reading:
    file = tmp_path / "counters"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_counters(file)


@pytest.mark.parametrize("heading", ["", "# Port counters: Lid 7 port 4 (CapMask: 0x1200)\n"])
def test_a_sum_over_the_ports_of_a_node_is_refused_with_the_option_that_is_meant(heading: str, tmp_path: Path) -> None:
    first, rest = SUM.split("\n", 1)
    words = r":1: lid 7 port 255 is the sum over all ports .*: perfquery -x -l -a LID"
    with pytest.raises(ScenarioError, match=words):
        read(tmp_path, (heading or f"{first}\n") + rest)  # either the heading or PortSelect is enough


ADDED = {
    "shell prompt": ["[admin@n1 ~]$ TOOL -x 7", "root@n1:~# TOOL", "$ TOOL > now.txt", "(base) [me@login1 ib]$ ls"],
    "command": ["TOOL -x -l -a 7", "sudo /usr/sbin/TOOL -x 7 3"],
    "warning of the tool": [
        "ibwarn: [21453] mad_rpc_rmpp: _do_madrpc failed; dport (Lid 9)",
        "/usr/sbin/TOOL: iberror: failed: can't resolve destination port 7",
        "src/query_smp.c:229; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out",
    ],
    "time stamp": [
        "timestamp 1700000000",
        "1700000000.25",
        "Sat Nov 28 22:14:12 UTC 2026",
        "2026-11-28T22:14:12+00:00",
        "2026-11-28 22:14:12",
    ],
    "Markdown fence": ["```", "```text"],
}


@pytest.mark.parametrize("name", ["perfquery", "ibqueryerrors", "sysfs"])
def test_what_terminals_and_loops_add_is_skipped_and_counted(name: str, tmp_path: Path) -> None:
    tool = "grep" if name == "sysfs" else name
    plain = read(tmp_path, TEXTS[name])
    assert plain.note is None
    added = [line.replace("TOOL", tool) for lines in ADDED.values() for line in lines]
    lines = TEXTS[name].splitlines()
    middle = len(lines) // 2
    noisy = [added[0], *lines[:middle], *added[1:], *lines[middle:]]
    found = read(tmp_path, "\n".join(noisy) + "\n")
    assert [(port.key, port.values) for port in found.ports] == [(port.key, port.values) for port in plain.ports]
    counts = ", ".join(f"{len(group)} {what}" for what, group in ADDED.items())
    assert found.note == f"{len(added)} lines skipped (first: line 1): {counts}"


@pytest.mark.parametrize("name", ["perfquery", "basic", "ibqueryerrors", "sysfs"])
def test_no_line_of_a_tool_is_taken_for_what_a_paste_adds(name: str) -> None:
    for line in map(str.strip, TEXTS[name].splitlines()):
        is_comment = line.startswith("#")
        assert is_comment or added_by_paste(line, "grep" if name == "sysfs" else "perfquery") is None, line


def test_the_command_notes_what_it_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "counters"
    file.write_text(f"some words of a colleague\nTue Nov 3 10:00:00 2026\n{PERFQUERY}")
    assert execute(["counters", "import", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 3
    expected = "2 lines skipped (first: line 1): 1 in front of the counters, 1 time stamp"
    assert printed.err == f"fairlane: {file}: {expected}\n"


def test_only_metrics_that_are_read_have_to_be_right(tmp_path: Path) -> None:
    # Tables of the firmware hold what their makers left: control characters, bytes that are not UTF-8, cut labels.
    damage = (
        b'node_dmi_info{board_serial="\x1cN1\x1c\\",bios_vendor="\xff\x85X"} 1\nnode_x{a="b} 1\nmetric_of_another{\n'
    )
    plain, found = read(tmp_path, PROMETHEUS), read(tmp_path, damage + PROMETHEUS.encode())
    assert [(port.key, port.values) for port in found.ports] == [(port.key, port.values) for port in plain.ports]


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_lines_end_at_line_ends_only(character: str, tmp_path: Path) -> None:
    (tmp_path / "dump").write_text((DATA / "x5.ibnetdiscover").read_text().replace("Voltaire", f"Vol{character}taire"))
    assert len(read_wiring(tmp_path / "dump").hosts) == len(read_wiring(DATA / "x5.ibnetdiscover").hosts)
    found = read(tmp_path, IBQUERYERRORS.replace("MT25408 ", f"MT{character}25408 "))
    assert [port.values for port in found.ports] == [port.values for port in read(tmp_path, IBQUERYERRORS).ports]
    label = PROMETHEUS.replace('switch="a ', f'switch="a{character} ')
    assert read(tmp_path, label).ports[0].name == f'a{character} "b"'


def test_the_exporter_in_python_counts_words(tmp_path: Path) -> None:
    switch, adapter = read(tmp_path, PYTHON_EXPORTER).ports
    assert (switch.guid, switch.number, switch.name, switch.is_switch) == (0x0008F10500200B50, 4, "s", True)
    assert switch.values == {"PortXmitData": 5_149_000_000_000, "PortXmitWait": 7000}
    assert (adapter.guid, adapter.values, adapter.is_switch) == (0x003048C749CD0000, {"PortXmitData": 1000}, False)


def test_files_of_sysfs_are_read_with_their_hosts(tmp_path: Path) -> None:
    (port,) = read(tmp_path, SYSFS).ports
    assert port.values == {"PortXmitData": 1000, "PortRcvData": 2000, "SymbolErrorCounter": 2}
    assert (port.name, port.device, port.adapter, port.number) == ("n1", "mlx5_0", 0, 1)
    assert (port.lid, port.guid) == (72, 0x003048C749CD0000)
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    (place,) = located([port], wiring, tmp_path / "counters")
    assert (place.name, place.port) == (HOST, 1)
    lines = [line.removeprefix("n1: ") for line in SYSFS.splitlines() if "lid" not in line and "guid" not in line]
    nameless = read(tmp_path, "\n".join(lines)).ports
    with pytest.raises(ScenarioError, match=r"counters:1: the host of mlx5_0 port 1 is not known; allowed: a host"):
        located(nameless, wiring, tmp_path / "counters")
    wide = SYSFS + "n1: /sys/class/infiniband/mlx5_0/ports/1/counters_ext/port_xmit_data_64:5000000000\n"
    assert read(tmp_path, wide).ports[0].values["PortXmitData"] == 5_000_000_000


def test_two_adapters_of_a_host_have_rows_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"/sys/class/infiniband/mlx5_{i}/ports/1/counters/port_xmit_data:{i}" for i in (0, 1)]
    (tmp_path / "counters").write_text("\n".join(lines))
    assert execute(["counters", "import", str(tmp_path / "counters")]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows == ["name,device,port,guid,lid,PortXmitData", '"",mlx5_0,1,,,0', '"",mlx5_1,1,,,1']


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SYSFS + SYSFS, "8: duplicate file; give one reading"),
        (SYSFS.replace(":1000", ":lots"), "2: not a whole number"),
        (SYSFS + "n1: something else\n", "8: not a line PATH:VALUE"),
        (SYSFS.replace("port_", "ports_").replace("symbol", "symbols"), " has no counter of data"),
        (
            "## Summary: 100 nodes checked, 0 bad nodes found\n",
            " no port has counters: .*allowed: ibqueryerrors --count",
        ),
        (IBQUERYERRORS.replace("port 4", "port ALL").replace("port 1", "port ALL"), " no port has counters"),
        ("# PortXmitDataSL counters: Lid 7 port 1\nXmtDataSL0:......1\n", " PortXmitDataSL, which are parts of a port"),
        ("# PortSamplesControl: Lid 7 port 1\nPortSelect:......1\n", " PortSamplesControl, which is no counter"),
        ("# TYPE node_load1 gauge\nnode_load1 0.3\n", " Prometheus text without a metric of an InfiniBand exporter"),
        ('infiniband_switch_info{guid="0x1",switch="a"} 1\n', " has no counter of data"),
        (PROMETHEUS + "node_infiniband_port_data_trans", "9: not a sample of Prometheus text"),
        (PERFQUERY + "PortXmitDa", "17: not a line of perfquery"),
    ],
)
def test_what_has_no_counters_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"counters:{words}"):
        read(tmp_path, text)


@pytest.mark.parametrize("name", TEXTS)
def test_an_output_without_its_counters_is_an_error_and_no_empty_table(name: str, tmp_path: Path) -> None:
    counters = ("Port", "port_", "portxmit", "symbol_error")
    text = "\n".join(line for line in TEXTS[name].splitlines() if not any(key in line for key in counters))
    with pytest.raises(ScenarioError):
        read(tmp_path, text)


def test_ports_without_a_cable_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, fabric = tmp_path / "counters", str(DATA / "x5.ibnetdiscover")
    lone = PERFQUERY.replace("Lid 9 port 4", "Lid 9 port 25").replace("PortSelect:......................4", "")
    file.write_text(lone)
    assert execute(["counters", "import", str(file), "--fabric", fabric]) == 0
    assert "1 port without a cable in the fabric left out" in capsys.readouterr().err
    file.write_text(lone[lone.index("# Port extended counters: Lid 9") :])
    assert execute(["counters", "import", str(file), "--fabric", fabric]) == 2
    assert "none of its ports has a cable in the fabric" in capsys.readouterr().err


def test_a_link_without_a_speed_has_no_utilisation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now, links = tmp_path / "before", tmp_path / "now", tmp_path / "links.csv"
    links.write_text("from,from_port,to,to_port,bandwidth\na,1,s,1,100 Gb/s\nb,1,s,2,\n")
    for file, words in ((before, 0), (now, 500_000_000)):
        lines = [
            f'{OF_HOSTS["PortXmitData"]}{{device="mlx5_0",instance="{host}",port="1"}} {4 * words}' for host in "ab"
        ]
        file.write_text("\n".join(lines) + "\n")
    command = ["analyze", "--counters", str(now), "--before", str(before), "--over", "1 s", "--fabric", str(links)]
    assert execute(command) == 0
    printed = capsys.readouterr()
    assert "16.0%" in printed.out  # 2 GB in a second over 100 Gb/s
    assert printed.out.count("%") == 1
    assert "some cables have no speed" in printed.err


def test_the_time_between_readings_needs_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now").write_text(PERFQUERY)
    command = ["analyze", "--counters", str(tmp_path / "now"), "--fabric", str(DATA / "x5.ibnetdiscover")]
    assert execute([*command, "--over", "60 s"]) == 2
    assert "needs two readings: the counts of one" in capsys.readouterr().err
    assert execute([*command, "--over", "0 s", "--before", str(tmp_path / "now")]) == 2
    assert "above 0" in capsys.readouterr().err


def test_links_on_no_route_of_a_job_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now").write_text(PERFQUERY)  # of two ports: a host, and its switch towards it
    command = ["analyze", "--counters", str(tmp_path / "now"), "--fabric", str(DATA / "x5.ibnetdiscover")]
    for nodes, on_none in ((f"{HOST},H-003048c749bb0000", 0), (HOST, 2)):  # a job of one host has no routes
        (tmp_path / "jobs").write_text(f"17 {nodes}\n")
        assert execute([*command, "--allocation", str(tmp_path / "jobs")]) == 0
        words = f"Links with traffic that none of these jobs can cause: {on_none} of 2."
        assert words in capsys.readouterr().out
