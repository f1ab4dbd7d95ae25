"""Pages of the server in a browser: a list that is kept up to date, a run that is watched and stopped, comparison."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("tornado", reason="the extra `serve` is not installed")
from browsers import Browser
from fairlane import load
from fairlane.cli.main import execute
from live_runs import running
from possible import no_browser
from report_runs import SCENARIO, simulated
from samples import PAIRS
from serving import Client, serving
from waiting import wait_for

AXE = Path(__file__).parents[2] / "target" / "browser" / "axe.min.js"
STATUS = "document.documentElement.dataset.status"
FIGURES = {"live-speed", "live-matrix", "live-iterations"}
pytestmark = pytest.mark.live("lab/serve", "views", absent=no_browser)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of the same jobs, and a folder of a kind without a page."""
    root = tmp_path_factory.mktemp("pages") / "results"
    root.mkdir()
    simulated(root / "first", isolated=False)
    simulated(root / "second", SCENARIO + "[qos]\nservice_levels = 2\n", isolated=False)
    (root / "maps").mkdir()
    (root / "maps" / "manifest.json").write_text('{"kind": "<b>maps</b>"}')
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with serving(root) as client:
        yield client


@pytest.fixture
def page(chromium: Browser, client: Client) -> Iterator[Browser]:
    """The list of results; the test fails if anything was written to the console."""
    chromium.resize(1400, 1000)
    chromium.open(client.url)
    yield chromium
    assert chromium.errors() == []


def texts(page: Browser, selector: str) -> list[str]:
    """The texts of elements that the page may replace at any time."""
    return list(page.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector))


def check_accessible(page: Browser) -> None:
    """No defect that axe-core finds serious, in either theme; and all fits a phone."""
    for theme in ("light", "dark"):
        page.choose("#theme", theme)
        if AXE.is_file():
            page.run(AXE.read_text("utf-8"))
            found = page.driver.execute_async_script("axe.run(document).then((f) => arguments[0](f.violations))")
            assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
    page.resize(390, 844)
    assert page.run("return document.documentElement.scrollWidth") <= 390
    page.resize(1400, 1000)


def test_the_list_shows_results_and_filters_them(page: Browser) -> None:
    assert "token" not in page.driver.current_url
    assert page.find("h1").text == "results"
    assert set(page.texts("#results td.folder")) == {"first", "second", "maps"}
    assert "no page for the kind <b>maps</b>" in page.texts("#results td.state .note")
    page.choose("#find", "sec")
    assert page.texts("#results td.folder") == ["second"]
    page.choose("#find", "nothing")
    assert page.find("#none").text == "Nothing matches."
    page.choose("#find", "")
    page.choose("#kind", "<b>maps</b>")
    assert page.texts("#results td.folder") == ["maps"]
    page.choose("#kind", "")
    check_accessible(page)


def test_a_report_opens_from_the_list_and_leads_back(page: Browser, root: Path) -> None:
    page.find("a[href='/report/first']").click()
    page.wait("document.documentElement.dataset.ready === 'yes' && document.getElementById('matrix') !== null")
    run = load(root / "first")
    assert run.meta.digest in page.find("footer").text  # type: ignore[union-attr]
    page.move_to("#matrix-plot", 200, 100)
    page.find("nav a").click()
    page.wait("document.getElementById('results') !== null")


def test_two_runs_are_selected_and_compared(page: Browser) -> None:
    assert not page.find("#compare").is_enabled()
    for name in ("second", "first"):
        page.find(f"input[aria-label='Compare {name}']").click()
    assert page.find("#compare-note").text == "second, with its differences to first"
    page.find("#compare").click()
    page.wait("document.documentElement.dataset.ready === 'yes' && document.getElementById('comparison') !== null")
    assert page.driver.current_url.endswith("/report/second?compare=first")
    assert page.find("#comparison h2").text == "Changes from first to second"


def test_charts_of_a_view_are_drawn_where_pages_may_not_compile_code(
    page: Browser, root: Path, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(PAIRS)
    arguments = ["saturate", str(file), "--load", "0.2,0.4", "--replicates", "2", "--duration", "50 us", "--quiet"]
    assert execute([*arguments, "--out", str(root / "sweep")]) == 0
    page.open(f"http://127.0.0.1:{client.port}/report/sweep")
    assert page.run("return document.querySelectorAll('#throughput .chart svg .role-mark path').length") > 3
    page.find("#table2 th button").click()
    assert page.find("#table2 th").get_attribute("aria-sort") == "descending"
    page.find("nav a").click()
    page.wait("document.getElementById('results') !== null")
    shutil.rmtree(root / "sweep")


def test_a_run_is_watched_without_reloading_and_stopped(page: Browser, root: Path, client: Client) -> None:
    with running(root / "now") as process:
        page.wait("document.querySelector(\"a[href='/live/now']\") !== null")
        assert any("in progress" in one for one in texts(page, "#results td.state"))
        page.find("a[href='/live/now']").click()
        page.wait(
            "document.documentElement.dataset.ready === 'yes' && document.getElementById('facts').children.length > 0"
        )
        page.run("window.kept = true")
        first = page.run("return document.getElementById('progress').value")
        page.wait(f"document.getElementById('progress').value > {first}")
        for figure in FIGURES:
            page.wait(f"document.querySelectorAll('#{figure}:not([hidden]) .chart svg .role-mark path').length > 0")
        assert "<total>" in texts(page, "#table2 td:first-child")
        assert len(texts(page, "#table1 tbody tr")) > 3
        iterations = "Number(document.querySelector('#table2 td:nth-child(4)').textContent.replaceAll(',', ''))"
        page.wait(f"{iterations} > 0")
        now = page.run(f"return {iterations}")
        page.wait(f"{iterations} > {now}")
        page.move_to("#live-matrix .chart", 200, 60)
        page.move_to("h1", 5, 5)
        check_accessible(page)
        page.find("#stop").click()
        assert page.find("#confirm").is_displayed()
        page.find("#confirm-back").click()
        assert not page.find("#confirm").is_displayed()
        assert process.poll() is None
        page.find("#stop").click()
        page.find("#confirm-stop").click()
        page.wait(f"{STATUS} === 'partial'")
        assert process.wait() == 130
    assert page.run("return window.kept") is True
    assert not page.find("#stop").is_displayed()
    page.find("#report").click()
    page.wait("document.documentElement.dataset.ready === 'yes' && document.getElementById('fabric-plot') !== null")
    assert "partial: interrupted" in page.find("#what").text
    client.cookie = client.log_in().headers["Set-Cookie"].partition(";")[0]
    assert client.entries()["now"]["status"] == "partial"


def test_a_run_that_was_killed_is_shown_with_its_last_state(page: Browser, root: Path, client: Client) -> None:
    with running(root / "killed") as process:
        client.log_in()
        wait_for(lambda: client.ask("/api/live/killed").status == 200)
        page.open(f"http://127.0.0.1:{client.port}/live/killed")
        page.wait("document.getElementById('progress').value > 0")
        process.kill()
        process.wait()
        page.wait(f"{STATUS} === 'killed'")
    assert page.find("#status").text.startswith("The process of the run has ended without storing results")
    assert not page.find("#stop").is_displayed()
    shutil.rmtree(root / ".killed.live")


def test_a_page_without_the_token_says_what_to_do(chromium: Browser, client: Client) -> None:
    chromium.driver.delete_all_cookies()
    chromium.driver.get(f"http://127.0.0.1:{client.port}/")
    assert "Open the address that fairlane serve has printed" in chromium.find("main").text
    assert [one for one in chromium.errors() if "403" not in one] == []
