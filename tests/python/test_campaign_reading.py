"""What ``campaign read`` makes of results: of the project's own runs, and of folders as CRAB writes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.papers.campaign.reading import read
from measured_campaigns import RUN, application, crab, data, of_hosts, run_folder, times, victim


def test_a_row_has_median_mean_and_99_percent_of_the_iterations(tmp_path: Path) -> None:
    run_folder(tmp_path, "a"), run_folder(tmp_path, "b")
    found = read(tmp_path)
    assert found.left_out == []
    assert found.measured.select("system", "nodes", "victim", "n").unique().rows() == [("here", 4, "All-to-All", 200)]
    assert found.measured.select("aggressor", "burst_s", "pause_s", "msg_bytes", "run").rows() == [
        (*keys, 512, run) for run in ("a", "b") for keys in (("none", None, None), ("Inc", 1e-3, 1e-5))
    ]
    for row, seed in zip(found.measured.rows(named=True), (1, 2, 1, 2), strict=True):
        # 1 to 200 us: 99% of the way from the first to the last is after the 198th, so it is the 199th.
        assert row["median_s"] == pytest.approx(seed * 1e-3 + 100.5e-6, abs=1e-12)
        assert row["mean_s"] == pytest.approx(seed * 1e-3 + 100.5e-6, abs=1e-12)
        assert row["p99_s"] == pytest.approx(seed * 1e-3 + 199e-6, abs=1e-12)
    assert found.placements.filter(run="a").select("nodes", "job", "node").rows() == [
        *((4, "victim", node) for node in ("n1.cluster", "n3.cluster")),
        *((4, "aggressor", node) for node in ("n2.cluster", "n4.cluster")),
    ]


def test_both_tables_are_written_with_the_columns_of_a_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_folder(tmp_path / "in", "a")
    command = ["campaign", "read", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert execute(command) == 0
    assert capsys.readouterr().out.splitlines()[0] == "2 cells of 1 run"
    measured = (tmp_path / "out" / "measured.csv").read_text().splitlines()
    assert measured[0] == "system,nodes,victim,aggressor,burst_s,pause_s,msg_bytes,n,median_s,mean_s,p99_s,run"
    assert measured[1].startswith("here,4,All-to-All,none,,,512,200,0.0011005")
    assert (tmp_path / "out" / "placements.csv").read_text().splitlines()[:2] == [
        "run,nodes,job,node",
        "a,4,victim,n1.cluster",
    ]
    assert execute(command) == 2, "what is there stays"
    assert "has measured.csv already" in capsys.readouterr().err
    assert (tmp_path / "out" / "measured.csv").read_text().splitlines() == measured


def test_a_cell_that_was_cut_off_is_left_out_and_named(tmp_path: Path) -> None:
    complete, cut = run_folder(tmp_path, "a"), run_folder(tmp_path, "b", finished=False)
    (complete / "001.csv").write_text(of_hosts("n1 n3", times(1, 150)))
    (cut / "002.csv").unlink()
    found = read(tmp_path)
    assert found.measured.select("aggressor", "run").rows() == [("Inc", "a"), ("none", "b")]
    short, missing = found.left_out
    assert short.startswith(f"{complete / '001.csv'}: 150 iterations of 200, All-to-All of 512 B isolated, 4 nodes")
    assert missing.startswith(
        f"{cut / '002.csv'}: is missing, All-to-All of 512 B beside Inc (bursts of 1.00 ms, pauses of 10.0 µs), 4 nodes"
    )


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replaced("run.toml", "iterations = 200", "iterations = 0"), ["run.toml:5", "iterations = 0", "at least 1"]),
        (replaced("run.toml", "warm_up", "warmup"), ["run.toml:6", 'mean "warm_up"']),
        (replaced("run.toml", '"here"', '"here'), ["run.toml:2", "not valid TOML"]),
        (replaced("cells.csv", "msg_bytes", "msg_kib"), ["cells.csv:1: msg_kib", "another unit; allowed: msg_bytes"]),
        (replaced("cells.csv", "none,,,512", "none,,,512 B"), ["cells.csv:2", "512 B"]),
        (replaced("cells.csv", "0.001,", "1 ms,"), ["cells.csv:3", 'burst_s = "1 ms": not a time', "seconds"]),
        (replaced("placement.csv", "aggressor", "agressor"), ["placement.csv:4", 'mean "aggressor"']),
        (replaced("placement.csv", "aggressor,n4.cluster\n", ""), ["placement.csv", "3 nodes", "4"]),
        (replaced("001.csv", "iteration,seconds", "iteration,microseconds"), ["001.csv:3", ": iteration, seconds"]),
        (replaced("001.csv", "# hosts: n1 n3", "# hosts: n3 n1"), ["001.csv:1", "rank 0 ran on n3", "n1.cluster"]),
        (replaced("001.csv", "# hosts: n1 n3", "# hosts: n1"), ["001.csv:1", "1 ranks", "2"]),
        (replaced("002.aggressor", "n2 n4", "n2 n2"), ["002.aggressor:1", "rank 1 ran on n2", "n4.cluster"]),
        (replaced("001.csv", "\n7,", "\n8,"), ["001.csv:11", "iteration", "lines are missing"]),
        (replaced("001.csv", "\n7,0.0", "\n7,-0.0"), ["001.csv:11", "not a valid time"]),
        (replaced("001.csv", "\n7,0.", "\n7,nan,0."), ["001.csv:11", "3 cells", "2"]),
        (lambda run: (run / "001.csv").write_text(""), ["001.csv:1", "# hosts:"]),
        (lambda run: (run / "cells.csv").unlink(), ["cells.csv", "No such file"]),
        (lambda run: run_folder(run.parent.parent / "results" / "copy", "a"), []),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_run_is_named(change: Callable[[Path], Any], words: list[str], tmp_path: Path) -> None:
    change(run_folder(tmp_path, "a"))
    if not words:
        assert read(tmp_path).measured.height == 2, "folders deeper than results/RUN are not read"
        return
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_run_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    run_folder(tmp_path, "a")
    copy = run_folder(tmp_path, "copy")
    (copy / "run.toml").write_text(RUN.format(name="a"))
    with pytest.raises(ScenarioError, match=r"results/copy: is the run a, as .*results/a is"):
        read(tmp_path)


def test_a_folder_without_results_says_what_it_should_have(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"has no results: no run.*allowed: .*run\.toml.*config\.json"):
        read(tmp_path)
    (tmp_path / "run.bash").touch()
    with pytest.raises(ScenarioError, match="has no results yet: build the program"):
        read(tmp_path)
    with pytest.raises(ScenarioError, match="nowhere: cannot be read"):
        read(tmp_path / "nowhere")


def test_a_run_without_any_cell_is_an_error_that_names_them(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "a")
    for name in ("001.csv", "002.csv"):
        (run / name).unlink()
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path)
    assert "no cell is measured" in str(caught.value)
    assert "001.csv: is missing" in str(caught.value)


@pytest.mark.parametrize("newer", ["", "exp_1"])
@pytest.mark.parametrize(
    ("beside", "name", "pauses"),
    [
        ([], "none", (None, None)),
        ([application("noise_incast")], "Inc", (None, None)),
        ([application("noise_a2a", "-msgsize 16777216 -iter 9")], "A2A", (None, None)),
        ([application("bursty_noise_incast", "0.000001 0.1")], "Inc", (0.1, 1e-6)),
        ([application("bursty_noise_a2a", "0.01 0.001")], "A2A", (0.001, 0.01)),
        ([application("inc_b", "-msgsize 2097152 -blength 0.5 -bpause 0.25 -endl")], "Inc", (0.5, 0.25)),
    ],
)
def test_a_run_of_crab_is_one_of_cells(
    newer: str, beside: list[dict[str, Any]], name: str, pauses: tuple[float | None, ...], tmp_path: Path
) -> None:
    crab(tmp_path, [victim(8), victim(4096, "s0", "agtr_comm_only"), *beside], newer=newer)
    found = read(tmp_path)
    run = "2025-12-15_13-35-04-380838" + (f"/{newer}" if newer else "")
    columns = ("system", "nodes", "victim", "aggressor", "burst_s", "pause_s", "msg_bytes", "n", "run")
    assert found.measured.select(columns).rows() == [
        ("leo", 4, "All-to-All", name, *pauses, 8, 200, run),
        ("leo", 4, "All-Gather", name, *pauses, 4096, 200, run),
    ]
    assert found.measured["median_s"].to_list() == pytest.approx([1e-3 + 100.5e-6, 2e-3 + 100.5e-6])
    nodes = [("victim", "n1"), ("victim", "n3"), *((("aggressor", "n2"), ("aggressor", "n4")) if beside else ())]
    assert found.placements.rows() == [(run, 4, *one) for one in nodes]
    assert found.left_out == []


def test_repetitions_of_crab_are_runs_of_their_own(tmp_path: Path) -> None:
    run = crab(tmp_path, [victim(8)])
    with (run / "data_app_0.csv").open("a") as file:
        file.write(data(times(5), run=2))
    found = read(tmp_path)
    assert found.measured["run"].to_list() == [f"{run.name}#1", f"{run.name}#2"]
    assert found.measured["mean_s"].to_list() == pytest.approx([1e-3 + 100.5e-6, 5e-3 + 100.5e-6])
    assert found.placements.group_by("run", maintain_order=True).len()["len"].to_list() == [2, 2]


@pytest.mark.parametrize(
    ("applications", "options", "words"),
    [
        ([victim(8, wrapper="ring_nb")], {}, "ring_nb is not known as a victim; known: a2a_comm_only"),
        ([victim(8), application("ring_nb")], {}, "ring_nb is not known as an aggressor; known: noise_a2a"),
        ([victim(8), application("noise_a2a"), application("noise_a2a")], {}, "2 applications beside"),
        ([victim(8), victim(64)], {}, "at the same time"),
        ([victim(8), application("inc_b", "-msgsize 1024")], {}, "messages have 1024 B, and those of Inc 2097152"),
        ([victim(8), application("bursty_noise_a2a", "0.1")], {}, "is not a valid time"),
        ([victim(8, iterations=300)], {}, "200 iterations of 300"),
        ([application("a2a_comm_only", "-msgsize x", collect=True)], {}, "-msgsize 'x': not from 1 to"),
        ([victim(8)], {"ppn": 2}, "2 ranks on each node"),
        ([victim(8)], {"outformat": "hdf"}, "stored as hdf"),
        ([victim(8)], {"numnodes": 8}, "its victim has 2 of 8 nodes"),
    ],
)
def test_what_a_table_cannot_hold_is_left_out_and_named(
    applications: list[dict[str, Any]], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    crab(tmp_path, [victim(8)], system="other")
    crab(tmp_path, applications, **options)
    found = read(tmp_path)
    assert found.measured["system"].to_list() == ["other"]
    assert len(found.left_out) == 1
    assert words in found.left_out[0]
    assert "2025-12-15_13-35-04-380838" in found.left_out[0]


def test_cells_of_crab_without_data_or_nodes_are_named(tmp_path: Path) -> None:
    run = crab(tmp_path, [victim(8), victim(64, "s0")])
    (run / "data_app_1.csv").unlink()
    (run / "slurm_output.log").unlink()
    found = read(tmp_path)
    assert found.measured["msg_bytes"].to_list() == [8]
    assert found.placements.equals(pl.DataFrame(schema=found.placements.schema))
    assert "data_app_1.csv: is missing, All-to-All of 64 B" in found.left_out[0]
    assert "its nodes are unknown" in found.left_out[1]


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("data_app_0.csv", "0_Max-Duration_s", "0_Max-Duration_us", [".csv:1: 0_Max-Duration_us", "allowed: 0_Max"]),
        ("data_app_0.csv", "0_Max-", "1_Max-", [".csv:1: 0_Max-Duration_s: missing column", "1_Max-Duration_s"]),
        ("data_app_0.csv", "0.25,0.", "0.25,fast,0.", ["data_app_0.csv:2", "8 cells"]),
        ("data_app_0.csv", "0.25,0.", "0.25,fast", ["data_app_0.csv:2", "not a valid time"]),
        ("config.json", '"numnodes"', '"nodes"', ["config.json", "not as CRAB writes it", "numnodes"]),
        ("config.json", '"applications": {', '"applications": [{', ["config.json", "not valid JSON"]),
        ("environment.json", "{", "[{", ["environment.json", "not valid JSON"]),
    ],
)  # fmt: skip
def test_a_wrong_file_of_crab_is_named(name: str, old: str, new: str, words: list[str], tmp_path: Path) -> None:
    run = crab(tmp_path, [victim(8)])
    replaced(name, old, new)(run)
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path)
    assert all(word in str(caught.value) for word in words), str(caught.value)
