"""Quantities with units: exact, with helpful errors, and back again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.units import BANDWIDTH, CLOCK_END, DURATION, SIZE, Kind

KINDS = [BANDWIDTH, DURATION, SIZE]


@pytest.mark.parametrize(
    ("kind", "text", "amount"),
    [
        (BANDWIDTH, "3.2 GB/s", 3_200_000_000 * 8),
        (BANDWIDTH, "25.6 Gb/s", 25_600_000_000),
        (BANDWIDTH, "400Gbps", 400_000_000_000),
        (BANDWIDTH, "0.1 b/s * 10", None),
        (SIZE, "4 KiB", 4 * 1024),
        (SIZE, "4 kB", 4000),
        (SIZE, "16 b", 2),
        (SIZE, 0, 0),
        (DURATION, "100 ns", 100 * 1000),
        (DURATION, "0.1us", 100 * 1000),
        (DURATION, "1e3 ns", 1000 * 1000),
        (DURATION, "0.123456789012 s", 123_456_789_012),
    ],
)
def test_quantities_are_read_exactly(kind: Kind, text: str | int, amount: int | None) -> None:
    if amount is None:
        with pytest.raises(ValueError, match="not a unit"):
            kind.parse(text)
    else:
        assert kind.parse(text) == amount


@pytest.mark.parametrize(
    ("kind", "given_", "words"),
    [
        (SIZE, 4096, 'in a string, as "4 KiB"'),
        (SIZE, True, "in a string"),
        (SIZE, 4.0, "in a string"),
        (SIZE, "4096", "needs a unit"),
        (SIZE, "3 KB", "did you mean 'kB'"),
        (SIZE, "3,2 KiB", "not a unit"),
        (SIZE, "3 b", "not a whole number of bytes"),
        (SIZE, "-4 B", "cannot be negative"),
        (SIZE, "1e400 B", "too large: at most 4294967296 GiB"),
        (DURATION, "1e999999999999 s", "too large or too small a duration"),
        (DURATION, "1 10**99999999*s", "is not a unit of duration"),
        (DURATION, "9" * 5000 + " s", "expected a number and a unit"),
        (SIZE, "", "expected a number and a unit"),
        (DURATION, "4 GB", "not a unit of duration"),
        (DURATION, "0.3 ps", "not a whole number of picoseconds"),
        (BANDWIDTH, "3.2 gb/s", "did you mean 'GB/s' or 'Gb/s'"),
        (BANDWIDTH, "3.2 GB", "not a unit of bandwidth"),
    ],
)
def test_wrong_quantities_say_what_is_wrong(kind: Kind, given_: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind.parse(given_)


@given(st.sampled_from(KINDS), st.integers(0, CLOCK_END))
def test_what_is_shown_is_read_back(kind: Kind, amount: int) -> None:
    assert kind.parse(kind.format(amount)) == amount


def test_quantities_are_shown_in_the_largest_unit_that_is_exact() -> None:
    assert BANDWIDTH.format(25_600_000_000) == "3.2 GB/s"
    assert SIZE.format(4096) == "4 KiB"
    assert SIZE.format(4097) == "4097 B"
    assert DURATION.format(1_500_000) == "1.5 us"
