"""The reproduction of Yang et al. 2016: its scenarios at their own size, small ones run, made-up times judged."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane.learn.scheduler.compare import compare_allocators
from fairlane.learn.scheduler.log import read_log
from fairlane.learn.scheduler.slowdown.forecast import Forecast
from fairlane.learn.scheduler.slowdown.model import load_model
from fairlane.model.pattern import observe, program_of
from fairlane.model.placement import PLACEMENTS
from fairlane.model.scenario.resolve import decide
from fairlane.model.workload.trace import Trace
from fairlane.papers.judging import Finding
from fairlane.papers.planning import RECORDINGS
from fairlane.papers.reproduce import folder_of, plan
from fairlane.papers.running import Called
from fairlane.study.sql import Database
from papers import judged, performed, scenarios, small, stored_tables, study_of, tables_of
from pictures import assert_drawn


def test_what_has_no_recording_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIRLANE_TRACES", raising=False)
    monkeypatch.setenv("FAIRLANE_JOBS", str(tmp_path))
    chosen = plan("yang2016")
    missing = f"FAIRLANE_TRACES: there is no amg-216.tar.zst in {RECORDINGS}"
    assert chosen.left_out["dimensions"] == f"amg is not run: {missing}"
    assert {point.parameters["application"] for point in study_of(chosen, "dimensions").points()} == {
        "crystal",
        "multigrid",
    }
    assert "unit-size" not in chosen.studies
    assert chosen.left_out["unit-size"] == missing
    assert chosen.left_out["schedules"].startswith("FAIRLANE_JOBS: there is no nasa-ipsc-1993.swf.gz in ")
    assert str(tmp_path) in chosen.left_out["schedules"]


def test_tori_have_2048_nodes_and_the_bandwidth_that_is_asked_for() -> None:
    chosen = plan("yang2016", quick=True)
    rates = {}
    for study, network in (("dimensions", "7D"), ("bandwidth", "5D, 4 GiB/s"), ("fixed-aggregate", "3D, fixed")):
        (scenario,) = scenarios(chosen, study, application="crystal", network=network)
        resolved = decide(scenario)
        fabric = resolved.fabric
        assert fabric.hosts == 2048
        given = scenario.fabric.parameters
        rates[network] = (given["bandwidth"], given["host_bandwidth"])
    gib = 8 * 2**30
    assert rates == {
        "7D": (2 * gib, 28 * gib),
        "5D, 4 GiB/s": (4 * gib, 40 * gib),
        "3D, fixed": (4_670_000_000, 28_000_000_000),
    }


@pytest.mark.parametrize(("network", "rate"), [("3D, fixed", 4.67e9), ("5D, fixed", 2.8e9), ("7D, fixed", 2.0e9)])
def test_a_node_has_28_gb_per_second_in_all(network: str, rate: float) -> None:
    chosen = plan("yang2016", quick=True, only="yang.fixed-aggregate")
    (scenario,) = scenarios(chosen, "fixed-aggregate", application="crystal", network=network)
    links = decide(scenario).fabric.links
    bandwidth = links[next(name for name in links if name.startswith("bandwidth"))]
    between = links["role"] != "host"
    assert set(bandwidth[between].tolist()) == {rate}
    assert set(bandwidth[~between].tolist()) == {28e9}
    assert bandwidth[between & (links["from_switch"] == 0)].sum() == pytest.approx(28e9, rel=0.001)


@pytest.mark.parametrize("application", ["amg", "crystal", "multigrid"])
def test_a_rank_sends_16_mib_on_average(application: str) -> None:
    chosen = plan("yang2016", only="yang.dimensions")
    found = scenarios(chosen, "dimensions", application=application)
    if not found:
        assert application == "amg"
        pytest.skip(chosen.left_out["dimensions"])
    trace = found[0].jobs[0].trace
    assert trace is not None
    sent = observe(program_of(Trace(path=trace.path), 0)).sent
    assert trace.message_scale * sent.mean() == pytest.approx(16 * 2**20, rel=0.03)


def hosts_of(allocation: str) -> list[list[int]]:
    chosen = plan("yang2016", quick=True, only="yang.unit-size")
    (scenario,) = scenarios(chosen, "unit-size", application="multigrid", allocation=allocation)
    return [list(job.hosts) for job in decide(scenario).jobs]


def test_units_are_interleaved_among_the_three() -> None:
    for size in (16, 8, 2):
        amg, crystal, multigrid = hosts_of(f"units-{size}")
        assert crystal[:size] == list(range(size, 2 * size))
        assert multigrid[:size] == list(range(2 * size, 3 * size))
        assert sorted([*amg, *crystal, *multigrid]) == sorted(set(amg) | set(crystal) | set(multigrid))


def test_side_by_side_everybody_has_a_box_to_itself() -> None:
    found = hosts_of("cube")
    places = [np.stack(np.unravel_index(hosts, (16, 16, 8), order="F")) for hosts in found]
    sides = [tuple((place.max(axis=1) - place.min(axis=1) + 1).tolist()) for place in places]
    assert sides == [(3, 3, 3), (5, 5, 4), (5, 5, 5)]
    assert len({host for hosts in found for host in hosts}) == 27 + 100 + 125


def test_only_random_places_have_several_seeds() -> None:
    points = list(study_of(plan("yang2016", only="yang.contiguity"), "contiguity").points())
    seeds: dict[str, set[int]] = {}
    for point in points:
        seeds.setdefault(point.parameters["allocation"], set()).add(point.seed)
    assert seeds == {"cube": {1}, "random-16": {1, 2, 3, 4, 5}}


def test_together_the_others_repeat_or_only_hold_their_hosts() -> None:
    chosen = plan("yang2016", quick=True, only="yang.unit-size")
    for study, start in (("unit-size", 0), ("unit-size.alone", 10**15)):
        (scenario,) = scenarios(chosen, study, application="crystal", allocation="units-16")
        assert [(job.name, job.trace is not None and job.trace.repeat, job.start) for job in scenario.jobs] == [
            ("amg", True, start),
            ("crystal", False, 0),
            ("multigrid", True, start),
        ]
        hosts = [set(job.hosts) for job in decide(scenario).jobs]
        assert len(set().union(*hosts)) == sum(map(len, hosts)) == 27 + 100 + 125


def test_a_reproduction_leaves_tables_figures_and_claims(tmp_path: Path) -> None:
    change = {"only": {"application": ["crystal"], "network": ["3D", "5D", "7D"], "allocation": ["linear"]}}
    patterns = {"set": {"amg": "$FAIRLANE_TRACES/crystal-100.tar.zst"}}
    changes: dict[str, dict[str, Any]] = {"dimensions": change, "patterns": patterns}
    found = performed(small("yang2016", "yang.dimensions", changes), tmp_path)
    assert not found.failed
    (claim,) = found.judged
    assert [one.holds for one in claim.findings] == [True]
    assert claim.findings[0].words.startswith("Crystal Router: median 3D ")
    times = pl.read_csv(tmp_path / "times.csv")
    assert times["box"].to_list() == ["3D", "5D", "7D"]
    assert (times["min_ms"] <= times["median_ms"]).all()
    assert (times["max_ms"] <= times["end_ms"]).all(), "nobody computes, and a rank is blocked at most until the end"
    assert (times["links_per_byte"].diff()[1:] < 0).all(), "more dimensions, shorter paths"
    assert times["busiest_link_active"].is_between(0, 1).all()
    for name in ("dimensions", "pattern-crystal"):
        assert_drawn(tmp_path / f"{name}.png")
    assert stored_tables("yang2016", tmp_path) == {"cells.csv", "claims.csv", "clauses.csv", "times.csv"}


def test_allocators_are_compared_on_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(RECORDINGS / "nasa-ipsc-1993-first-400.swf.gz") as file:
        lines = file.readlines()
    short = tmp_path / "nasa-ipsc-1993-first-400.swf.gz"
    short.write_bytes(gzip.compress(b"".join(lines[:40])))
    monkeypatch.setenv("FAIRLANE_JOBS", str(tmp_path))
    chosen = small("yang2016", "yang.pattern-aware", {"schedules": {"set": {"snapshots": 1}}})
    assert chosen.studies["schedules"].arguments["log"] == str(short)
    found = performed(chosen, tmp_path / "out")
    assert not found.failed
    assert [(one.claim.id, one.missing, len(one.findings)) for one in found.judged] == [("yang.pattern-aware", [], 2)]
    rows = pl.read_csv(tmp_path / "out" / "schedules.csv")
    assert rows["allocator"].to_list() == ["box", "linear", "pattern"]
    # The same as by hand, and each allocator has had every job.
    forecast = Forecast(load_model("torus-128"))
    read = read_log(short, hosts=128)
    jobs = [type(job)(**{**vars(job), "submit": round(job.submit / 2)}) for job in read.jobs]
    alone = compare_allocators(jobs, forecast.fabric, {"linear": PLACEMENTS["linear"]()}, forecast=forecast)
    assert set(rows["jobs"]) == {len(jobs)}
    assert rows["mean_slowdown"][1] == pytest.approx(alone.metrics["linear"].mean_slowdown, rel=1e-5)
    assert_drawn(tmp_path / "out" / "schedules.png")
    assert stored_tables("yang2016", tmp_path / "out") == {"cells.csv", "claims.csv", "clauses.csv", "schedules.csv"}
    # Known again by what is in the log, not by its place; another one if that changes.
    prepared = chosen.studies["schedules"]
    assert prepared.method is not None
    before = Called(prepared.method, prepared.arguments, "schedules").digest
    other = tmp_path / "other.swf.gz"
    other.write_bytes(short.read_bytes())
    assert Called(prepared.method, {**prepared.arguments, "log": str(other)}, "schedules").digest == before
    other.write_bytes(gzip.compress(b"".join(lines[:39])))
    assert Called(prepared.method, {**prepared.arguments, "log": str(other)}, "schedules").digest != before


LEVELS = {
    "dimensions": ("network", ("3D", "5D", "7D")),
    "bandwidth": ("network", ("5D", "5D, 4 GiB/s", "5D, 8 GiB/s")),
    "fixed-aggregate": ("network", ("3D, fixed", "5D, fixed", "7D, fixed")),
    "shapes": ("allocation", ("cube", "unbalanced", "mesh")),
    "contiguity": ("allocation", ("cube", "random-16")),
    "unit-size": ("allocation", ("cube", "units-16", "units-8", "units-2")),
}


def found_of(study: str, **times: list[float]) -> list[Finding]:
    """The verdicts for these times of one rank, ms, by application and level."""
    key, levels = LEVELS[study]
    rows = [
        {"study": study, "point": len(levels) * at + place, "application": application, "network": "3D"}
        | {"allocation": "linear", key: level, "network_ps": round(1e9 * time), "late_partner_ps": 0}
        for at, (application, of) in enumerate(times.items())
        for place, (level, time) in enumerate(zip(levels, of, strict=True))
    ]
    database = Database({"transfers": pl.DataFrame(rows)})
    (claim,) = [one.id for one in folder_of("yang2016").claims if study in one.studies]
    return judged("yang2016", claim, tables_of("yang2016", database, 2))


def held(study: str, **times: list[float]) -> list[bool]:
    return [one.holds for one in found_of(study, **times)]


def test_medians_have_to_fall() -> None:
    assert held("dimensions", amg=[3, 2, 1], crystal=[3, 2, 2]) == [True, False]
    words = [one.words for one in found_of("bandwidth", multigrid=[3, 2, 1])]
    assert words == ["MultiGrid: median 2 GiB/s 3.00, 4 GiB/s 2.00, 8 GiB/s 1.00 ms (falls)"]


def test_each_application_has_its_own_band() -> None:
    assert held("fixed-aggregate", amg=[1, 1.04, 9], crystal=[1, 0, 1.1], multigrid=[1, 9, 0.9]) == [True] * 3
    assert held("fixed-aggregate", amg=[1, 1.06, 1], crystal=[1, 2, 0.9], multigrid=[1, 0, 1.1]) == [False] * 3
    assert held("shapes", amg=[2, 1, 3], crystal=[1, 2, 3], multigrid=[3, 2, 1]) == [True, True, False]
    assert held("contiguity", amg=[1, 1.05], crystal=[1, 1.2], multigrid=[1, 1.3]) == [True] * 3
    assert held("contiguity", amg=[1, 1.1], crystal=[1, 1.0], multigrid=[1, 0.9]) == [False] * 3
    assert held("contiguity", multigrid=[1, 2]) == [], "there is nothing to compare it with"
    each = held("unit-size", amg=[1, 1, 1.03, 1.1], crystal=[1, 1, 1.06, 1.1], multigrid=[1, 1.9, 2, 2.1])
    assert each == [True, True, False, True, True, True]
