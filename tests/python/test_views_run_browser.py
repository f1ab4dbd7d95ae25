"""The page of a run in a browser: hover, selection, slider, keys and export of its fabric and its matrix."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from browsers import Browser
from fairlane import Run
from fairlane.views.report import write_report
from possible import no_browser
from report_runs import EVIL, evil, simulated
from waiting import wait_for

FABRIC, MATRIX = "fairlane.parts.fabric", "fairlane.parts.matrix"
pytestmark = pytest.mark.live("views", absent=no_browser)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run, with a name that tries to break out of the page."""
    return evil(simulated(tmp_path_factory.mktemp("runs") / "small"))


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


def values(page: Browser) -> list[float]:
    found: list[float] = page.run(f"return {FABRIC}.values()")
    return found


def test_the_page_shows_the_run_and_names_are_text(page: Browser, run: Run) -> None:
    assert page.find("h1").text == "small"
    assert page.driver.title == "small – fairlane"
    assert run.meta.digest in page.find("footer").text
    assert EVIL in page.texts("#victim option")


def test_hovering_and_clicking_a_link_shows_its_name_and_lanes(page: Browser, run: Run) -> None:
    up = run.ports.filter(role="up").row(0, named=True)
    place = f"return {FABRIC}.pixelOf({up['link']}, 0.4)"
    x, y = page.run(place)
    page.wheel("#fabric-plot", x, y, -900)  # so that cables side by side are some pixels apart
    page.wait(f"{FABRIC}.zoom() > 2")
    x, y = page.run(place)
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
    assert {link for link, value in enumerate(values(page)) if value > 0} == set(expected)
    assert sum(values(page)) == pytest.approx(sum(expected.values()), rel=1e-5)
    assert page.find("#metric").get_attribute("value") == "jobs"
    top = page.find("#top-links tbody tr")
    assert top.find_element("css selector", "button").text == cells.sort("queueing_ps")["link_name"][-1]
    # The victim alone: delays by all others, not by itself.
    page.choose("#aggressor", "")
    others = run.port_interference.filter(victim="total").remove(aggressor="total")["queueing_s"].sum()
    assert sum(values(page)) == pytest.approx(others, rel=1e-5)


def test_charts_show_what_is_chosen_in_the_fabric_and_choose_there(page: Browser, run: Run) -> None:
    names = run.jobs["name"].to_list()
    opacity = (
        "[...document.querySelectorAll('#comparison .mark-rect path')].map((one) => getComputedStyle(one).opacity)"
    )
    assert set(page.run(f"return {opacity}")) == {"0.5"}, "all are within noise"
    page.choose("#victim", "2")
    page.wait(f"new Set({opacity}).size === 2")
    bars = """const bars = [...document.querySelectorAll('#slowdown .mark-rect path')];
        const box = document.querySelector('#slowdown .chart').getBoundingClientRect();
        const mark = bars.find((one) => one.__data__.datum.job === arguments[0]);
        const { x, y, width, height } = mark.getBoundingClientRect();
        return [x + width / 2 - box.x, y + height / 2 - box.y]"""
    x, y = page.run(bars, names[1])
    page.move_to("#slowdown .chart", x, y, click=True)
    page.wait("document.getElementById('victim').value === '1'")


def test_a_click_on_a_cell_of_the_matrix_chooses_its_jobs(page: Browser) -> None:
    page.choose("#matrix-order", "scenario")
    x, y = page.run(f"return {MATRIX}.pixelOf(1, 2)")
    page.move_to("#matrix-plot", x, y, click=True)
    chosen = [page.find(f"#{name}").get_attribute("value") for name in ("victim", "aggressor", "metric")]
    assert chosen == ["2", "1", "jobs"]
    # With keys, too.
    page.press("#matrix-plot", "\ue013\ue007")  # arrow upwards, Enter
    assert page.find("#victim").get_attribute("value") == "1"
    # With a filter, rows and columns are jobs of that name and those that they have to do with.
    page.choose("#matrix-filter", "total")
    assert "total" in page.run(f"return {MATRIX}.names()")


def test_the_slider_shows_an_interval_and_plays(page: Browser, run: Run) -> None:
    assert run.samples is not None
    first = run.samples.sort("from_ps")["from_ps"].unique(maintain_order=True)[2]
    page.choose("#time", "3")
    assert page.find("#time-label").text == "100 µs to 150 µs"
    largest = run.samples["port_active_share"].max()
    assert isinstance(largest, float)
    shown = values(page)
    for row in run.samples.filter(from_ps=first).unique("link").iter_rows(named=True):
        assert shown[row["link"]] == pytest.approx(row["port_active_share"], abs=largest / 255)
    page.choose("#time", "0")
    assert page.find("#time-label").text == "whole run"
    page.find("#play").click()
    page.wait("document.getElementById('time').value === '8'")
    page.wait("document.getElementById('play').textContent === 'Play'")
    page.choose("#metric", "jobs")
    assert not page.find("#time").is_enabled()


def test_the_difference_of_a_run_to_itself_is_nothing(page: Browser) -> None:
    page.find("#difference").click()
    assert set(values(page)) == {0}
    assert "No link has any." in page.find("#top-links").text


def test_keys_zoom_and_move_the_fabric(page: Browser) -> None:
    page.press("#fabric-plot", "+")
    assert page.run(f"return {FABRIC}.zoom()") == pytest.approx(1.25)
    before = page.run(f"return {FABRIC}.pixelOf(0, 0)")
    page.press("#fabric-plot", "\ue012")  # arrow to the left
    assert page.run(f"return {FABRIC}.pixelOf(0, 0)")[0] > before[0]
    page.press("#fabric-plot", "0")
    assert page.run(f"return {FABRIC}.zoom()") == 1


def test_the_wheel_zooms_about_the_pointer_and_dragging_moves(page: Browser, run: Run) -> None:
    place = f"return {FABRIC}.pixelOf({run.ports.filter(role='up')['link'][0]}, 0.4)"
    x, y = page.run(place)
    page.wheel("#fabric-plot", x, y, -300)
    page.wait(f"{FABRIC}.zoom() > 1.2")
    assert page.run(place) == pytest.approx([x, y], abs=2)
    page.drag("#fabric-plot", (x, y), (x + 60, y - 40))
    assert page.run(place) == pytest.approx([x + 60, y - 40], abs=2)


def are_there(files: Iterable[Path]) -> bool:
    return all(file.is_file() for file in files)


def test_the_fabric_and_the_matrix_are_stored_as_csv_svg_and_png(page: Browser, run: Run, downloads: Path) -> None:
    for name, rows in (("fabric", run.ports["link"].n_unique()), ("matrix", run.jobs.height**2)):
        files = {kind: downloads / f"{name}.{kind}" for kind in ("csv", "svg", "png")}
        for kind in files:
            page.run("arguments[0].click()", page.find(f"#{name} [aria-label$='{kind.upper()}']"))
        wait_for(partial(are_there, files.values()), files)
        assert len(list(csv.DictReader(files["csv"].read_text("utf-8").splitlines()))) == rows
        assert files["svg"].read_text("utf-8").count("<path") > 4
        assert files["png"].stat().st_size > 5_000


def test_themes_change_what_is_drawn(page: Browser) -> None:
    pixels = "document.querySelector('#fabric-plot canvas').toDataURL()"
    page.choose("#theme", "light")
    light = page.run(f"return {pixels}")
    page.choose("#theme", "dark")
    assert page.run(f"return {pixels}") != light
