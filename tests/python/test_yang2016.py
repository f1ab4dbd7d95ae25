"""The reproduction of Yang et al. 2016: its cells at their own size, and small ones run, judged and drawn."""

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairlane import Fabric
from fairlane.pattern import observe, program_of
from fairlane.placement import PLACEMENTS
from fairlane.reproduce.frames import plan, reproduce
from fairlane.reproduce.frames.traces import JOBS, TRACES, job_log, trace
from fairlane.reproduce.frames.yang2016.checks import CHECKS
from fairlane.reproduce.frames.yang2016.experiments import (
    APPLICATIONS,
    EXPERIMENTS,
    FULL,
    QUICK,
    SCHEDULES,
    Application,
    Cell,
    written,
)
from fairlane.reproduce.frames.yang2016.measured import Measured
from fairlane.reproduce.frames.yang2016.schedules import Schedules
from fairlane.reproduce.frames.yang2016.selection import Selection
from fairlane.scenario import Scenario
from fairlane.scenario.models import Job
from fairlane.scenario.resolve import decide
from fairlane.scheduler import Forecast, compare_allocators, load_model, read_log
from fairlane.tasks.progress import TaskProgress

TINY = replace(QUICK, applications={name: replace(one, factor=0.1) for name, one in QUICK.applications.items()})
WITHOUT_AMG = replace(TINY, applications={**TINY.applications, "amg": Application("amg-that-is-not-there", 1.0)})


@pytest.mark.parametrize("application", APPLICATIONS)
def test_a_rank_sends_16_mib_on_average(application: str) -> None:
    one = FULL.applications[application]
    if one.trace == "amg-216" and TRACES not in os.environ:
        pytest.skip(f"{TRACES} names no folder with {one.trace}")
    traffic = observe(program_of(Job.model_validate({"trace": {"path": str(trace(one.trace))}}).source, 0))
    assert one.factor * traffic.sent.mean() == pytest.approx(16 * 2**20, rel=0.03)
    assert QUICK.applications["crystal"].factor * 4 == FULL.applications["crystal"].factor


@pytest.mark.parametrize(("fabric", "rate"), [("3D", 4.67e9), ("5D", 2.8e9), ("7D", 2.0e9)])
def test_a_node_has_28_gb_per_second_in_all(fabric: str, rate: float) -> None:
    resolved = decide(Scenario(**written(Cell("crystal", fabric, "fixed"), QUICK)))
    links = Fabric.build(resolved.tables["fabric"]).links
    between = links["role"] != "host"
    assert set(links["bandwidth"][between].tolist()) == {rate}
    assert set(links["bandwidth"][~between].tolist()) == {28e9}
    out_of_one = between & (links["from_switch"] == 0)
    assert links["bandwidth"][out_of_one].sum() == pytest.approx(28e9, rel=0.001)


def hosts_of(allocation: str) -> list[list[int]]:
    cell = Cell("multigrid", allocation=allocation, beside="busy")
    return [list(job.hosts) for job in decide(Scenario(**written(cell, QUICK))).jobs]


def test_units_are_interleaved_among_the_three() -> None:
    for size in (16, 8, 2):
        amg, crystal, multigrid = hosts_of(f"units-{size}")
        assert crystal[:size] == list(range(size, 2 * size))
        assert multigrid[:size] == list(range(2 * size, 3 * size))
        assert sorted([*amg, *crystal, *multigrid]) == sorted(set(amg) | set(crystal) | set(multigrid))


def test_side_by_side_everybody_has_a_box_to_itself() -> None:
    places = [np.stack(np.unravel_index(hosts, (16, 16, 8), order="F")) for hosts in hosts_of("cube")]
    sides = [tuple((place.max(axis=1) - place.min(axis=1) + 1).tolist()) for place in places]
    assert sides == [(3, 3, 3), (5, 5, 4), (5, 5, 5)]
    assert len({host for hosts in hosts_of("cube") for host in hosts}) == 27 + 100 + 125


def test_the_one_that_is_measured_ends_and_the_others_go_on() -> None:
    jobs = written(Cell("crystal", allocation="cube", beside="busy"), QUICK)["jobs"]
    assert [(job["name"], job["trace"]["repeat"]) for job in jobs] == [
        ("amg", True),
        ("crystal", False),
        ("multigrid", True),
    ]


def test_a_reproduction_leaves_tables_figures_and_claims(tmp_path: Path) -> None:
    chosen = plan("yang2016", only="yang.contiguity", quick=True)
    small = replace(chosen, selection=Selection(["contiguity"], TINY))
    found = reproduce(small, tmp_path, TaskProgress(wanted=False), workers=1)
    assert not found.failed
    assert [(one.claim.id, one.missing, one.scaled) for one in found.judged] == [("yang.contiguity", [], True)]
    assert len(found.judged[0].findings) == 3
    times = pl.read_csv(tmp_path / "times.csv")
    assert times["box"].to_list() == ["contiguous", "units of 16"] * 3
    assert (times["least_ms"] < times["median_ms"]).all()
    assert (times["median_ms"] < times["greatest_ms"]).all()
    # A rank that transfers for so long has not ended before, and scattered hosts are further apart.
    assert (times["greatest_ms"] <= times["end_ms"]).all()
    far = times["links_per_byte"].to_list()
    assert all(near < scattered for near, scattered in zip(far[::2], far[1::2], strict=True))
    for name in ("contiguity", *(f"pattern-{application}" for application in APPLICATIONS)):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_trace_that_is_not_there_is_missing_and_named() -> None:
    chosen = Selection(list(EXPERIMENTS), WITHOUT_AMG)
    assert all("there is no amg-that-is-not-there.tar.zst" in words for words in chosen.left_out.values())
    cells = list(chosen.tasks)
    assert {cell.application for cell in cells} == {"crystal", "multigrid"}
    assert not any(cell.beside == "busy" for cell in cells), "all three are needed"
    measured = Measured({cell: {"network": [1.0]} for cell in cells}, WITHOUT_AMG)
    assert [words.partition(" is")[0] for words in measured.missing("shapes")] == ["AMG"]
    assert len(list(CHECKS["yang.shapes"].judge(measured))) == 2
    assert list(CHECKS["yang.unit-size"].judge(measured)) == []


def judged(experiment: str, **medians: list[float]) -> list[bool]:
    """The findings for made-up times, in ms by box, of three ranks each."""
    cells = {
        cell: {"network": [1e9 * (median - 0.1), 1e9 * median, 1e9 * (median + 9)]}
        for application, values in medians.items()
        for box, median in zip(EXPERIMENTS[experiment].boxes, values, strict=True)
        for cell in EXPERIMENTS[experiment].cells(application, box, FULL)
    }
    return [held for _, held in CHECKS[f"yang.{experiment}"].judge(Measured(cells, FULL))]


def test_medians_decide() -> None:
    assert judged("dimensions", amg=[3, 2, 1], crystal=[3, 2, 2], multigrid=[2, 3, 1]) == [True, False, False]
    assert judged("bandwidth", amg=[3, 2, 1]) == [True]
    assert judged("fixed-aggregate", amg=[1, 1.04, 9], crystal=[1, 9, 1.1], multigrid=[1, 9, 0.9]) == [True] * 3
    assert judged("fixed-aggregate", amg=[1, 0.94, 1], crystal=[1, 9, 1], multigrid=[1, 0.5, 1]) == [False] * 3
    assert judged("shapes", amg=[2, 1, 3], crystal=[1, 2, 3], multigrid=[2, 3, 1]) == [True, True, False]
    assert judged("contiguity", amg=[1, 1.06], crystal=[1, 1.3], multigrid=[1, 1.2]) == [False, True, False]
    amg, crystal, multigrid = [1, 1, 1.02, 1.1], [1, 1, 1.06, 1.2], [1, 1.9, 2, 2.2]
    assert judged("unit-size", amg=amg, crystal=crystal, multigrid=multigrid) == [True, True, False, True, True, True]


def test_the_allocator_of_section_v_is_judged_beside_both_others() -> None:
    rows = {
        "box": {"mean_slowdown": 1.0, "utilisation": 0.6},
        "linear": {"mean_slowdown": 1.4, "utilisation": 0.9},
        "pattern": {"mean_slowdown": 1.04, "utilisation": 0.85},
    }
    measured = Measured({}, FULL, schedules=rows)
    assert [held for _, held in CHECKS["yang.pattern-aware"].judge(measured)] == [True, False]
    assert measured.missing("schedules") == []
    assert Measured({}, FULL).missing("schedules")


@pytest.mark.timeout(120)
def test_allocators_are_compared_on_a_job_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = gzip.decompress(job_log(QUICK.log).read_bytes()).splitlines(keepends=True)
    small = [line for line in lines if not line.startswith(b";") and int(line.split()[4]) <= 16]
    (tmp_path / "short.swf.gz").write_bytes(gzip.compress(b"".join(small[:40])))
    monkeypatch.setenv(JOBS, str(tmp_path))
    scale = replace(QUICK, log="short", moments=1)
    chosen = replace(plan("yang2016", only="yang.pattern-aware", quick=True), selection=Selection([SCHEDULES], scale))
    found = reproduce(chosen, tmp_path / "out", TaskProgress(wanted=False), workers=1)
    assert not found.failed
    assert [(one.claim.id, one.missing, len(one.findings)) for one in found.judged] == [("yang.pattern-aware", [], 2)]
    rows = pl.read_csv(tmp_path / "out" / "schedules.csv")
    assert rows["allocator"].to_list() == ["box", "linear", "pattern"]
    # The same as by hand, and each allocator has had every job.
    forecast = Forecast(load_model("torus-128"))
    read = read_log(tmp_path / "short.swf.gz", hosts=128)
    jobs = [replace(job, submit=round(job.submit / 2)) for job in read.jobs]
    alone = compare_allocators(jobs, forecast.fabric, {"linear": PLACEMENTS["linear"]()}, forecast=forecast)
    assert set(rows["jobs"]) == {len(jobs)}
    assert rows["mean_slowdown"][1] == pytest.approx(alone.metrics["linear"].mean_slowdown, rel=1e-5)
    assert (tmp_path / "out" / "schedules.png").read_bytes().startswith(b"\x89PNG")
    # Known again by what is in the log, not by its place; another one if that changes.
    before = Schedules("short", 1).digest
    assert before == Schedules("short", 1).digest != Schedules("short", 2).digest
    (tmp_path / "short.swf.gz").write_bytes(gzip.compress(b"".join(small[:39])))
    assert Schedules("short", 1).digest != before


def test_a_job_log_that_is_not_there_is_missing_and_named() -> None:
    chosen = Selection([SCHEDULES], replace(FULL, log="no-such-log"))
    assert "FAIRLANE_JOBS: there is no no-such-log.swf.gz in" in chosen.left_out[SCHEDULES]
    assert chosen.tasks == {}
    assert list(chosen.measured({}).missing(SCHEDULES)) == [chosen.left_out[SCHEDULES]]


def test_more_places_of_random_units_are_in_one_box() -> None:
    scale = replace(FULL, seeds=3)
    cells = EXPERIMENTS["contiguity"].cells("amg", "units of 16", scale)
    assert [cell.seed for cell in cells] == [1, 2, 3]
    measured = Measured({cell: {"network": [1e9 * cell.seed]} for cell in cells}, scale)
    times = measured.times("contiguity", "amg", "units of 16")
    assert times is not None
    assert times.tolist() == pytest.approx([1, 2, 3])
