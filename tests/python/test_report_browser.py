"""Report pages in a browser: no errors, and hover, selection, slider, keys and export do what they say."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from browsers import Browser, browser
from fairlane import Run
from fairlane.report import write_report
from fairlane.report.page import has_echarts
from report_runs import EVIL, evil, simulated
from waiting import wait_for

pytestmark = pytest.mark.skipif(not has_echarts(), reason="make build has not fetched ECharts")
AXE = Path(__file__).parents[2] / "target" / "browser" / "axe.min.js"
PIXEL = """((link) => {{
  const chart = echarts.getInstanceByDom(document.getElementById("fabric-plot"));
  const [x1, y1, x2, y2] = m.segments.subarray(4 * link, 4 * link + 4);
  return chart.convertToPixel({{ xAxisIndex: 0, yAxisIndex: 0 }}, [x1 + (x2 - x1) * 0.4, y1 + (y2 - y1) * 0.4]);
}})({link})"""
"""Where a link is drawn, 0.4 of the way from its begin, in pixels of the plot."""
DRAWN = """echarts.getInstanceByDom(document.getElementById("fabric-plot")).getModel().getSeries()
    .filter((one) => one.id.startsWith("links-")).reduce((sum, one) => sum + one.getData().count(), 0)"""
"""How many links are drawn."""
ZOOM = (
    "echarts.getInstanceByDom(document.getElementById('fabric-plot')).getOption().dataZoom.map((z) => z.end - z.start)"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run, with a name that tries to break out of the page."""
    return evil(simulated(tmp_path_factory.mktemp("runs") / "small"))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests; its downloads are in the folder ``downloads``."""
    with browser(tmp_path_factory.mktemp("downloads")) as started:
        yield started


@pytest.fixture(scope="module")
def file(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the run, compared with itself."""
    return write_report(run, tmp_path_factory.mktemp("pages") / "page.html", run, compare_name="itself")


@pytest.fixture
def page(chromium: Browser, file: Path) -> Iterator[Browser]:
    """The page, just opened; the test fails if anything was written to the console."""
    chromium.resize(1400, 1000)
    chromium.open(file)
    yield chromium
    assert chromium.errors() == []


def test_the_page_shows_the_run_and_names_are_text(page: Browser, run: Run) -> None:
    assert page.find("h1").text == "small"
    assert page.driver.title == "small – fairlane"
    assert run.meta.digest in page.find("footer").text
    assert EVIL in page.texts("#victim option")
    figures = {"comparison", "matrix", "slowdown", "latency", "histogram", "iterations", "calls", "power"}
    assert {one.get_attribute("id") for one in page.driver.find_elements("css selector", "#figures section")} == figures
    assert all(page.texts("#figures .sentence"))


def test_hovering_and_clicking_a_link_shows_its_name_and_lanes(page: Browser, run: Run) -> None:
    up = run.ports.filter(role="up").row(0, named=True)
    x, y = page.module("run/geometry", PIXEL.format(link=up["link"]))
    page.move_to("#fabric-plot", x, y)
    assert page.find("#fabric-tip").text.startswith(up["link_name"])
    assert page.find("#fabric-tip").text.endswith("%")
    page.move_to("#fabric-plot", x, y, click=True)
    assert page.find("#details h3").text == up["link_name"]
    assert "Virtual lanes" in page.texts("#details h4")
    page.press("#fabric-plot", "\ue00c")  # Escape
    assert page.texts("#details h3") == []


def test_finding_a_host_shows_its_jobs(page: Browser, run: Run) -> None:
    rank = run.ranks.filter(name="total").row(0, named=True)
    page.choose("#find", rank["host_name"])
    assert page.find("#details h3").text == rank["host_name"]
    assert "total" in page.texts("#details p button")


def test_choosing_victim_and_aggressor_colours_the_links_where_that_happens(page: Browser, run: Run) -> None:
    assert run.port_interference is not None
    names = run.jobs["name"].to_list()
    cells = run.port_interference.filter(victim="total", aggressor=names[1])
    expected = {row["link"]: row["queueing_s"] for row in cells.iter_rows(named=True) if row["queueing_s"] > 0}
    assert expected
    page.choose("#victim", str(names.index("total")))
    page.choose("#aggressor", "1")
    values = page.module("run/fabric", "Array.from(m.currentValues())")
    assert {link for link, value in enumerate(values) if value > 0} == set(expected)
    assert sum(values) == pytest.approx(sum(expected.values()), rel=1e-5)
    assert page.find("#metric").get_attribute("value") == "jobs"
    assert page.run(f"return {DRAWN}") == len(values)
    top = page.find("#top-links tbody button").text
    assert top == cells.sort("queueing_ps")["link_name"][-1]
    # The victim alone: delays by all others, not by itself.
    page.choose("#aggressor", "")
    others = run.port_interference.filter(victim="total").remove(aggressor="total")["queueing_s"].sum()
    assert sum(page.module("run/fabric", "Array.from(m.currentValues())")) == pytest.approx(others, rel=1e-5)


def test_a_click_on_a_cell_of_the_matrix_chooses_its_jobs(page: Browser) -> None:
    page.choose("#matrix-order", "scenario")
    script = "return echarts.getInstanceByDom(document.getElementById('matrix-plot')).convertToPixel('grid', [1, 2])"
    x, y = page.run(script)  # column 1, row 2
    page.move_to("#matrix-plot", x, y, click=True)
    assert page.module("run/state", "[m.chosen.victim, m.chosen.aggressor, m.chosen.metric]") == [[2], [1], "jobs"]
    assert page.find("#victim").get_attribute("value") == "2"
    # With a filter, rows and columns are jobs of that name and those that they have to do with.
    page.choose("#matrix-filter", "total")
    labels = page.run(
        "return echarts.getInstanceByDom(document.getElementById('matrix-plot')).getOption().yAxis[0].data"
    )
    assert "total" in labels


def test_the_slider_shows_an_interval_and_plays(page: Browser, run: Run) -> None:
    assert run.samples is not None
    first = run.samples.sort("from_ps")["from_ps"].unique(maintain_order=True)[2]
    page.choose("#time", "3")
    assert page.find("#time-label").text == "100 µs to 150 µs"
    values = page.module("run/fabric", "Array.from(m.currentValues())")
    rows = run.samples.filter(from_ps=first).unique("link")
    largest = run.samples["port_active_share"].max()
    assert isinstance(largest, float)
    for row in rows.iter_rows(named=True):
        assert values[row["link"]] == pytest.approx(row["port_active_share"], abs=largest / 255)
    assert page.run(f"return {DRAWN}") == len(values)
    page.choose("#time", "0")
    assert page.find("#time-label").text == "whole run"
    page.find("#play").click()
    page.wait("document.getElementById('time').value === '8'")
    page.wait("document.getElementById('play').textContent === 'Play'")
    page.choose("#metric", "jobs")
    assert not page.find("#time").is_enabled()


def test_the_difference_of_a_run_to_itself_is_nothing(page: Browser) -> None:
    page.find("#difference").click()
    assert page.module("run/fabric", "Array.from(m.currentValues()).every((value) => value === 0)")
    assert "No link has any." in page.find("#top-links").text


def test_keys_zoom_and_move_the_fabric(page: Browser) -> None:
    page.press("#fabric-plot", "+")
    assert max(page.run(f"return {ZOOM}")) < 45
    page.press("#fabric-plot", "\ue012")  # arrow to the left
    page.press("#fabric-plot", "0")
    assert page.run(f"return {ZOOM}") == [50, 50]


def test_the_wheel_zooms_about_the_pointer_and_dragging_moves(page: Browser, run: Run) -> None:
    up = run.ports.filter(role="up")["link"][0]
    x, y = page.module("run/geometry", PIXEL.format(link=up))
    page.wheel("#fabric-plot", x, y, -300)
    page.wait(f"{ZOOM}[0] < 45")
    assert page.module("run/geometry", PIXEL.format(link=up)) == pytest.approx([x, y], abs=2)
    page.drag("#fabric-plot", (x, y), (x + 60, y - 40))
    page.wait("document.querySelector('#fabric-plot canvas').style.transform === ''")
    assert page.module("run/geometry", PIXEL.format(link=up)) == pytest.approx([x + 60, y - 40], abs=2)


def test_themes_change_the_colours(page: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page.choose("#theme", "dark")
    dark = page.run(f"return {colour}")
    page.choose("#theme", "light")
    assert page.run(f"return {colour}") != dark
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    page.choose("#theme", "auto")
    assert page.run(f"return {colour}") == dark
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_figures_are_stored_as_csv_svg_and_png(page: Browser, run: Run, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    for kind in ("CSV", "SVG", "PNG"):
        page.run("arguments[0].click()", page.find(f"#slowdown [aria-label$='{kind}']"))
    files = {kind: tmp_path / f"slowdown.{kind}" for kind in ("csv", "svg", "png")}
    wait_for(lambda: all(file.is_file() for file in files.values()), files)
    rows = list(csv.DictReader(files["csv"].read_text("utf-8").splitlines()))
    w = dict(run.jobs.drop_nulls("w").select("name", "w").iter_rows())
    assert {row["job"]: float(row["w"]) for row in rows} == pytest.approx(w)
    assert files["svg"].read_text("utf-8").startswith("<svg")
    assert files["png"].read_bytes().startswith(b"\x89PNG")


def test_figures_are_printed_as_svg(page: Browser) -> None:
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelectorAll('.printed svg').length") == 9
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.run("return document.querySelectorAll('.printed').length") == 0


def test_it_fits_a_phone(page: Browser) -> None:
    page.resize(390, 844)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.resize(1400, 1000)


@pytest.mark.skipif(not AXE.is_file(), reason="make build has not fetched axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_accessible(page: Browser, theme: str) -> None:
    page.choose("#theme", theme)
    page.run(AXE.read_text("utf-8"))
    script = "axe.run(document).then((found) => arguments[0](found.violations))"
    violations = page.driver.execute_async_script(script)
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in violations
        if one["impact"] in {"serious", "critical"}
    ]
    assert serious == []
