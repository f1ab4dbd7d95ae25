"""Pages of studies, sweeps, schedules, reproductions and maps in a browser: controls and export do as they say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from browsers import Browser, browser
from fairlane.report import write_report
from fairlane.report.page import has_echarts
from fairlane.wording import percent, seconds, significant
from report_kinds import map_results, reproduction, schedule
from report_runs import EVIL

pytestmark = pytest.mark.skipif(not has_echarts(), reason="make build has not fetched ECharts")
AXE = Path(__file__).parents[2] / "target" / "browser" / "axe.min.js"
CARDS = {
    "schedule": {"gantt", "allocators", "load", "wait", "bounded_slowdown", "sizes"},
    "reproduction": {"claims", "numbers", *(f"figure-{at}" for at in range(6)), "cells"},
    "robustness": {"shares", "indices", "levels", "points", "parameters"},
}
"""The cards of each page; that of a reproduction with a map has those of the map, too."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests."""
    with browser(tmp_path_factory.mktemp("downloads")) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A page of each kind, compared with another result or itself."""
    folder = tmp_path_factory.mktemp("pages")
    early = schedule()
    return {
        "schedule": write_report(early, folder / "schedule.html", schedule(late=50), compare_name="late"),
        "reproduction": write_report(
            reproduction(), folder / "reproduction.html", reproduction(holds=False), compare_name="other"
        ),
        "robustness": write_report(map_results(), folder / "map.html", map_results(), compare_name="itself"),
    }


@pytest.fixture
def opened(chromium: Browser, pages: Mapping[str, Path], request: pytest.FixtureRequest) -> Iterator[Browser]:
    """The page of the kind that the test asks for; the test fails if anything was written to the console."""
    chromium.resize(1400, 1000)
    chromium.open(pages[request.param])
    yield chromium
    assert chromium.errors() == []


def of(kind: str) -> pytest.MarkDecorator:
    """The test's page is one of this kind."""
    return pytest.mark.parametrize("opened", [kind], indirect=True)


every_kind = pytest.mark.parametrize("opened", list(CARDS), indirect=True)
with_cards = pytest.mark.parametrize(("opened", "kind"), [(kind, kind) for kind in CARDS], indirect=["opened"])
CHART = "echarts.getInstanceByDom(document.getElementById('{}-plot'))"


@with_cards
def test_every_card_has_a_title_a_sentence_and_an_export(opened: Browser, kind: str) -> None:
    cards = {one.get_attribute("id"): one for one in opened.driver.find_elements("css selector", "#figures section")}
    wanted = CARDS[kind] | (CARDS["robustness"] if kind == "reproduction" else set())
    assert set(cards) == wanted
    for name, card in cards.items():
        assert card.find_element("css selector", "h2").text, name
        assert card.find_element("css selector", ".sentence").text, name
        assert card.find_elements("css selector", f".export button[aria-label$='{'CSV'}']"), name
    assert opened.driver.title.endswith("fairlane")
    assert opened.find("footer dd").text


@every_kind
def test_it_fits_a_phone_and_prints(opened: Browser) -> None:
    opened.resize(390, 844)
    assert opened.run("return document.documentElement.scrollWidth") <= 390
    opened.run("window.dispatchEvent(new Event('beforeprint'))")
    charts = opened.run("return document.querySelectorAll('.plot').length")
    assert opened.run("return document.querySelectorAll('.printed svg').length") == charts
    opened.run("window.dispatchEvent(new Event('afterprint'))")
    opened.resize(1400, 1000)


@pytest.mark.skipif(not AXE.is_file(), reason="make build has not fetched axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@every_kind
def test_it_is_accessible(opened: Browser, theme: str) -> None:
    opened.choose("#theme", theme)
    opened.run(AXE.read_text("utf-8"))
    found = opened.driver.execute_async_script("axe.run(document).then((found) => arguments[0](found.violations))")
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in {"serious", "critical"}]
    assert serious == []


@of("schedule")
def test_a_job_is_found_and_stands_out_under_every_allocator(opened: Browser) -> None:
    opened.choose("#gantt-job", "4")
    assert opened.find("#gantt .details h3").text == "Job 4: 16 hosts, hybrid"
    assert opened.texts("#gantt .details td:first-child") == ["linear", EVIL]
    outlined = f"""return {CHART.format("gantt")}.getModel().getSeries().filter((one) => one.id.startsWith("chosen-"))
        .map((one) => one.getData().count())"""
    assert opened.run(outlined) == [1, 1]
    opened.choose("#gantt-job", "99")
    assert "No job has the number 99." in opened.find("#gantt .details").text


@of("schedule")
def test_hovering_over_a_bar_shows_its_job_and_a_click_chooses_it(opened: Browser) -> None:
    first = "const of = m.data.jobs.by_allocator[0]; return [(of.start[0] + of.end[0]) / 7200, of.bar_low[0] + 0.5]"
    place = opened.module("data", f"(() => {{ {first} }})()")
    x, y = opened.run(f"return {CHART.format('gantt')}.convertToPixel({{ gridIndex: 0 }}, {place})")
    opened.move_to("#gantt-plot", x, y)
    assert opened.find("#gantt .tip").text.startswith("job 1, linear")
    opened.move_to("#gantt-plot", x, y, click=True)
    assert opened.find("#gantt .details h3").text.startswith("Job 1:")


@of("reproduction")
def test_a_click_on_a_claim_shows_its_numbers(opened: Browser) -> None:
    assert opened.texts("#claims .mark") == ["✓", "✗", "–", "–"]
    opened.find("#claims button.plain").click()
    assert opened.find("#numbers-claim").get_attribute("value") == "a.throughput"
    names = opened.run(f"return {CHART.format('numbers')}.getOption().yAxis[0].data")
    assert names == ["a.throughput: holds", "throughput …", EVIL]
    opened.choose("#claims-verdict", "not run")
    assert len(opened.texts("#claims tbody tr")) == 1


@of("reproduction")
def test_tables_are_sorted_and_filtered(opened: Browser) -> None:
    opened.find("#cells th:nth-child(3) button").click()
    assert opened.texts("#cells tbody td:first-child") == ["second", "first"]
    assert opened.find("#cells th:nth-child(3)").get_attribute("aria-sort") == "descending"
    opened.choose("#cells-filter", "first")
    assert opened.texts("#cells tbody td:first-child") == ["first"]


@of("robustness")
def test_a_clause_of_a_map_is_chosen_in_all_figures(opened: Browser) -> None:
    assert "holds at 50.0% of the points; decided by buffer" in opened.find("#levels-sentence").text
    opened.choose("#points-clause", "1")
    assert opened.find("#levels-clause").get_attribute("value") == "1"
    assert "no parameter decides it beyond chance" in opened.find("#levels-sentence").text


def test_numbers_of_pages_are_those_of_the_terminal(chromium: Browser, pages: Mapping[str, Path]) -> None:
    """``format.js`` and ``fairlane.wording`` write the same."""
    chromium.open(pages["schedule"])
    rng = np.random.default_rng(3)
    values = [0.0, 1.0, -1.0, *(rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-5, 5, 400)).tolist()]
    script = """
        const done = arguments[arguments.length - 1];
        import("report/format").then(({ seconds, percent, number }) => done(arguments[0].map((value) =>
            [seconds(value), percent(value), percent(value, true), number(value)])));
    """
    found = chromium.driver.execute_async_script(script, values)
    for value, (time_, share, change, plain) in zip(values, found, strict=True):
        assert time_ == seconds(value)
        assert share == percent(value), value
        assert change == percent(value, signed=True), value
        assert plain == re.sub("^-", "−", significant(value)), value
