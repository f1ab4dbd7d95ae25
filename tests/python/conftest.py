"""What all tests need."""

import signal


def pytest_configure() -> None:
    """Tests that interrupt themselves do so even where the suite runs in the background, with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
