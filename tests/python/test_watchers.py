"""What is sampled while a simulation runs adds up to what is measured at its end, and changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane import Run, Scenario, ScenarioError, query
from fairlane.results.views import by_link, by_role, distribution, over_time
from pictures import assert_drawn
from report_runs import printed

FABRIC = {"topology": "dragonfly", "groups": 3, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 1}
JOBS: list[dict[str, Any]] = [
    {"name": "halo", "ranks": 4, "workload": {"name": "halo3d", "message_size": "64 KiB"}},
    {"name": "reduce", "ranks": 4, "workload": "allreduce", "start": "50 us"},
    {"name": "pair", "ranks": 2, "workload": {"name": "ping_pong", "sizes": ["1 KiB", "64 KiB"]}, "stop": 40},
]


def simulated(folder: Path, **observe: Any) -> Run:
    scenario = Scenario(name="watched", fabric=FABRIC, jobs=JOBS, duration="1 ms", observe=observe)
    return fairlane.run(scenario, out=folder, isolated=False, figures=True)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("run") / "watched", interval="100 us", iterations=["reduce", "pair"])


def test_watching_changes_nothing_and_is_not_done_unasked(watched: Run, tmp_path: Path) -> None:
    plain = simulated(tmp_path / "plain")
    assert plain.samples is None
    assert plain.iterations is None
    assert not (tmp_path / "plain" / "samples.parquet").exists()
    assert plain.meta.digest == watched.meta.digest


def test_samples_add_up_to_the_counters(watched: Run) -> None:
    assert watched.samples is not None
    lanes = watched.samples.group_by("link", "lane").agg(pl.col("bytes", "packets", "queueing_ps", "stalled_ps").sum())
    used = watched.ports.filter(pl.col("packets") > 0).sort("link", "lane")
    assert lanes.filter(pl.col("packets") > 0).sort("link", "lane").equals(used.select(lanes.columns))
    ports = watched.samples.group_by("from_ps", "link").agg(pl.col("port_active_ps", "port_stalled_ps").first())
    whole = ports.group_by("link").agg(pl.col("port_active_ps", "port_stalled_ps").sum()).sort("link")
    measured = by_link(watched.ports).filter(pl.col("port_active_ps") > 0).select(whole.columns).sort("link")
    assert whole.equals(measured)


def test_samples_lie_side_by_side_near_multiples_of_the_interval(watched: Run) -> None:
    assert watched.samples is not None
    spans = watched.samples.select("from_ps", "to_ps").unique().sort("from_ps")
    assert spans.height == 10
    assert spans["from_ps"].to_list()[1:] == spans["to_ps"].to_list()[:-1]
    late = spans["to_ps"].to_numpy() - 100_000_000 * np.arange(1, 11)
    assert late.min() >= 0
    assert late.max() < 100_000, "an engine stops at the end of a window, less than a link's latency later"


def test_roles_are_those_of_the_fabric(watched: Run) -> None:
    roles = by_role(watched.ports)
    # 12 hosts; 2 switches a group joined to each other, and 3 groups joined to each other: both directions.
    assert dict(roles.select("role", "ports").iter_rows()) == {"host": 24, "local": 6, "global": 6}
    assert roles["bytes"].sum() == watched.ports["bytes"].sum()
    time = over_time(watched.samples, watched.ports) if watched.samples is not None else pl.DataFrame()
    assert time.height == 10 * 3
    mean = time.group_by("role").agg(pl.col("port_active_share").mean()).sort("role")
    assert mean["port_active_share"].to_list() == pytest.approx(roles["port_active_share"].to_list(), rel=1e-3)


def test_iterations_are_marked_at_the_engines_own_instants(watched: Run) -> None:
    found = watched.iterations
    assert found is not None
    for name in ("reduce", "pair"):
        rows, ranks = found.filter(pl.col("name") == name), watched.ranks.filter(pl.col("name") == name)
        last = rows.group_by("rank").agg(pl.col("iteration", "at_ps").max()).sort("rank")
        assert last["iteration"].to_list() == ranks["iterations"].to_list()
        assert last["at_ps"].to_list() == ranks["last_mark_ps"].to_list()
        first = rows.filter(pl.col("iteration") == 1).sort("rank")
        assert first["at_ps"].to_list() == ranks["first_mark_ps"].to_list()
        assert first["time_s"].null_count() == first.height
    counts = distribution(found)
    assert set(counts["name"]) == {"reduce", "pair"}
    assert counts["count"].sum() == found["time_s"].count() == found.height - 6, "all but the first of six ranks"


def test_iterations_of_two_sizes_take_two_times(watched: Run) -> None:
    assert watched.iterations is not None
    known = watched.iterations.filter(
        (pl.col("name") == "pair") & pl.col("time_s").is_not_null() & (pl.col("rank") == 0)
    )
    small = known.filter(pl.col("iteration") % 2 == 1)["time_s"].to_numpy()
    large = known.filter(pl.col("iteration") % 2 == 0)["time_s"].to_numpy()
    # 64 KiB take 5.2 us a way at 100 Gb/s, and 1 KiB 0.08 us.
    assert large.min() > small.max() + 2 * 5.1e-6


def test_on_demand_tables_are_stored_asked_and_drawn(watched: Run) -> None:
    assert watched.folder is not None
    loaded = fairlane.load(watched.folder)
    assert set(loaded.tables()) == set(watched.tables()) >= {"samples", "iterations"}
    found = query(watched.folder, "select role, sum(bytes) as bytes from samples group by role order by role")
    assert found["role"].to_list() == ["global", "host", "local"]
    assert query(watched.folder, "select count(*) from iterations").item() > 40
    for name in ("timeline.png", "iterations.png"):
        assert_drawn(watched.folder / name)


def test_the_summary_tells_quantiles(watched: Run) -> None:
    text = printed(watched)
    assert "Time per iteration, over all ranks" in text
    assert "99%" in text


def test_wrong_wishes_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"observe\.iterations\[0\].*reduce"):
        Scenario(fabric=FABRIC, jobs=JOBS, observe={"iterations": ["redeuce"]})
    with pytest.raises(ScenarioError, match="only with counters = true"):
        Scenario(fabric=FABRIC, jobs=JOBS, observe={"interval": "1 us", "counters": False})
    with pytest.raises(ScenarioError, match="interval"):
        Scenario(fabric=FABRIC, jobs=JOBS, observe={"interval": 0})
