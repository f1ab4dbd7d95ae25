"""The reproduction of Wilke and Kenny 2020: its scenarios at their own size, small ones run, made-up tables judged."""

from pathlib import Path
from statistics import mean, stdev

import numpy as np
import polars as pl
import pytest

from fairlane import required_virtual_lanes
from fairlane.model.scenario.resolve import decide
from fairlane.papers.planning import Plan
from fairlane.papers.reproduce import plan
from fairlane.study.sql import Database
from papers import held, judged, performed, scenarios, small, stored_tables, study_of, tables_of
from pictures import assert_drawn

NO_TIMES = pl.DataFrame(
    schema={"study": str, "point": int, "fabric": str, "background": str, "strategy": str, "size": str}
    | {"rank": int, "iteration": int, "time_s": float}
)
NO_PORTS = pl.DataFrame(
    schema={"study": str, "point": int, "fabric": str, "role": str, "active": float, "stalled": float}
)
STRATEGIES = ("none", "split_priority", "bandwidth_weight", "isolate")
FABRICS = ("dragonfly-par", "dragonfly-min-par", "fat-tree", "fat-tree-taper")


@pytest.fixture(scope="module")
def full() -> Plan:
    return plan("wilke2020")


@pytest.fixture(scope="module")
def quick() -> Plan:
    return plan("wilke2020", quick=True)


@pytest.mark.parametrize(("fabric", "switches"), [("fat-tree", 640), ("fat-tree-taper", 480)])
def test_the_paper_has_8192_hosts_that_are_all_in_use(full: Plan, fabric: str, switches: int) -> None:
    sizes = ((1, 7), (2, 6), (4, 4)) if fabric == "fat-tree" else ((1, 7),)
    for size, background in sizes:
        name = "fft.scaling" if fabric == "fat-tree" else "halo3d"
        levels = {"fabric": fabric, "strategy": "isolate", "size": str(size), "background": "halo3d"}
        (scenario,) = scenarios(full, name, **levels)
        resolved = decide(scenario)
        assert [job.ranks for job in resolved.jobs] == [1024] * background + [1024 * size]
        assert len({host for job in resolved.jobs for host in job.hosts}) == 8192
        assert resolved.tables["qos"]["arbiter"]["params"]["weights"] == [1] * background + [size]
    assert resolved.fabric.switches == switches


def test_the_foreground_has_the_same_hosts_whatever_runs_beside_it(quick: Plan) -> None:
    there = scenarios(quick, "fft", fabric="fat-tree")
    assert len(there) == 2 + 4 + 1
    hosts = {decide(scenario).jobs[-1].hosts for scenario in there}
    assert len(hosts) == 1
    assert len(set(np.diff(next(iter(hosts))).tolist())) > 1, "what is left is fragmented"


def test_without_contention_only_the_hosts_links_are_of_this_world(quick: Plan) -> None:
    (scenario,) = scenarios(quick, "fft", fabric="fat-tree", background="no_contention")
    links = decide(scenario).fabric.links
    column = next(name for name in links if name.startswith("bandwidth"))
    rates = {role: set(links[column][links["role"] == role].tolist()) for role in ("host", "up", "down")}
    assert rates == {"host": {10**11}, "up": {10**14}, "down": {10**14}}


@pytest.mark.parametrize("fabric", FABRICS)
def test_each_job_can_have_a_lane_of_its_own(quick: Plan, fabric: str) -> None:
    (scenario,) = scenarios(quick, "fft", fabric=fabric, strategy="isolate", background="halo3d")
    resolved = scenario.resolve()
    levels = [job.service_level for job in resolved.jobs]
    assert levels == list(range(len(resolved.jobs)))
    lanes = [resolved.tables["qos"]["sl2vl"][level] for level in levels]
    assert len(set(lanes)) == len(lanes) > 1
    assert not resolved.engine().finished, "the fabric and its routing have the channels for all lanes"


def test_isolate_on_the_dragonfly_has_a_channel_for_each_hop_of_each_job(full: Plan) -> None:
    (scenario,) = scenarios(full, "fft", fabric="dragonfly-par", strategy="isolate", background="halo3d")
    written = scenario.model_dump(mode="json", exclude_none=True)["fabric"]
    dragonfly = {key: written[key] for key in ("topology", "preset")}
    assert len(required_virtual_lanes(dragonfly, written["routing"], {"service_levels": 8})) == 8 * 6


def test_lanes_are_counted_by_trying(tmp_path: Path) -> None:
    chosen = small("wilke2020", "wilke.virtual-lanes", {"lanes": {"only": {"fabric": ["fat-tree"]}}})
    (claim,) = performed(chosen, tmp_path).judged
    assert [(one.value, one.holds) for one in claim.findings] == [(4.0, True)]


def test_a_reproduction_leaves_tables_figures_and_claims(tmp_path: Path) -> None:
    change = {
        "only": {"fabric": ["fat-tree", "fat-tree-taper"], "size": ["1"]},
        "scenario": {"jobs[1].start": "20 us", "jobs[1].stop": 5},
        "set": {"factors.background.halo3d": {"jobs[0].workload": {"name": "halo3d", "message_size": "32 KiB"}}},
    }
    chosen = small("wilke2020", "wilke.allreduce", {"allreduce": change})
    assert len(list(study_of(chosen, "allreduce").points())) == 2 * (2 + 4)
    found = performed(chosen, tmp_path)
    assert not found.failed
    assert [(one.claim.id, bool(one.scaled), len(one.findings)) for one in found.judged] == [
        ("wilke.allreduce", True, 7)
    ]
    assert_drawn(tmp_path / "allreduce.png")
    times = pl.read_csv(tmp_path / "times.csv")
    assert set(times["fabric"]) == {"fat-tree", "fat-tree-taper"}
    assert (times["median_s"] <= times["p99_s"]).all()
    assert set(times["count"]) == {16 * 4}, "all but each rank's first of five iterations"
    runs = found.outcome.tables.ask(
        "SELECT background, packet_hops FROM runs WHERE fabric = 'fat-tree' AND strategy = 'none'"
    )
    hops = dict(runs.iter_rows())
    assert hops["nobody"] * 3 < hops["halo3d"]
    assert stored_tables("wilke2020", tmp_path) == {"cells.csv", "claims.csv", "clauses.csv", "times.csv"}


def made_up(study: str, cells: dict[tuple[str, str, str], list[float]]) -> Database:
    """The tables of the paper for these times of one rank, by fabric, background and strategy."""
    rows = [
        {"study": study, "point": at, "fabric": fabric, "background": background, "strategy": strategy, "size": "1"}
        | {"rank": 0, "iteration": number, "time_s": time}
        for at, ((fabric, background, strategy), times) in enumerate(cells.items())
        for number, time in enumerate([None, *times], 1)
    ]
    return tables_of("wilke2020", Database({"times": pl.DataFrame(rows, infer_schema_length=None), "ports": NO_PORTS}))


def test_outliers_decide_about_allreduce() -> None:
    cells = {
        (fabric, "halo3d", strategy): [1e-5] * 99 + [reach * 1e-5]
        for fabric in FABRICS
        for strategy in STRATEGIES
        for reach in [8 if strategy == "none" and fabric.startswith("dragonfly") else 2]
    }
    assert held("wilke2020", "wilke.allreduce", made_up("allreduce", cells)) == [True] * (3 + 4 * 3 + 2)
    cells["dragonfly-par", "halo3d", "bandwidth_weight"] = [1e-5] * 99 + [1.5e-5]
    found = judged("wilke2020", "wilke.allreduce", made_up("allreduce", cells))
    lost = "dragonfly-par, split_priority: max / median 2.00 (<= 1.50, the least of the other strategies)"
    assert [one.words for one in found if not one.holds] == [lost]
    cells["dragonfly-par", "halo3d", "bandwidth_weight"] = [1e-5] * 99 + [2e-5]
    cells["fat-tree", "halo3d", "isolate"] = [1e-5] * 99 + [4e-5]
    found = judged("wilke2020", "wilke.allreduce", made_up("allreduce", cells))
    assert [one.words for one in found if not one.holds] == ["fat-tree, isolate: max / median 4.0 (<= 3)"]


def test_control_messages_first_must_not_help_halo3d_on_dragonflies() -> None:
    def words(split: float) -> list[str]:
        cells = {
            (fabric, background, strategy): [time] * 5
            for fabric in FABRICS
            for background, slower in (("nobody", 1.0), ("fft", 1.01), ("halo3d", 2.0))
            for strategy in ("none", "split_priority")
            for on_tree in [fabric.startswith("fat-tree")]
            for helped in [(0.5 if on_tree else split) if (background, strategy) == ("halo3d", "split_priority") else 1]
            for time in [slower * helped * (1e-3 if on_tree else 2e-3)]
        }
        found = judged("wilke2020", "wilke.halo3d", made_up("halo3d", cells))
        return [one.words for one in found if not one.holds]

    assert words(1.0) == []
    assert words(0.9) == [
        f"{fabric}, size 1: median of split_priority 0.900 of none's (>= 0.99)" for fabric in FABRICS[:2]
    ]


def test_the_strategy_with_the_least_tail_decides_about_fft() -> None:
    tails = {"none": 4.0, "split_priority": 1.0, "bandwidth_weight": 2.0, "isolate": 3.0}
    cells = {("fat-tree", "halo3d", name): [1e-6] * 9 + [1e-5 * tail] * 91 for name, tail in tails.items()}
    assert held("wilke2020", "wilke.fft", made_up("fft", cells)) == [True, True, False]
    cells["fat-tree", "halo3d", "isolate"] = [1e-6] * 100
    assert held("wilke2020", "wilke.fft", made_up("fft", cells)) == [False, True, True]


def test_throughput_is_separated_by_size() -> None:
    sizes = [1, 2, 4, 8, 15, 16, 32, 64, 128, 256, 512, 1024]
    # Every message takes 1 us a way and 1 us more for each KiB; sizes take turns, four times each.
    times = [2e-6 * (1 + sizes[iteration % len(sizes)]) for iteration in range(1, 4 * len(sizes))]
    tables = made_up("pingpong", {("dragonfly-par", "halo3d", "none"): times})
    tables.put("times", tables.ask("SELECT * FROM times UNION ALL SELECT * REPLACE (1 AS rank) FROM times"))
    tables_of("wilke2020", tables)
    found = dict(tables.ask("SELECT kib, mean FROM rates").iter_rows())
    assert list(found) == sizes
    assert found == pytest.approx({size: 1024 * size / (1e-6 * (1 + size)) for size in sizes})


def test_pairs_of_one_repetition_count_once_for_the_interval_of_throughput() -> None:
    # Four pairs, four repetitions of each size: in a repetition all pairs are equally fast.
    speeds = [1.0, 1.0, 2.0, 3.0]
    row = {"study": "pingpong", "point": 0, "fabric": "dragonfly-par", "background": "halo3d", "strategy": "none"}
    times = [
        row | {"size": "1", "rank": rank, "iteration": number, "time_s": 2e-6 / speed if number > 1 else None}
        for rank in range(8)
        for number, speed in enumerate((speed for speed in speeds for _size in range(12)), 1)
    ]
    tables = tables_of(
        "wilke2020", Database({"times": pl.DataFrame(times, infer_schema_length=None), "ports": NO_PORTS})
    )
    one = tables.ask("SELECT * FROM rates WHERE kib = 64").row(0, named=True)
    unit = 64 * 1024 / 1e-6
    half = 3.182446 * stdev(speeds) / len(speeds) ** 0.5
    assert one["repetitions"] == len(speeds)
    assert one["mean"] == pytest.approx(unit * mean(speeds))
    assert (one["low"], one["high"]) == pytest.approx((unit * (mean(speeds) - half), unit * (mean(speeds) + half)))


def test_without_strategies_both_dragonflies_are_one_simulation(full: Plan) -> None:
    study = study_of(full, "halo3d")
    levels = {"strategy": "none", "background": "halo3d", "size": "1"}
    written = [
        study.scenario(point).model_dump(mode="json", exclude_none=True)
        for point in study.points()
        if point.parameters["fabric"].startswith("dragonfly") and levels.items() <= point.parameters.items()
    ]
    assert len(written) == 2
    assert written[0] == written[1]
    assert not scenarios(full, "halo3d", strategy="isolate", background="fft")
    assert len(scenarios(full, "halo3d.fft", strategy="isolate")) == 4


def test_ports_of_hosts_are_apart_from_those_between_switches() -> None:
    of_port = {"study": "port-counters", "point": 0, "fabric": "fat-tree"}
    ports = [of_port | {"role": "host", "active": 0.9, "stalled": 0.0}] * 3 + [
        of_port | {"role": role, "active": active, "stalled": 0.5}
        for role, active in (("up", 0.1), ("down", 0.3), ("down", 0.2))
    ]
    tables = tables_of("wilke2020", Database({"times": NO_TIMES, "ports": pl.DataFrame(ports)}))
    found = tables.ask("SELECT ports, count, median_active, stalled FROM port_shares").rows()
    assert found == [("between switches", 3, 0.2, 0.5), ("hosts", 3, 0.9, 0.0)]
