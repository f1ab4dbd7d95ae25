"""Report pages: what is in them agrees with the tables; names cannot break out; wrong input; size."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tarfile
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane.report.page
import fairlane.report.run.links
from fairlane import Run
from fairlane.cli.main import execute
from fairlane.engine.tables import PS
from fairlane.fabric import Fabric
from fairlane.plot.fabric.places import places_of
from fairlane.report import data_of, write_report
from fairlane.report.packing import pack, unpack
from fairlane.report.run.jobs import order_of
from fairlane.results import ResultsError
from fairlane.results.views import by_link
from report_runs import EVIL, SCENARIO, evil, simulated

NO_ECHARTS = not fairlane.report.page.has_echarts()
needs_echarts = pytest.mark.skipif(NO_ECHARTS, reason="make build has not fetched ECharts")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run in a folder."""
    return simulated(tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture(scope="module")
def data(run: Run) -> dict[str, Any]:
    """What its page contains."""
    return data_of(run)


def test_packed_arrays_are_read_back() -> None:
    cases: list[tuple[str, list[float]]]
    cases = [("f32", [0.5, -2]), ("u8", [0, 255]), ("u16", [65535]), ("u32", [2**32 - 1]), ("i32", [-1])]
    for kind, values in cases:
        assert unpack(pack(values, kind)).tolist() == values


def test_delay_by_link_and_pair_sums_to_the_tables(run: Run, data: dict[str, Any]) -> None:
    assert run.port_interference is not None
    cells = data["by_jobs"]
    assert cells["kept"] == 1
    delay = unpack(cells["queueing_s"])
    assert delay.sum() == pytest.approx(run.port_interference["queueing_s"].sum(), rel=1e-5)
    names = run.jobs["name"].to_list()
    for row in run.port_interference.filter(pl.col("queueing_ps") > 0).sample(5, seed=1).iter_rows(named=True):
        at = (
            (unpack(cells["link"]) == row["link"])
            & (unpack(cells["victim"]) == names.index(row["victim"]))
            & (unpack(cells["aggressor"]) == names.index(row["aggressor"]))
        )
        assert delay[at].tolist() == pytest.approx([row["queueing_s"]], rel=1e-6)
    assert unpack(data["matrix"]["queueing_s"]).sum() == pytest.approx(run.interference["queueing_s"].sum(), rel=1e-5)


def test_links_and_lanes_have_what_ports_counted(run: Run, data: dict[str, Any]) -> None:
    whole, found = by_link(run.ports), data["measured"]
    for name, column in {"active": "port_active_share", "stalled": "port_stalled_share", "bytes": "bytes"}.items():
        assert unpack(found[name]).tolist() == pytest.approx(whole[column].to_list(), rel=1e-6)
    assert unpack(found["lanes"]["bytes"]).sum() == pytest.approx(run.ports["bytes"].sum(), rel=1e-5)
    # The queue is the queueing delay divided by the time (Little's law).
    delay = unpack(found["queue"]).sum() * run.meta.simulated_s
    assert delay == pytest.approx(int(run.ports["queueing_ps"].sum()) * PS, rel=1e-4)


def test_links_join_the_vertices_that_they_are_named_after(run: Run, data: dict[str, Any]) -> None:
    fabric = data["fabric"]
    names = fabric["hosts"] + fabric["switches"]
    ends = {side: unpack(fabric["links"][side]) for side in ("from", "to")}
    for row in by_link(run.ports).iter_rows(named=True):
        assert names[ends["from"][row["link"]]] == row["from_name"]
        assert names[ends["to"][row["link"]]] == row["to_name"]
        assert unpack(fabric["links"]["from_port"])[row["link"]] == row["from_port"]


@pytest.mark.parametrize("most", [400, 3])
def test_samples_are_those_of_the_table(run: Run, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(fairlane.report.run.links, "MOST_INTERVALS", most)
    assert run.samples is not None
    links = by_link(run.ports).height
    found = data_of(run)["samples"]
    length = np.array(found["to_s"]) - np.array(found["from_s"])
    assert len(length) == (8 if most == 400 else 3)
    sample = run.samples.group_by("from_ps", "link").agg(
        pl.col("to_ps").first(), pl.col("port_active_share").first(), pl.col("mean_queue").sum()
    )
    for name, column in {"active": "port_active_share", "queue": "mean_queue"}.items():
        values = found[name]["max"] * (unpack(found[name]["roots"]).reshape(-1, links) / 255) ** 2
        # Rounding of a root by half a step moves its square by at most 1/255 of the largest.
        tolerance = length.sum() * found[name]["max"] / 255
        for link in range(links):
            rows = sample.filter(link=link)
            exact = (rows[column] * (rows["to_ps"] - rows["from_ps"]) * PS).sum()
            assert (values[:, link] * length).sum() == pytest.approx(exact, abs=tolerance)


def test_latencies_are_counted_once(run: Run, data: dict[str, Any]) -> None:
    assert run.latency is not None
    messages = run.latency.filter(of="message")
    found = data["latency"]
    assert unpack(found["histogram"]["count"]).sum() == messages["count"].sum()
    bounds, bucket = found["histogram"]["bounds_s"], unpack(found["histogram"]["bucket"])
    assert bucket.min() == 0
    assert bounds[0] <= messages["min_ps"].min() * PS * 1.0001  # type: ignore[operator]
    assert messages["max_ps"].max() * PS <= bounds[int(bucket.max()) + 1] * 1.0001  # type: ignore[operator]
    assert found["quantiles"]["p99"] == pytest.approx((messages["p99_ps"] * PS).to_list(), rel=1e-4)


def test_jobs_calls_iterations_and_power(run: Run, data: dict[str, Any]) -> None:
    time = sum(data["jobs"]["rank_time_s"])
    calls = sum(np.dot(shares, data["jobs"]["rank_time_s"]) for shares in data["calls"]["calls"].values())
    assert calls == pytest.approx(run.calls["time_s"].sum(), rel=1e-9)
    assert 0 < calls < time
    assert data["jobs"]["hosts"][0] == sorted(set(run.ranks.filter(job=0)["host"]))
    for job, found in enumerate(data["iterations"]):
        rows = run.completions.filter(job=job)
        spent = np.dot(found["time_s"], np.diff([1, *found["iteration"]]))
        assert spent == pytest.approx((rows["at_ps"].to_list()[-1] - rows["at_ps"][0]) * PS, rel=1e-3)
    assert run.power is not None
    assert np.dot(data["power"]["mean_w"], data["power"]["sockets"]) == pytest.approx(run.power["mean_w"].sum())


def test_every_figure_has_a_sentence_with_numbers(data: dict[str, Any]) -> None:
    figures = {"fabric", "matrix", "slowdown", "latency", "histogram", "iterations", "calls", "power"}
    assert set(data["sentences"]) == figures
    assert all(words.endswith(".") for words in data["sentences"].values())
    assert sum(bool(re.search(r"\d", words)) for words in data["sentences"].values()) >= 7


def test_similar_jobs_are_neighbours_in_the_matrix() -> None:
    member = np.arange(8) % 2  # jobs of odd and of even numbers delay each other
    delays = (member[:, None] == member[None, :]).astype(float) - np.eye(8)
    order = [int(member[job]) for job in order_of(delays)]
    assert order in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)
    assert order_of(np.zeros((4, 4))) == [0, 1, 2, 3]


FABRICS = [
    ("tree", {"topology": "fat_tree", "params": {"hosts": 64, "levels": 3, "radix": 8}, "routing": "d_mod_k"}),
    ("groups", {"topology": "dragonfly", "params": {"groups": 5, "switches_per_group": 4, "hosts_per_switch": 2,
                                                    "global_links": 1}, "routing": "minimal"}),
    ("groups", {"topology": "cascade", "params": {"groups": 2}, "routing": "minimal"}),
    ("grid", {"topology": "torus", "params": {"sides": [4, 3, 2], "hosts_per_switch": 2},
              "routing": "dimension_order"}),
    ("ring", {"topology": "slim_fly", "params": {"q": 5}, "routing": "minimal"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), FABRICS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_vertex_has_a_place_of_its_own(kind: str, spec: dict[str, Any]) -> None:
    fabric = Fabric.build({**spec, "params": {"bandwidth": 10**11, **spec["params"]}})
    places = places_of(fabric)
    assert places.kind == kind
    every = np.concatenate([places.switches, places.hosts])
    assert every.shape == (fabric.switches + fabric.hosts, 2)
    assert np.isfinite(every).all()
    assert len(np.unique(every.round(9), axis=0)) == len(every)


def test_a_run_compared_with_itself_has_no_differences(run: Run) -> None:
    data = data_of(run, run)
    found = data["compare"]
    assert found["measured"] == data["measured"]
    assert found["by_jobs"] == data["by_jobs"]
    assert found["matrix"]["queueing_s"] == data["matrix"]["queueing_s"]
    assert [row["change"] for row in found["jobs"]] == [0] * len(found["jobs"])
    assert found["links_apart"] == 0


def test_links_and_jobs_of_another_run_are_matched_by_name(run: Run) -> None:
    assert run.port_interference is not None
    links = by_link(run.ports).height
    # The same run with links numbered from the other end, and without one of the jobs.
    turned = (links - 1 - pl.col("link")).cast(pl.UInt32)
    last = run.jobs["name"][-1]
    other = replace(
        run,
        jobs=run.jobs[:-1],
        ports=run.ports.with_columns(link=turned),
        port_interference=run.port_interference.with_columns(link=turned),
    )
    data = data_of(run, other)
    found = data["compare"]
    assert found["measured"]["active"] == data["measured"]["active"]
    assert unpack(found["by_jobs"]["link"]).tolist() == unpack(data["by_jobs"]["link"]).tolist()
    assert found["jobs_apart"] == [last]


@needs_echarts
def test_names_cannot_break_out_of_the_page(run: Run, tmp_path: Path) -> None:
    page = write_report(evil(run), tmp_path / "page.html").read_text("utf-8")
    # Three scripts and the data: no name opened or closed an element.
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 4
    assert "<img" not in page.partition('id="data">')[2]
    text = page.partition('id="data">')[2].partition("</script>")[0]
    assert EVIL in json.loads(text)["jobs"]["name"]
    addresses = set(re.findall(r"""(?:src|href)=["']?(\w+:[^"' >]*)""", page.partition("<body>")[2]))
    assert addresses == set(), "the page loads nothing"


@needs_echarts
def test_the_command_writes_the_page(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.folder is not None
    assert execute(["report", str(run.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    page = run.folder / "report.html"
    assert told == {"page": str(page), "bytes": page.stat().st_size}
    assert run.meta.digest in page.read_text("utf-8")
    assert execute(["report", str(run.folder), "-o", str(tmp_path / "x.html"), "--compare", str(run.folder), "-q"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'x.html'}\n"


def test_wrong_input_is_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run.folder)
    small = SCENARIO.replace("radix = 8", "radix = 16").replace("hosts = 16", "hosts = 32")
    other = simulated(tmp_path / "other", small.replace('name = "pairs"', 'name = "p"'))
    jobless = SCENARIO.replace('name = "pairs"', 'name = "p"').replace('name = "total"', 'name = "t"')
    renamed = simulated(tmp_path / "renamed", jobless)
    wrong = {
        (str(tmp_path / "none"),): "none: ",
        (folder, "--compare", str(tmp_path / "none")): "none: ",
        (folder, "--compare", str(renamed.folder)): '--compare = "',
        (folder, "--out", str(tmp_path / "no" / "x.html")): "x.html: cannot be written: No such file or directory",
    }
    for arguments, words in wrong.items():
        if NO_ECHARTS and "--out" in arguments:
            continue
        assert execute(["report", *arguments]) == 2
        assert words in capsys.readouterr().err
    ports = other.ports.with_columns(link_name=pl.lit("x ") + pl.col("link_name"))
    with pytest.raises(
        fairlane.ScenarioError, match=r"--compare = .* no link of the run: the fabrics differ; allowed: "
    ):
        data_of(run, replace(other, ports=ports))


def test_a_build_without_the_library_says_so(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairlane.report.page, "ECHARTS", tmp_path / "echarts.min.js")
    with pytest.raises(ResultsError, match=r"echarts.min.js: is missing.*make build"):
        write_report(run, tmp_path / "page.html")


@needs_echarts
def test_a_thousand_hosts_and_a_hundred_jobs_fit_into_five_megabytes(tmp_path: Path) -> None:
    text = """
    duration = "10 us"
    [fabric]
    topology = "fat_tree"
    hosts = 1024
    levels = 3
    radix = 16
    [[jobs]]
    name = "job"
    count = 100
    ranks = 10
    workload = { name = "flood_pairs", compute = "1 us" }
    """
    run = simulated(tmp_path / "large", text, isolated=False)
    # Whatever the simulation gives, the tables are as full as they can be, of numbers that cannot be compressed.
    random = np.random.default_rng(1)
    links = by_link(run.ports).select("link", "class", "role", "link_name")
    jobs = run.jobs["name"].to_list()
    rows = 2 * fairlane.report.run.links.MOST_CELLS
    pairs = random.integers(0, len(jobs), (2, rows))
    at = random.integers(0, links.height, rows)
    cells = pl.DataFrame(
        {
            "link": pl.Series(at, dtype=pl.UInt32),
            "victim": [jobs[job] for job in pairs[0]],
            "aggressor": [jobs[job] for job in pairs[1]],
            "queueing_ps": pl.Series(random.integers(1, 10**12, rows), dtype=pl.UInt64),
        }
    ).with_columns(queueing_s=pl.col("queueing_ps") * PS)
    times = pl.DataFrame({"from_ps": np.arange(200, dtype=np.uint64) * 50_000}).with_columns(
        to_ps=pl.col("from_ps") + 50_000
    )
    samples = times.join(links, how="cross")
    samples = samples.with_columns(
        pl.Series(name, random.random(samples.height))
        for name in ("port_active_share", "port_stalled_share", "mean_queue")
    )
    page = write_report(replace(run, port_interference=cells, samples=samples), tmp_path / "large.html")
    assert page.stat().st_size < 5_000_000


@pytest.fixture
def fetching() -> ModuleType:
    """The script that fetches the browser's code."""
    path = Path(__file__).parents[2] / "tools" / "fetch_browser_code.py"
    spec = spec_from_file_location("fetch_browser_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_only_packages_with_the_locked_hash_are_taken(
    fetching: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/a.js")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"true"))
    registry = tmp_path / "registry"
    (registry / "a" / "-").mkdir(parents=True)
    (registry / "a" / "-" / "a-1.0.0.tgz").write_bytes(written.getvalue())
    digest = fetching.base64.b64encode(fetching.hashlib.sha512(written.getvalue()).digest()).decode()
    lock = tmp_path / "package-lock.json"
    target = tmp_path / "vendor" / "a.js"
    monkeypatch.setattr(fetching, "LOCK", lock)
    monkeypatch.setattr(fetching, "ROOT", tmp_path)
    monkeypatch.setattr(fetching, "FILES", {"a": {"package/a.js": target}})
    monkeypatch.setenv("npm_config_registry", registry.as_uri())
    for integrity, code in {"sha512-AAAA": 1, f"sha512-{digest}": 0}.items():
        lock.write_text(
            json.dumps({"packages": {"node_modules/a": {"version": "1.0.0", "integrity": integrity}}}), "utf-8"
        )
        assert fetching.main() == code
        assert target.is_file() == (code == 0)
    assert target.read_bytes() == b"true"
    assert "its hash is not that of package-lock.json" in capsys.readouterr().err
    target.unlink()
    monkeypatch.setenv("npm_config_registry", (tmp_path / "nowhere").as_uri())
    assert fetching.main() == 0
    assert "warning: " in capsys.readouterr().err
    os.environ.pop("npm_config_registry")
    assert fetching.url_of("@b/c", "2.0.0") == "https://registry.npmjs.org/@b/c/-/c-2.0.0.tgz"
