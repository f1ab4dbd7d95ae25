"""Flow completion times: closed forms of lists of flows, quantiles by size, and runs that have none."""

from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane import Run
from fairlane.results.flows import by_size, flows
from fairlane.views.run import view

NS = 1000
SEND, LINK, SWITCH = 300 * NS, 100 * NS, 200 * NS
LATENCY = SEND + 2 * LINK + SWITCH
PACKET = 2048
BIT = 10  # ps at 100 Gb/s
HEADER = 52
SCENARIO = """
duration = "2 ms"
fabric = {{ topology = "fat_tree", hosts = 8, levels = 1, radix = 8, bandwidth = "100 Gb/s", latency = "100 ns" }}
network = {{ mtu = "2 KiB", header = "52 B", switch_latency = "200 ns" }}
mpi = {{ send_overhead = "300 ns" }}
{observe}
[[jobs]]
name = "flows"
trace.path = "{trace}"
"""


def run(folder: Path, rows: list[str], *, matrix: bool = True, observe: str = "flows") -> Run:
    """The run of these flows."""
    text = [f"Nodes 8\nConnections {len(rows)}"] if matrix else [str(len(rows))]
    trace = folder / ("list.cm" if matrix else "flow.txt")
    trace.write_text("\n".join([*text, *rows, ""]))
    record = f'observe.record = {{ job = "{observe}" }}' if observe else ""
    (folder / "scenario.toml").write_text(SCENARIO.format(observe=record, trace=trace.name))
    return fairlane.run(fairlane.Scenario.load(folder / "scenario.toml"), isolated=False)


def wire(size: int) -> int:
    """Time of a flow on a link, ps: its bytes, and a header for each packet."""
    return 8 * BIT * (size + HEADER * max(1, -(-size // PACKET)))


@pytest.mark.parametrize("matrix", [True, False])
def test_a_flow_alone_takes_the_ideal_time(matrix: bool, tmp_path: Path) -> None:
    sizes = [1, 2048, 100_000, 1_000_000]
    if matrix:
        rows = [f"{at}->{at + 4} id {at} start {at * 300_000_000} size {size}" for at, size in enumerate(sizes)]
    else:
        rows = [f"{at} {at + 4} 3 100 {size} {at * 300e-6:.6f}" for at, size in enumerate(sizes)]
    table = flows(run(tmp_path, rows, matrix=matrix))
    assert table is not None
    table = table.sort("bytes")
    assert table["time_ps"].to_list() == [LATENCY + wire(size) for size in sizes]
    assert table["ideal_ps"].to_list() == [LATENCY + wire(size) for size in sizes]
    assert table["slowdown"].to_list() == [1.0] * 4


def test_flows_into_one_host_share_its_link(tmp_path: Path) -> None:
    """The link is never idle: the last of three equal flows ends when all bytes have crossed it."""
    size = 204_800
    table = flows(run(tmp_path, [f"{at}->7 id {at} start 0 size {size}" for at in range(3)]))
    assert table is not None
    most = (LATENCY + 3 * wire(size)) / (LATENCY + wire(size))
    assert table.select("slowdown").max().item() == pytest.approx(most, rel=1e-9)
    # Packets take turns, so the others end at most two packets before.
    least = (LATENCY + 3 * wire(size) - 2 * wire(PACKET)) / (LATENCY + wire(size))
    assert table.select("slowdown").min().item() >= least - 1e-9


def test_a_flow_within_a_host_has_an_ideal_of_its_memory(tmp_path: Path) -> None:
    """Its latency, and the bytes without headers at its bandwidth: it was infinitely fast."""
    size = 1_000_000
    trace = tmp_path / "list.cm"
    trace.write_text(f"Nodes 8\nConnections 2\n0->1 id 1 start 0 size {size}\n0->2 id 2 start 900000000 size {size}\n")
    text = SCENARIO.format(observe='observe.record = { job = "flows" }', trace="list.cm")
    text += "ranks_per_host = 2\n"
    text = text.replace("mpi = { send", 'mpi = { memory_latency = "150 ns", memory_bandwidth = "400 Gb/s", send')
    (tmp_path / "scenario.toml").write_text(text)
    table = flows(fairlane.run(fairlane.Scenario.load(tmp_path / "scenario.toml"), isolated=False))
    assert table is not None
    within, across = table.sort("ideal_ps").to_dicts()
    assert within["ideal_ps"] == SEND + 150 * NS + 8 * size * BIT / 4
    assert within["slowdown"] == pytest.approx(1, rel=1e-6)
    assert across["ideal_ps"] == LATENCY + wire(size)


def test_the_run_shows_them_by_size(tmp_path: Path) -> None:
    found = run(
        tmp_path, ["0->1 id 1 start 0 size 2000", "2->1 id 2 start 0 size 4000", "3->4 id 3 start 1 size 9000000"]
    )
    shown = view({"run": found})
    (table,) = (one for one in shown.tables if one.title == "Flow completion")
    assert [row and table.columns[0].cell(row) for row in table.rows] == ["1.95 KiB to 3.91 KiB", "8.58 MiB"]
    (chart,) = (one for one in shown.charts if one.name == "flow-slowdown")
    assert chart.sentence.startswith("3 flows, median slowdown 1.")
    assert [row["flows"] for row in chart.data] == [2] * 3 + [1] * 3
    assert chart.spec.to_dict()["layer"]


def test_quantiles_are_values_of_flows_and_what_has_not_come_is_counted() -> None:
    """Of n values in order a quantile q is number ceil(q n)."""
    sizes = [500] * 100 + [70_000] * 2 + [9_000_000]
    times = [*range(1, 101), 7, None, None]
    table = pl.DataFrame({"bytes": sizes, "time_ps": times, "slowdown": [None if t is None else t / 10 for t in times]})
    small, large, late = by_size(table.sample(fraction=1.0, shuffle=True, seed=3)).to_dicts()
    assert [small[f"time_ps_{name}"] for name in ("p50", "p95", "p99")] == [50, 95, 99]
    assert [small[f"slowdown_{name}"] for name in ("p50", "p95", "p99")] == [5.0, 9.5, 9.9]
    assert (small["count"], small["missing"], large["count"], large["missing"]) == (100, 0, 1, 1)
    assert large["time_ps_p99"] == 7
    assert (late["count"], late["missing"], late["time_ps_p50"]) == (0, 1, None)


def test_runs_without_a_record_have_none(tmp_path: Path) -> None:
    assert flows(run(tmp_path, ["0->1 id 1 start 0 size 2000"], observe="")) is None
