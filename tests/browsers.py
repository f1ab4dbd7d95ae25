"""Headless Chromium for tests of pages: skipped with a reason where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from waiting import HANG_S, wait_for

__all__ = ["Browser", "browser"]


class Browser:
    """A page in a browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path | str) -> None:
        """Opens a page from disk or at an address, on a screen, and waits until its scripts have run."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        self.driver.get(page if isinstance(page, str) else page.as_uri())
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def wait(self, condition: str) -> None:
        """Waits until an expression of JavaScript is true."""
        wait_for(lambda: self.run(f"return {condition}"), lambda: f"{condition}; {self.errors()}")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def module(self, name: str, expression: str) -> Any:
        """What an expression of the exports ``m`` of one of the page's modules is."""
        script = f"import('report/{name}').then((m) => arguments[0]({expression}))"
        return self.driver.execute_async_script(script)

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements of a CSS selector."""
        return [one.text for one in self.driver.find_elements("css selector", selector)]

    def choose(self, selector: str, value: str) -> None:
        """Chooses an option, or moves a slider, as a user does."""
        script = """arguments[0].value = arguments[1];
        for (const kind of ["input", "change"]) arguments[0].dispatchEvent(new Event(kind, { bubbles: true }));"""
        self.run(script, self.find(selector), value)

    def move_to(self, selector: str, x: float, y: float, *, click: bool = False) -> None:
        """Moves the pointer to a place of an element, in pixels from its top left."""
        from selenium.webdriver import ActionChains

        moves = ActionChains(self.driver, duration=20)
        moves.move_to_element_with_offset(self.find(selector), *self._from_middle(selector, x, y))
        (moves.click() if click else moves).perform()

    def wheel(self, selector: str, x: float, y: float, delta: int) -> None:
        """Turns the wheel at a place of an element; a negative ``delta`` is away from the user."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

        left, top = self._from_middle(selector, x, y)
        origin = ScrollOrigin.from_element(self.find(selector), left, top)
        ActionChains(self.driver, duration=20).scroll_from_origin(origin, 0, delta).perform()

    def drag(self, selector: str, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """Drags from one place of an element to another."""
        from selenium.webdriver import ActionChains

        moves = ActionChains(self.driver, duration=20)
        moves.move_to_element_with_offset(self.find(selector), *self._from_middle(selector, *begin)).click_and_hold()
        moves.move_to_element_with_offset(self.find(selector), *self._from_middle(selector, *end)).release().perform()

    def _from_middle(self, selector: str, x: float, y: float) -> tuple[int, int]:
        """A place of an element from its middle, as Selenium counts; the element is moved into view."""
        self.run("arguments[0].scrollIntoView({ block: 'center' })", self.find(selector))
        size = "const box = arguments[0].getBoundingClientRect(); return [box.width, box.height]"
        box = self.run(size, self.find(selector))
        return round(x - box[0] / 2), round(y - box[1] / 2)

    def press(self, selector: str, keys: str) -> None:
        """Presses keys in an element."""
        self.find(selector).send_keys(keys)

    def errors(self) -> list[str]:
        """Warnings and errors in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}]

    def resize(self, width: int, height: int) -> None:
        """Sets the size of the page's window, px; narrow ones are phones."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@contextmanager
def browser(downloads: Path, *more: str) -> Iterator[Browser]:
    """Headless Chromium that stores downloads in a folder; skips the test where it or Selenium is missing.

    ``more`` are further arguments of its command line.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not on PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000", *more):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        started.set_script_timeout(HANG_S)
        started.set_page_load_timeout(HANG_S)
        where = {"behavior": "allow", "downloadPath": str(downloads)}
        started.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        yield Browser(started)
    finally:
        started.quit()
