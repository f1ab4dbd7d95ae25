"""Port counters of runs in the formats of real tools; those of real clusters, with the jobs that share links."""

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.counters import export
from fairlane.cluster.counters.base import COUNTERS, PortCounters, since
from fairlane.cluster.counters.reader import located, read_counters, table_of
from fairlane.cluster.counters.simulated import snapshots
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.identities import nodes_of
from fairlane.model.fabric.reader import read_wiring
from fairlane.results.run import Run, load_run
from port_counters import BASIC, IBQUERYERRORS, PERFQUERY, PROMETHEUS

DATA = Path(__file__).parents[1] / "data" / "fabrics"
SCENARIO = """
name = "sampled"
duration = "200 us"
[fabric]
topology = "fat_tree"
hosts = 16
[network]
buffer = "8 KiB"
[qos]
service_levels = 2
[observe]
interval = "50 us"
[[jobs]]
name = "a"
ranks = 8
workload = { name = "all_to_all", message_size = "64 KiB" }
[[jobs]]
name = "b"
ranks = 8
service_level = 1
workload = { name = "all_to_all", message_size = "64 KiB" }
"""
# As infiniband-diags 44 prints them.


@pytest.fixture(scope="module")
def run() -> Run:
    return fairlane.run(Scenario.read(tomllib.loads(SCENARIO)))


@pytest.fixture(scope="module")
def folder(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = run.save(tmp_path_factory.mktemp("runs") / "sampled").folder
    assert made is not None
    return made


def sums(run: Run, side: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Bytes and packets of each port, counted from the table of the run."""
    rows = run.ports.group_by(f"{side}_name", f"{side}_port").agg(pl.col("bytes").sum(), pl.col("packets").sum())
    return {(name, port): (size, count) for name, port, size, count in rows.iter_rows()}


def test_counters_are_what_the_run_counted_in_words_and_packets(run: Run) -> None:
    last = snapshots(run)[-1].ports
    sent, received = sums(run, "from"), sums(run, "to")
    assert len(last) == len(sent) == len(received)
    for port in last:
        key = (port.name, port.number if port.is_switch else 1)
        for data, packets, counted in (
            ("PortXmitData", "PortXmitPkts", sent[key]),
            ("PortRcvData", "PortRcvPkts", received[key]),
        ):
            assert 0 <= counted[0] - 4 * port.values[data] < 4
            assert port.values[packets] == counted[1]
    assert sum(port.values["PortXmitPkts"] for port in last) == run.ports["packets"].sum()


def test_wait_is_the_time_without_credits_in_words_that_the_link_could_have_sent(run: Run) -> None:
    last = {(port.name, port.number): port.values["PortXmitWait"] for port in snapshots(run)[-1].ports}
    stalled = run.ports.unique(["from_name", "from_port"]).filter(pl.col("port_stalled_ps") > 0)
    assert stalled.height
    for row in stalled.iter_rows(named=True):
        # 4 bytes at 100 Gb/s take 320 ps.
        assert last[row["from_name"], row["from_port"]] == row["port_stalled_ps"] // 320
    ticked = {(port.name, port.number): port.values["PortXmitWait"] for port in snapshots(run, tick_ps=1000)[-1].ports}
    row = stalled.row(0, named=True)
    assert ticked[row["from_name"], row["from_port"]] == row["port_stalled_ps"] // 1000


def test_intervals_end_with_the_totals_and_never_fall(run: Run) -> None:
    assert run.samples is not None
    found = snapshots(run)
    assert [one.at_ps for one in found[:-1]] == sorted(set(run.samples["to_ps"]))[: len(found) - 1]
    assert len(found) == 4
    for before, after in pairwise(found):
        increments = since(after.ports, before.ports, Path("-"))
        assert all(value >= 0 for port in increments for value in port.values.values())
    first = found[0]
    until = run.samples.filter(pl.col("to_ps") <= first.at_ps)
    assert sum(port.values["PortXmitPkts"] for port in first.ports) == until["packets"].sum()


@pytest.mark.parametrize("name", ["perfquery.txt", "counters.prom", "intervals.om"])
def test_what_is_exported_is_read_again(run: Run, name: str, tmp_path: Path) -> None:
    found = snapshots(run)
    (tmp_path / name).write_text(export(found)[name])
    again = read_counters(tmp_path / name).ports
    before = {(port.name, port.adapter or 0, port.number): port for port in found[-1].ports}
    names = {port.guid: port.name for port in found[-1].ports}
    for port in again:
        same = before.pop((port.name or names[port.guid], port.adapter or 0, port.number))
        assert port.values == {key: same.values[key] for key in port.values}
        assert {"PortXmitData", "PortRcvData", "PortXmitPkts", "PortXmitWait"} <= set(port.values)
    assert not before


def test_prometheus_text_has_the_names_of_the_exporters(run: Run) -> None:
    text = export(snapshots(run))["counters.prom"]
    values = dict(re.findall(r"^(\w+)\{.*?\} (\d+)$", text, re.MULTILINE))
    assert {
        "node_infiniband_port_data_transmitted_bytes_total",
        "node_infiniband_port_transmit_wait_total",
        "infiniband_switch_port_transmit_data_bytes_total",
        "infiniband_switch_port_receive_packets_total",
        "infiniband_switch_info",
    } <= set(values)
    first = next(port for port in snapshots(run)[-1].ports if not port.is_switch)
    line = f'node_infiniband_port_data_transmitted_bytes_total{{device="mlx5_0",instance="{first.name}",port="1"}} '
    assert f"{line}{4 * first.values['PortXmitData']}\n" in text
    metrics = export(snapshots(run))["intervals.om"]
    assert metrics.endswith("# EOF\n")
    assert f"{line}{4 * first.values['PortXmitData']} 0.0002" in metrics


def test_guids_and_lids_are_those_that_fabric_export_writes(run: Run, tmp_path: Path) -> None:
    tree = ["fabric", "export", "--topology", "fat_tree", "--set", "hosts=16", "--ibnetdiscover"]
    assert execute([*tree, "-o", str(tmp_path / "dump")]) == 0
    dump = read_wiring(tmp_path / "dump")
    ports = snapshots(run)[-1].ports
    assert [(port.guid, port.lid) for port in ports] == [
        (port.guid, port.lid) for port in snapshots(run, dump)[-1].ports
    ]
    (tmp_path / "perfquery").write_text(export(snapshots(run))["perfquery.txt"])
    found = located(read_counters(tmp_path / "perfquery").ports, dump, tmp_path / "perfquery")
    assert [(one.name, one.port) for one in found] == [(port.name, port.number) for port in ports]


def read(tmp_path: Path, text: str) -> list[dict[str, object]]:
    (tmp_path / "counters").write_text(text)
    ports = read_counters(tmp_path / "counters").ports
    places = located(ports, read_wiring(DATA / "x5.ibnetdiscover"), tmp_path / "counters")
    return [
        {"name": one.name, "port": one.port, **{key: one.counters.values[key] for key in one.counters.values}}
        for one in places
    ]


HOST, SWITCH = "H-003048c749cd0000", "S-0008f10500200b50"


def test_perfquery_is_read_by_lid(tmp_path: Path) -> None:
    first, second = read(tmp_path, PERFQUERY)
    assert (first["name"], first["port"], first["PortXmitData"], first["SymbolErrorCounter"]) == (HOST, 1, 1000, 2)
    assert (second["name"], second["port"], second["PortXmitWait"]) == (SWITCH, 4, 7000)
    assert "CounterSelect2" not in first
    (basic,) = read(tmp_path, BASIC)
    assert basic["PortXmitData"] == 2**32 - 1


def test_ibqueryerrors_is_read_by_guid_without_sums_over_ports(tmp_path: Path) -> None:
    first, second = read(tmp_path, IBQUERYERRORS)
    assert first == {"name": HOST, "port": 1, "PortXmitData": 1000, "PortRcvData": 500, "PortXmitPkts": 40}
    assert second == {"name": SWITCH, "port": 4, "PortXmitWait": 7000, "PortXmitDiscards": 1}


def test_prometheus_is_read_in_words_with_labels(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text(PROMETHEUS)
    switch, adapter, host = read_counters(tmp_path / "a.prom").ports
    assert (switch.guid, switch.number, switch.name, switch.is_switch) == (0x0008F10500200B50, 4, 'a "b"', True)
    assert switch.values == {"PortXmitData": 500, "PortXmitWait": 7000}
    assert (adapter.guid, adapter.values, adapter.is_switch) == (0x003048C749CD0000, {"PortXmitData": 1000}, False)
    assert (host.name, host.adapter, host.number, host.values) == ("node1", 1, 1, {"PortXmitData": 2000})


def test_adapters_have_the_numbers_or_the_order_of_their_names(tmp_path: Path) -> None:
    file = tmp_path / "counters.prom"
    devices = {"a": ("mlx5_1", "mlx5_0"), "b": ("ibp97s0", "ibp65s0"), "c": ("mlx5_2",)}
    lines = [
        f'node_infiniband_port_data_transmitted_bytes_total{{device="{device}",instance="{host}:9100",port="1"}} 4'
        for host, names in devices.items()
        for device in names
    ]
    file.write_text("\n".join(lines) + "\n")
    found = {(port.name, port.device): port.adapter for port in read_counters(file).ports}
    assert found == {
        ("a", "mlx5_0"): 0,
        ("a", "mlx5_1"): 1,
        ("b", "ibp65s0"): 0,
        ("b", "ibp97s0"): 1,
        ("c", "mlx5_2"): 2,
    }


def test_an_adapter_is_found_by_its_node_description_and_a_host_without_its_domain(tmp_path: Path) -> None:
    # This host of the dump has adapters mlx5_0 to mlx5_9, some of which are not InfiniBand's.
    wiring = read_wiring(DATA / "ndr-dgx.ibnetdiscover.xz")
    host = "a08-p1-dgx-04-c17"
    by_device = {
        node.description.split()[1]: node.guid for node in nodes_of(wiring) if node.description.startswith(f"{host} ")
    }
    counters = [
        PortCounters(1, {}, f"{host}.example.org", device=device, adapter=int(device.rpartition("_")[2]))
        for device in by_device
    ]
    by_name = located(counters, wiring, tmp_path / "counters")
    by_guid = located([PortCounters(1, {}, guid=guid) for guid in by_device.values()], wiring, tmp_path / "counters")
    assert [(one.name, one.port) for one in by_name] == [(one.name, one.port) for one in by_guid]
    assert len({one.port for one in by_name}) == len(by_device) > 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PERFQUERY.replace("PortRcvData:.....................500", "PortRcvData"), "5: not a line of perfquery"),
        (PERFQUERY + PERFQUERY, "17: lid 72 port 1 has counters already, on line 1; give one reading"),
        (PERFQUERY.partition("\n")[0], "1: no counters of lid 72 port 1"),
        (IBQUERYERRORS + "what is this\n", "8: not a line of ibqueryerrors"),
        (PROMETHEUS.replace("} 2000", "} lots"), "4: not a whole number"),
        (PROMETHEUS.replace('port="4"} 2000', 'port="4} 2000'), "4: not a sample"),
        (PERFQUERY.replace(".7000", ".99999999999999999999"), "12: PortXmitWait of lid 9 port 4 is no counter of 64"),
        (PERFQUERY.replace(".7000", "." + "9" * 5000), "16: not a line of perfquery"),
        (PROMETHEUS.replace("} 2000", "} " + "9" * 5000), "4: not a whole number"),
        ("nothing\n", " no known format of counters; allowed: the output of perfquery"),
    ],
)
def test_wrong_lines_are_named(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "counters"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_counters(file)
    assert re.match(f"{re.escape(str(file))}:{words}", str(caught.value))


def test_increments_need_the_same_ports_and_no_clearing(tmp_path: Path) -> None:
    for name, text in (("before", PERFQUERY), ("now", PERFQUERY.replace(".1000", ".1600").replace(".7000", ".6999"))):
        (tmp_path / name).write_text(text)
    before, now = (read_counters(tmp_path / name).ports for name in ("before", "now"))
    assert since(now[:1], before, tmp_path / "now")[0].values["PortXmitData"] == 600
    with pytest.raises(ScenarioError, match="PortXmitWait of lid 9 port 4 was 7000 and is 6999: it was cleared"):
        since(now, before, tmp_path / "now")
    with pytest.raises(ScenarioError, match="lid 72 port 1 is not among the counters before"):
        since(now[:1], before[1:], tmp_path / "now")


def test_counters_that_have_stopped_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, full = tmp_path / "now", str(2**32 - 1)
    for text, before, words in (
        (PERFQUERY, False, ""),
        (BASIC, False, "1 port: counters of data, packets or waiting are at the end of 32 bits; perfquery -x"),
        (BASIC, True, "so increments are too small"),
        (PERFQUERY.replace(".7000", f".{full}"), True, "so increments are too small"),
    ):
        file.write_text(text)
        assert execute(["counters", "import", str(file), *(["--before", str(file)] if before else [])]) == 0
        printed = capsys.readouterr().err
        assert words in printed
        assert bool(printed) == bool(words)


def test_ports_that_the_fabric_lacks_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="counters:1: the fabric has no lid 7200 port 1"):
        read(tmp_path, PERFQUERY.replace("Lid 72 ", "Lid 7200 "))
    (only,) = read(
        tmp_path, PERFQUERY.replace("Lid 9 port 4", "Lid 9 port 25").replace("PortSelect:......................4", "")
    )
    assert only["name"] == HOST  # port 25 has no cable


def test_a_table_has_the_counters_that_the_source_has(tmp_path: Path) -> None:
    (tmp_path / "counters").write_text(IBQUERYERRORS)
    table = table_of(read_counters(tmp_path / "counters").ports)
    expected = ["PortXmitData", "PortRcvData", "PortXmitPkts", "PortXmitDiscards", "PortXmitWait"]
    assert [name for name in table.columns if name in COUNTERS] == expected
    assert table["PortXmitWait"].to_list() == [None, 7000]


def test_hot_links_come_with_the_jobs_that_share_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    before.write_text(PERFQUERY)
    now.write_text(PERFQUERY.replace(".1000", f".{1000 + 500_000_000}").replace(".7000", ".9000"))
    (tmp_path / "jobs").write_text(
        f"17 {HOST},H-003048c749bb0000\n18 {HOST},H-003048c74abf0000\n19 H-003048c749bb0000\n"
        "20 \n21_[1-9] \n"  # as squeue prints jobs that wait
    )
    command = ["analyze", "--counters", str(now), "--before", str(before), "--over", "1 s", "--allocation"]
    command += [str(tmp_path / "jobs"), "--fabric", str(DATA / "x5.ibnetdiscover")]
    assert execute([*command, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["links"]
    # The port of the switch that leads to the host waited most; the host sent 2 GB in a second over 16 Gb/s.
    assert (first["link"], first["wait_ticks"], first["sent_bytes"]) == (f"{SWITCH} port 4 to {HOST}", 2000, 0)
    assert (second["link"], second["sent_bytes"]) == (f"{HOST} port 1 to {SWITCH}", 2_000_000_000)
    assert second["utilisation"] == pytest.approx(1.0)
    assert first["jobs"] == second["jobs"] == ["17", "18"]
    assert execute(command) == 0
    printed = capsys.readouterr().out
    assert "17, 18" in printed
    assert "100" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "needs either the folder of a run or --counters"),
        (["RUN", "--before", "COUNTERS"], "goes with --counters"),
        (["--counters", "COUNTERS"], "needs the fabric"),
        (["--counters", "COUNTERS", "--fabric", "X5", "--over", "1 s"], "needs two readings"),
        (["--counters", "COUNTERS", "--fabric", "X5", "--allocation", "JOBS"], 'did you mean "H-003048c749cd0000"?'),
        (["--counters", "MISSING", "--fabric", "X5"], "cannot be read"),
    ],
)
def test_wrong_arguments_of_analyze_end_with_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "COUNTERS").write_text(PERFQUERY)
    (tmp_path / "JOBS").write_text("17 H-003048c749cd0001\n")
    paths = {"X5": str(DATA / "x5.ibnetdiscover")}
    names = ("RUN", "COUNTERS", "JOBS", "MISSING")
    paths |= {name: str(tmp_path / name) for name in names}
    assert execute(["analyze", *(paths.get(word, word) for word in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_the_commands(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "counters"
    assert execute(["counters", "export", str(folder), "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {"perfquery.txt", "counters.prom", "intervals.om", "intervals"}
    assert len(list((out / "intervals").iterdir())) == 4
    last = sorted((out / "intervals").iterdir())[-1]
    assert last.read_bytes() == (out / "perfquery.txt").read_bytes()
    capsys.readouterr()
    assert execute(["counters", "import", str(out / "perfquery.txt"), "--out", str(tmp_path / "a.parquet")]) == 0
    assert pl.read_parquet(tmp_path / "a.parquet").height == len(snapshots(load_run(folder))[-1].ports)
    assert execute(["counters", "export", str(folder), "--out", str(out)]) == 2
    assert "exists and is not an empty directory" in capsys.readouterr().err
    wrong = ["counters", "export", str(folder), "--out", str(tmp_path / "b"), "--guids", str(DATA / "x5.ibnetdiscover")]
    assert execute(wrong) == 2
    assert "a dump of the same fabric" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
