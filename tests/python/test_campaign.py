"""Campaigns: cells and their nodes, registered predictions, comparing, and what is refused."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from campaigns import CAMPAIGN, cell, cells_of, predictions, write
from fairlane.core.errors import ScenarioError
from fairlane.papers.campaign.comparing import FALSE_ALARM, FAR, MISS, RIGHT, compared, verdict
from fairlane.papers.campaign.file import CampaignFile, Judging
from fairlane.papers.campaign.registry import register, registered
from fairlane.papers.campaign.simulating import Model
from fairlane.papers.campaign.view import view

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ROWS = [
    cell(4, "none", 8, 1e-6),
    cell(4, "Flood", 8, 3e-6),
    cell(8, "none", 8, 2e-6),
    cell(8, "Flood", 8, 2.1e-6),
    cell(8, "none", 4096, 4e-6),
    cell(8, "Flood", 4096, 8e-6),
]
TIMES = {(8, "none", 8): 2.2e-6, (8, "Flood", 8): 2.3e-6, (8, "none", 4096): 4e-6, (8, "Flood", 4096): 4.2e-6}
EARLY = {(4, "none", 8): 1e-6, (4, "Flood", 8): 2.5e-6}


def registering(folder: Path, times: dict[tuple[int, str, int], float], label: str = "first") -> None:
    cells = cells_of(folder)
    register(Model(cells.campaign, cells), predictions(times), label, "", NOW)


def refused(folder: Path, words: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        Model(CampaignFile.load(folder), cells_of(folder)).check()
    assert words in str(raised.value)


def test_a_cell_is_simulated_on_its_nodes_in_the_order_of_ranks(tmp_path: Path) -> None:
    cells = cells_of(write(tmp_path, ROWS))
    scenario = Model(cells.campaign, cells).scenario(cells.all[3], 1)
    assert [job["placement"]["hosts"] for job in scenario["jobs"]] == [
        ["host0", "host2", "host4", "host6"],
        ["host1", "host3", "host5", "host7"],
    ]
    assert scenario["jobs"][0]["workload"]["message_size"] == "8 B"
    assert scenario["mpi"] == {"send_overhead": "200000 ps"}
    assert [job["name"] for job in Model(cells.campaign, cells).scenario(cells.all[2], 1)["jobs"]] == ["victim"]


def test_replicates_differ_in_the_start_of_the_victim_only(tmp_path: Path) -> None:
    cells = cells_of(write(tmp_path, ROWS))
    first, second = (Model(cells.campaign, cells).scenario(cells.all[1], number) for number in (1, 2))
    starts = [scenario["jobs"][0].pop("start") for scenario in (first, second)]
    assert starts[0] != starts[1]
    assert {**first, "seed": 0} == {**second, "seed": 0}


@pytest.mark.parametrize(
    ("measured", "predicted", "words"),
    [(2, 2.9, RIGHT), (2, 3.1, FAR), (2, 1.1, MISS), (1.05, 1.19, RIGHT), (1.05, 1.21, FALSE_ALARM), (1.2, 1.9, FAR)],
)
def test_verdicts_of_cells(measured: float, predicted: float, words: str) -> None:
    assert verdict(measured, predicted, Judging()) == words


def test_bars_count_the_cells_that_are_judged(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS)
    registering(folder, {**TIMES, **EARLY})
    found = compared(cells_of(folder), cells_of(folder).all)
    bars = {bar.what.split(":")[0]: bar for bar in found.parts["judged"]}
    assert bars["isolated medians within 15%"].met == 2
    assert bars["measured ratio above 1.3"].text == "0 of 1 (0%), at least 80%"
    assert bars["measured ratio at most 1.1"].met == 1
    assert found.table["verdict"].to_list() == [None, RIGHT, None, RIGHT, None, MISS]
    assert found.parts["used to choose the model"][1].met == 1
    assert not found.holds
    shown = view(found)
    wrong, cells, bars_, _ = shown.tables
    assert wrong.sentence == "1 miss, 0 false alarms, 0 by another factor."
    assert len(cells.rows) == 6
    assert {row["cells"] for row in bars_.rows if row} == {"judged", "used to choose the model"}
    assert [len(one.data) for one in shown.charts] == [2, 1], "co-run cells of both parts"


def test_a_measured_cell_without_a_registered_prediction_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS)
    with pytest.raises(ScenarioError, match="no prediction is registered"):
        compared(cells_of(folder), cells_of(folder).all)
    registering(folder, TIMES)
    with pytest.raises(ScenarioError, match="2 measured cells without a registered prediction: Exchange of 8 B iso"):
        compared(cells_of(folder), cells_of(folder).all)
    assert compared(cells_of(folder), cells_of(folder).of([8])).table.height == 4


def test_all_registrations_are_kept_and_one_that_has_changed_is_found(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS)
    registering(folder, TIMES)
    registering(folder, {**TIMES, (8, "Flood", 4096): 8e-6}, "second")
    first, second = registered(folder)
    assert second.meta["before"] == first.meta["sha256"]
    assert first.meta["model"] == second.meta["model"]
    cells = cells_of(folder)
    assert [compared(cells, cells.of([8]), number).holds for number in (None, 1, 2)] == [True, False, True]
    file = first.folder / "cells.csv"
    kept = file.read_text()
    file.write_text(kept.replace("4.2e-6", "8e-6"))
    with pytest.raises(ScenarioError, match="has changed since it was registered"):
        registered(folder)
    file.write_text(kept)
    file.parent.rename(tmp_path / "elsewhere")
    with pytest.raises(ScenarioError, match="one was changed or is missing"):
        registered(folder)


def test_another_value_of_a_parameter_is_another_model(tmp_path: Path) -> None:
    cells = cells_of(write(tmp_path, ROWS))
    usual, other = Model(cells.campaign, cells), Model(cells.campaign, cells, {"routing": "fixed"})
    assert usual.task(cells.all[0], 1).digest != other.task(cells.all[0], 1).digest
    assert other.data["fabric"]["routing"] == "d_mod_k"


def test_repetitions_of_a_cell_are_averaged_and_simulated_on_their_own_nodes(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS[:2])
    again = pl.read_csv(folder / "measured.csv").with_columns(run=pl.lit("again"), mean_s=pl.col("mean_s") * 3)
    text = (folder / "measured.csv").read_text() + "\n".join(again.write_csv().splitlines()[1:])
    (folder / "measured.csv").write_text(text)
    placed = (folder / "placements.csv").read_text()
    more = "".join(f"again,4,{job},host{at}\n" for job, at in [("victim", 9), ("victim", 8), ("aggressor", 7)])
    (folder / "placements.csv").write_text(placed + more)
    cells = cells_of(folder)
    assert cells.measured[cells.all[0].key]["mean_s"].value == pytest.approx(2e-6)
    second = Model(cells.campaign, cells).scenario(cells.all[0], 2)
    assert second["jobs"][0]["placement"]["hosts"] == ["host9", "host8"]


def edited(folder: Path, file: str, old: str, new: str) -> Path:
    path = write(folder, ROWS) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("placements.csv", "host3\n", "hst3\n", 'placements.csv:5: node = "hst3": unknown host; the fabric has 16'),
        ("placements.csv", "host3\n", "hst3\n", 'did you mean "host3"?'),
        ("placements.csv", "victim", "victims", 'placements.csv:2: job = "victims": unknown job'),
        ("placements.csv", "node\n", "host\n", "node: missing column, and the file has nodes, host"),
        ("measured.csv", "r8", "r9", 'measured.csv:4: run = "r9": placements.csv has no victim of this run'),
        ("measured.csv", "Flood", "Flod", 'aggressor = "Flod": unknown aggressor; allowed: Flood, none'),
        ("measured.csv", "Exchange", "Exchagne", 'did you mean "Exchange"?'),
        ("measured.csv", "mean_s", "mean_us", "measured.csv:1: mean_us: is in another unit; allowed: mean_s"),
        ("measured.csv", "msg_bytes", "msg_kib", "msg_kib: is in another unit; allowed: msg_bytes"),
        ("measured.csv", ",4096,", ",4 KiB,", 'measured.csv:6: msg_bytes = "4 KiB": not a valid number'),
        ("measured.csv", "nodes", "hosts", "measured.csv:1: nodes: missing column, and the file has system, hosts"),
        ("campaign.toml", '"incast"', '"incats"', 'did you mean "incast"?'),
        ("campaign.toml", 'placements = "placements.csv"', "", "placements: is missing"),
        ("campaign.toml", "[measure]", "[mesure]", 'did you mean "measure"?'),
        ("campaign.toml", "fixed.scenario]", "fixed.set]", "levels.fixed.set: has no effect in a campaign"),
        ("campaign.toml", "placements.csv", "nodes.csv", "nodes.csv: cannot be read"),
        ("scenario.toml", "[fabric]", "[[jobs]]\nranks = 2\n[fabric]", "the scenario of a campaign has no jobs"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, file: str, old: str, new: str, words: str) -> None:
    refused(edited(tmp_path, file, old, new), words)


def test_a_folder_without_a_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"has no campaign\.toml"):
        CampaignFile.load(tmp_path)
    with pytest.raises(ScenarioError, match="no cell has this number of nodes"):
        cells_of(write(tmp_path, ROWS)).of([7])
    assert "none" not in CampaignFile.load(write(tmp_path, ROWS, CAMPAIGN)).aggressors


@pytest.mark.parametrize("time", ["nan", "inf", "0", "-1e-6", "4 us", "1e6"])
def test_a_measured_time_that_is_none_is_named(tmp_path: Path, time: str) -> None:
    cells = cells_of(edited(tmp_path, "measured.csv", "2.1e-6,2.1e-6", f"2.1e-6,{time}"))
    with pytest.raises(ScenarioError, match=f'measured.csv:5: mean_s = "{time}": not a time above zero'):
        _ = cells.measured
