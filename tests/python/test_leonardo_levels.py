"""Leonardo's service levels: moments of allocations, drawn production, gains, and claims judged on made-up ones."""

from pathlib import Path

import numpy
import polars as pl
import pytest

from fairlane.core.errors import ScenarioError
from fairlane.papers.published.leonardo_levels.method import FITTED, HERE, cells, gains
from fairlane.papers.published.leonardo_levels.production import ALL, allocations, hosts, jobs, moment, profiles
from fairlane.papers.reproduce import plan
from fairlane.study.sql import Database
from papers import held, performed, scenarios, small, study_of

JOBS = HERE / "allocations.csv.xz"
STORAGE = {"workload": "incast", "weight": 1, "bytes": "1 MiB", "spread": 0}


def test_the_cells_of_the_study_are_those_measured() -> None:
    chosen = plan("leonardo_levels")
    study = study_of(chosen, "levels")
    assert {point.parameters["cell"] for point in study.points()} == set(cells()["cell"])
    for cell, nodes in cells().select("cell", "nodes").iter_rows():
        default, unused = (
            scenarios(chosen, "levels", cell=cell, level=level)[0].jobs[0] for level in ("default", "unused")
        )
        assert default.ranks == nodes * (default.ranks_per_host or 1)
        assert (default.service_level, unused.service_level) == (0, 1)
        if default.ranks_per_host == 4:
            assert default.workload is not None
            assert default.workload.sides == [default.ranks], "the ring closes over all nodes"  # type: ignore[union-attr]


def test_a_moment_has_allocations_without_a_common_node() -> None:
    known = allocations(JOBS)
    now = moment(known, 16, seed=1)
    taken = [*now.own, *(host for one in now.others for host in one)]
    assert len(now.own) == 16
    assert {now.own, *now.others} <= set(known)
    assert sorted([*taken, *now.rest]) == list(range(ALL)), "each host is in one of them, or in none"
    assert not [one for one in known if not set(taken) & set(one)], "no other allocation has room"
    assert moment(known, 16, seed=1) == now != moment(known, 16, seed=2)


def test_hosts_count_up_leaf_by_leaf() -> None:
    host = hosts()
    assert len(host) == ALL
    assert [host[f"lrdn{number:04}"] // 180 for number in (1, 180, 181, 3420)] == [0, 0, 1, 18]


def test_a_share_of_the_servers_is_written_to_and_profiles_keep_their_share_of_time() -> None:
    now = moment(allocations(JOBS), 16, seed=1)
    given = {"load": 0.3, "clients": 7, "storage": STORAGE}
    given["profiles"] = [{"workload": "shift", "weight": 1, "bytes": "2 MiB", "spread": 0}]
    drawn = list(jobs(now, given, 50e9, seed=1))
    beside = [one for one in drawn if str(one.name).startswith("production")]
    assert [one.ranks for one in beside] == [len(one) for one in now.others]
    exchange = (2 << 20) / 50e9 * 1e12
    busy = [exchange / (exchange + one.workload.compute) for one in beside if one.workload and one.workload.compute]
    servers = len(now.rest) // 8
    # The share is uniform up to 0.6, whose deviation is 0.6 / sqrt(12); four deviations of the mean, and of a share.
    assert numpy.mean(busy) == pytest.approx(0.3, abs=4 * 0.6 / numpy.sqrt(12 * len(busy)))
    written = (len(drawn) - len(beside)) / servers
    assert written == pytest.approx(0.3, abs=4 * numpy.sqrt(0.3 * 0.7 / servers))


def test_a_size_that_no_allocation_has_and_unknown_keys_and_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"ranks = 13: no allocation has so many nodes; allowed: 4, 5, 6"):
        moment(allocations(JOBS), 13, seed=1)
    with pytest.raises(ScenarioError, match=r"profiles\[0\]\.byte"):
        profiles([{"workload": "shift", "weight": 1, "byte": "1 MiB", "spread": 0}])
    file = tmp_path / "jobs.csv"
    file.write_text("job,node\n1,lrdn0001\n")
    with pytest.raises(ScenarioError, match=r'jobs\.csv:1: node: unknown column.*did you mean "nodes"'):
        allocations(file)


def found(factor: float) -> Database:
    """The tables with gains that are the measured ones times a factor, up and down by a tenth from moment to moment."""
    rows = [
        {"cell": cell, "seed": seed, "level": level, "time_s": time, "node_gb_per_s": 1 / time}
        for cell, gain in cells().select("cell", "measured").iter_rows()
        for seed, part in ((1, 0.9), (2, 1.0), (3, 1.1))
        for level, time in (("default", gain * factor * part), ("unused", 1.0))
    ]
    database = Database({"measured": pl.DataFrame(rows)})
    database.put("gains", gains(database))
    return database


def test_gains_are_paired_ratios_and_claims_are_judged_by_them() -> None:
    right = found(1.0)
    table = right.ask("SELECT * FROM gains")
    assert table["predicted"].to_list() == pytest.approx(table["measured"].to_list())
    assert (table["low"] < table["measured"]).all()
    assert (table["measured"] < table["high"]).all()
    assert table.filter(pl.col("fitted"))["cell"].to_list() == [FITTED]
    names = ("gains", "allreduce", "small-allreduce", "all-to-all", "order")
    assert all(all(held("leonardo_levels", f"levels.{name}", right)) for name in names)
    wrong = found(1.6)
    assert held("leonardo_levels", "levels.allreduce", wrong).count(False) == 8
    assert held("leonardo_levels", "levels.small-allreduce", wrong) == [False, True]
    assert not all(held("leonardo_levels", "levels.gains", found(0.9)))


def test_a_cell_is_run_on_both_levels(tmp_path: Path) -> None:
    change = {
        "set": {"seeds": [1], "measure.arguments.load": 0.0},
        "only": {"cell": ["allreduce-1g-16"]},
        "scenario": {"jobs[0].stop": 1, "jobs[0].workload.message_size": "8 KiB", "jobs[0].start": "0 ns"},
    }
    performed(small("leonardo_levels", "levels.allreduce", {"levels": change}), tmp_path)
    (row,) = pl.read_csv(tmp_path / "gains.csv").iter_rows(named=True)
    assert row["cell"] == "allreduce-1g-16"
    assert row["predicted"] == pytest.approx(1.0, rel=0.1), "nobody is beside it"
