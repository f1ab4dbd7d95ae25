"""Pages of views in a browser: charts are drawn without errors, and sorting, search, choices and export work."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from browsers import Browser
from fairlane.views.kinds import write
from fairlane.views.report import write_report
from possible import no_browser
from report_kinds import EXAMPLES
from report_runs import EVIL
from view_examples import VIEWS
from waiting import wait_for

AXE = Path(__file__).parents[2] / "target" / "browser" / "axe.min.js"
pytestmark = pytest.mark.live("views", absent=no_browser)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A page of each kind, compared with itself, and of views of no folder."""
    folder = tmp_path_factory.mktemp("pages")
    made = {name: example() for name, example in EXAMPLES.items()}
    found = {name: write_report(one, folder / f"{name}.html", one) for name, one in made.items()}
    return found | {name: write(example(), folder / f"{name}.html") for name, example in VIEWS.items()}


@pytest.fixture
def opened(chromium: Browser, pages: Mapping[str, Path], request: pytest.FixtureRequest) -> Iterator[Browser]:
    """The page of a kind; the test fails if anything was written to the console."""
    chromium.resize(1400, 1000)
    chromium.open(pages[request.param])
    yield chromium
    assert chromium.errors() == []


every_kind = pytest.mark.parametrize("opened", [*EXAMPLES, *VIEWS], indirect=True)


@every_kind
def test_every_chart_is_drawn_at_every_width_and_fits(opened: Browser) -> None:
    drawn = """return [...document.querySelectorAll(".chart")].map((plot) => {
        const places = [plot.querySelector("svg"), plot.closest(".card")];
        const [svg, card] = places.map((one) => one.getBoundingClientRect());
        return plot.querySelectorAll("path, line").length > 5 && svg.width > 200 && svg.right <= card.right;
    })"""
    assert all(opened.run(drawn))
    opened.resize(390, 844)
    opened.wait("[...document.querySelectorAll('.chart svg')].every((one) => one.getBoundingClientRect().width < 390)")
    assert all(opened.run(drawn))
    assert opened.run("return document.documentElement.scrollWidth") <= 390
    for card in opened.driver.find_elements("css selector", "#figures section"):
        assert card.find_element("css selector", "h2").text
        assert card.find_element("css selector", ".sentence").text.endswith(".")


@every_kind
def test_it_is_printed_with_its_charts_in_dark_ink(opened: Browser) -> None:
    opened.choose("#theme", "dark")
    ink = "return getComputedStyle(document.body).color"
    bright = opened.run(ink)
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    dark = opened.run(ink)
    drawn = opened.run(
        "return [...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect().width)"
    )
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert (bright, dark) == ("rgb(230, 231, 234)", "rgb(34, 34, 34)")
    assert all(width > 200 for width in drawn[:1])


@pytest.mark.skipif(not AXE.is_file(), reason="make build has not fetched axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
@every_kind
def test_it_is_accessible(opened: Browser, theme: str) -> None:
    opened.choose("#theme", theme)
    opened.run(AXE.read_text("utf-8"))
    found = opened.driver.execute_async_script("axe.run(document).then((found) => arguments[0](found.violations))")
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in {"serious", "critical"}]
    assert serious == []


@pytest.mark.parametrize("opened", ["saturation"], indirect=True)
def test_tables_are_sorted_and_latencies_chosen(opened: Browser) -> None:
    opened.find("#table2 th:nth-child(4) button").click()
    accepted = [float(text.split()[0]) for text in opened.texts("#table2 td:nth-child(4)")]
    assert accepted == sorted(accepted, reverse=True)
    assert opened.find("#table2 th:nth-child(4)").get_attribute("aria-sort") == "descending"
    plot = "document.querySelector('#latency .chart svg').innerHTML"
    opened.run(f"window.before = {plot}")
    opened.choose("#latency select", "messages: 50%, 99.9%")
    opened.wait(f"{plot} !== window.before")


@pytest.mark.parametrize("opened", ["saturation"], indirect=True)
def test_charts_are_moved_and_have_tooltips(opened: Browser) -> None:
    places = """const box = document.querySelector("#throughput .chart").getBoundingClientRect();
        const points = [...document.querySelectorAll("#throughput .role-mark.mark-symbol path")];
        return points.map((one) => one.getBoundingClientRect())
        .map(({ x, y, width, height }) => [x + width / 2 - box.x, y + height / 2 - box.y])"""
    x, y = opened.run(places)[-1]
    opened.move_to("#throughput .chart", x, y)
    opened.wait("document.querySelector('#vg-tooltip-element.visible') !== null")
    assert "accepted" in opened.find("#vg-tooltip-element").text
    opened.drag("#throughput .chart", (200, 150), (300, 150))
    assert opened.run(places)[-1] == pytest.approx([x + 100, y], abs=5)


OUTLINED = "[...document.querySelectorAll('#gantt .mark-rect path[stroke-width=\"2.5\"]')]"


@pytest.mark.parametrize("opened", ["schedule"], indirect=True)
def test_a_job_is_found_and_stands_out_under_every_allocator(opened: Browser) -> None:
    assert opened.run(f"return {OUTLINED}.length") == 0
    opened.choose("#gantt input[type=search]", "4")
    words = (
        "[...document.querySelectorAll('#gantt .mark-text text')].filter((one) => one.textContent.startsWith('job 4'))"
    )
    opened.wait(f"{words}.length === 4")  # two allocators of two schedules
    assert opened.run(f"return {OUTLINED}.length") >= 4
    assert "hosts 16, pattern hybrid, submitted after" in opened.run(f"return {words}[0].textContent")
    opened.choose("#gantt input[type=search]", "99")
    opened.wait(f"{words}.length === 0")


@pytest.mark.parametrize("opened", ["schedule"], indirect=True)
def test_bars_have_tooltips_and_a_click_chooses_their_job(opened: Browser) -> None:
    first = """const box = document.querySelector("#gantt .chart").getBoundingClientRect();
        const { x, y, width, height } = document.querySelector("#gantt .mark-rect path").getBoundingClientRect();
        return [x + width / 2 - box.x, y + height / 2 - box.y]"""
    x, y = opened.run(first)
    opened.move_to("#gantt .chart", x, y)
    opened.wait("document.querySelector('#vg-tooltip-element.visible') !== null")
    shown = opened.find("#vg-tooltip-element").text
    assert "waited" in shown
    opened.move_to("#gantt .chart", x, y, click=True)
    opened.wait(f"{OUTLINED}.length > 0")
    assert opened.find("#gantt input[type=search]").get_attribute("value") in shown


@pytest.mark.parametrize("opened", ["schedule"], indirect=True)
def test_a_job_that_is_chosen_is_chosen_in_every_chart_and_in_its_rows(opened: Browser) -> None:
    marks = "document.querySelectorAll('#wait_by_size .role-mark.mark-symbol path').length"
    shades = "document.querySelectorAll('#utilisation .mark-rect path').length"
    rows = "[...document.querySelectorAll('tr.chosen')].map((row) => row.cells[0].textContent)"
    assert opened.run(f"return [{marks}, {shades}, {rows}]") == [0, 0, []]
    opened.choose("#gantt input[type=search]", "4")
    opened.wait(f"{marks} === 4 && {shades} === 4")  # two allocators of two schedules
    assert opened.run(f"return {rows}") == ["4"] * 4
    opened.run("document.querySelector('tr[data-key=\"7\"]').click()")
    opened.wait(f"{OUTLINED}.length >= 4")
    assert opened.find("#gantt input[type=search]").get_attribute("value") == "7"
    assert opened.run(f"return {rows}") == ["7"] * 4
    opened.run("document.querySelector('tr[data-key=\"7\"]').click()")
    opened.wait(f"{OUTLINED}.length === 0 && {marks} === 0")


@pytest.mark.parametrize("opened", ["schedule"], indirect=True)
def test_hours_are_chosen_by_slider_and_by_dragging(opened: Browser) -> None:
    wide = "[...document.querySelectorAll('#gantt .mark-rect path')].map((one) => one.getBoundingClientRect().x)[0]"
    before = opened.run(f"return {wide}")
    opened.drag("#gantt .chart", (400, 200), (300, 200))
    opened.wait(f"{wide} === undefined || {wide} < {before} - 50")
    opened.choose("#gantt input[type=range]", "0")
    opened.wait(f"Math.abs({wide} - {before}) < 1")


@pytest.mark.parametrize("opened", ["robustness"], indirect=True)
def test_clauses_and_parameters_of_a_map_are_chosen(opened: Browser) -> None:
    for chart, clause in (("levels0", EVIL), ("margins1", "much is accepted")):
        plot = f"document.querySelector('#{chart} .chart svg').innerHTML"
        opened.run(f"window.before = {plot}")
        opened.choose(f"#{chart} select", clause)
        opened.wait(f"{plot} !== window.before")
    assert opened.texts("#margins1 select:last-of-type option")[-1] == "buffer of a port"
    assert "buffer of a port" in opened.texts("#margins1 .chart text")


PALE = "[...document.querySelectorAll('#{} path[opacity=\"0.25\"]')].length"


@pytest.mark.parametrize("opened", ["reproduction"], indirect=True)
def test_a_claim_or_clause_that_is_chosen_is_chosen_in_every_chart_and_table(opened: Browser) -> None:
    rows = "[...document.querySelectorAll('tr.chosen')].map((row) => row.dataset.key)"
    others = [PALE.format(name) for name in ("claims", "shares", "indices0")]
    assert opened.run(f"return [{rows}, {', '.join(others)}]") == [[], 0, 0, 0]
    opened.run("document.querySelector('tr[data-key=\"a.left-out\"]').click()")
    opened.wait(" && ".join(f"{other} > 0" for other in others))
    opened.run("document.querySelector('tr[data-key=\"a.throughput 2\"]').click()")
    opened.wait(f"{others[1]} === 2")  # clause 1 of the maps of both results
    assert set(opened.run(f"return {rows}")) == {"a.throughput", "a.throughput 2"}
    for chart in ("levels0", "levels1", "margins0", "margins1"):
        assert opened.run(f"return document.querySelector('#{chart} select').value") == EVIL
    opened.choose("#levels0 select", "much is accepted")
    opened.wait(f"{rows}.includes('a.throughput 1')")
    opened.wait("document.querySelector('#margins1 select').value === 'much is accepted'")
    first = """const box = document.querySelector("#shares .chart").getBoundingClientRect();
        const marks = document.querySelectorAll("#shares .role-mark.mark-rect path");
        const { x, y, width, height } = marks[1].getBoundingClientRect();
        return [x + width / 2 - box.x, y + height / 2 - box.y]"""
    opened.move_to("#shares .chart", *opened.run(first), click=True)
    opened.wait(f"{rows}.includes('a.throughput 2') && !{rows}.includes('a.throughput 1')")


@pytest.mark.parametrize("opened", ["saturation"], indirect=True)
def test_charts_are_exported(opened: Browser, downloads: Path) -> None:
    files = {kind: downloads / f"throughput.{kind}" for kind in ("csv", "svg", "png")}
    for kind in files:
        opened.run("arguments[0].click()", opened.find(f"#throughput [aria-label$='{kind.upper()}']"))
    wait_for(lambda: all(file.is_file() for file in files.values()), files)
    rows = list(csv.DictReader(files["csv"].read_text("utf-8").splitlines()))
    assert len(rows) == 6
    assert "var(--" not in files["svg"].read_text("utf-8")
    assert files["png"].stat().st_size > 10_000


@pytest.mark.parametrize("opened", ["study"], indirect=True)
def test_rows_and_treatment_of_the_forest_plot_are_chosen(opened: Browser) -> None:
    labels = "[...document.querySelectorAll('#effects .role-axis-label text')].map((one) => one.textContent)"
    names = f"return {labels}.filter((text) => !/%$/.test(text))"
    first = opened.run(names)
    assert len(first) == 2 * 3  # studies, treatments
    height = "return document.querySelector('#effects .chart svg').getBoundingClientRect().height"
    before = opened.run(height)
    opened.choose("#effects label:nth-child(2) select, #effects .vega-bind:nth-child(2) select", "by job")
    opened.wait(f"{labels}.filter((text) => !/%$/.test(text)).length === 12")
    assert opened.run(height) > before
    opened.choose("#effects .vega-bind:nth-child(3) select", next(name for name in first if "feedback" in name))
    opened.wait(f"{labels}.filter((text) => !/%$/.test(text)).length === 2")
