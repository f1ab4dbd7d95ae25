"""Pages of studies in a browser: controls and export do as they say."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from browsers import Browser, browser
from fairlane.report import write_report
from fairlane.report.page import has_echarts
from fairlane.wording import percent, seconds, significant
from report_kinds import CONTROLLED, study
from waiting import wait_for

pytestmark = pytest.mark.skipif(not has_echarts(), reason="make build has not fetched ECharts")
AXE = Path(__file__).parents[2] / "target" / "browser" / "axe.min.js"
CARDS = {
    "study": {"effects", "comparison", "extremes", "replicates", "cells", "sweeps"},
}
"""The cards of each page."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests."""
    with browser(tmp_path_factory.mktemp("downloads")) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A page of each kind, compared with another result or itself."""
    folder = tmp_path_factory.mktemp("pages")
    small = study(folder / "small")
    return {
        "study": write_report(small, folder / "study.html", small, compare_name="itself"),
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
    assert set(cards) == CARDS[kind]
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


@of("study")
def test_rows_and_treatment_of_the_forest_plot_are_chosen(opened: Browser) -> None:
    names = f"return {CHART.format('effects')}.getOption().yAxis[0].data"
    assert sorted(opened.run(names)) == ["pairs-first", "total-first"]
    opened.choose("#effects-level", "job")
    assert sorted(opened.run(names)) == sorted(
        f"{job}, {name}" for job in ("pairs", "total") for name in ("pairs-first", "total-first")
    )
    opened.choose("#effects-run", "1")
    opened.choose("#effects-measure", "w")
    assert set(opened.run(names)) == {"pairs", "total"} or len(opened.run(names)) == 2
    opened.choose("#cells-measure", "w")
    cells = f"return {CHART.format('cells')}.getModel().getSeriesByIndex(0).getData().count()"
    assert opened.run(cells) == 2 * 6  # jobs, points


def test_what_controllers_did_is_shown_by_period(chromium: Browser, tmp_path: Path) -> None:
    small = study(tmp_path / "controlled", CONTROLLED)
    sums = small.periods.group_by("treatment", "point", "period").agg(pl.col("iterations").sum())
    expected = sums.group_by("treatment", "period").agg(pl.col("iterations").mean()).sort("treatment", "period")
    chromium.open(write_report(small, tmp_path / "controlled.html"))
    series = chromium.run(
        f"return {CHART.format('periods')}.getOption().series.map(({{ name, data }}) => [name, data])"
    )
    shown = sorted((name, period, count) for name, points in series for period, count in points)
    assert {name for name, _, _ in shown} >= {"feedback"}
    assert [row[:2] for row in shown] == expected.select("treatment", "period").rows()
    assert [row[2] for row in shown] == pytest.approx(expected["iterations"].to_list(), rel=1e-4)
    assert chromium.errors() == []


@of("study")
def test_figures_of_a_study_are_stored(opened: Browser, tmp_path: Path) -> None:
    opened.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for kind in ("CSV", "SVG", "PNG"):
        opened.run("arguments[0].click()", opened.find(f"#effects [aria-label$='{kind}']"))
    files = {kind: tmp_path / f"effects.{kind}" for kind in ("csv", "svg", "png")}
    wait_for(lambda: all(file.is_file() for file in files.values()), files)
    rows = list(csv.DictReader(files["csv"].read_text("utf-8").splitlines()))
    assert {row["level"] for row in rows} == {"treatment", "workload", "job", "condition"}
    assert files["svg"].read_text("utf-8").startswith("<svg")


def test_numbers_of_pages_are_those_of_the_terminal(chromium: Browser, pages: Mapping[str, Path]) -> None:
    """``format.js`` and ``fairlane.wording`` write the same."""
    chromium.open(pages["study"])
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
