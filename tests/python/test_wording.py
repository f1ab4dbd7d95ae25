"""Counts and amounts as people read them: no exponents, no "1 jobs", in one place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.core.wording import (
    amount,
    data_size,
    duration,
    listed,
    number,
    percent,
    plural,
    ratio,
    renamed,
    seconds,
    significant,
    some,
    with_half_width,
)


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        *[(0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "1,000 B"), (1023, "1,023 B"), (1024, "1 KiB")],
        *[(1536, "1.5 KiB"), (1023 * 1024, "1,023 KiB"), (2**20 - 1, "1 MiB"), (5 * 2**40, "5 TiB"), (123.4, "123 B")],
    ],
)
def test_sizes(octets: float, text: str) -> None:
    assert data_size(octets) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        *[(0, 3, "0"), (1234.5, 3, "1,234"), (12.345, 3, "12.3"), (0.012345, 3, "0.0123"), (999.6, 3, "1,000")],
        *[(-2.5, 3, "-2.5"), (1e6, 3, "1,000,000"), (100.0, 2, "100"), (2.0, 4, "2"), (1.5e-7, 3, "1.5e-07")],
    ],
)
def test_numbers(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@given(st.floats(1e-4, 1e15), st.integers(1, 8))
def test_a_number_is_as_exact_as_it_says(value: float, digits: int) -> None:
    text = significant(value, digits)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "text"), [(1.5, "1.50 s"), (119, "119 s"), (121, "2.02 min"), (87_120, "24.2 h"), (4_060_800, "47.0 d")]
)
def test_durations(value: float, text: str) -> None:
    assert duration(value) == text


def test_plurals_and_lists() -> None:
    assert [plural(count, "job") for count in (0, 1, 2, 1200)] == ["0 jobs", "1 job", "2 jobs", "1,200 jobs"]
    assert plural(2, "switch", "switches") == "2 switches"
    assert plural(1, "job", count=False) == "job"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert [some("abc", most) for most in (4, 3, 2)] == ["a, b, c", "a, b, c", "a, b and 1 more"]
    assert listed([str(number) for number in range(8)]) == "0, 1, 2, 3 and 4 others"
    assert listed([str(number) for number in range(5)]) == "0, 1, 2, 3 and 4"


@given(st.floats(1e-9, 1e3), st.floats(0, 5), st.booleans())
def test_no_interval_of_a_positive_amount_reaches_below_zero(value: float, relative: float, known: bool) -> None:
    half = relative * value
    spread = (value, value / 10, value * 10) if known else None
    words = amount(value, value - half, value + half, seconds, spread)
    if relative < 1:
        assert words == with_half_width(value, value - half, value + half, seconds)
    elif known:
        assert words == f"median {seconds(value)} ({seconds(value / 10)} to {seconds(value * 10)})"
    else:
        assert words == f"{seconds(value)} (up to {seconds(value + half)})"


def test_intervals_within_a_bucket_have_the_width_of_the_bucket() -> None:
    assert amount(9.3e-4, 9.3e-4, 9.3e-4, seconds, resolution=1 / 256) == "930 µs ± <0.4%"
    assert amount(9.3e-4, 9.3e-4, 9.3e-4, seconds) == "930 µs", "equal values say nothing of their uncertainty"
    third = sum([0.1] * 3) / 3  # not 0.1, but for rounding
    assert with_half_width(0.1, third, third + 2e-17, percent) == "10.0%"


@pytest.mark.parametrize(("form", "last"), [(percent, "0.1%"), (number, "0.01"), ("{:.4f}".format, "0.0001")])
def test_an_interval_is_never_written_as_zero(form: Callable[[float], str], last: str) -> None:
    assert with_half_width(0.5, 0.5 - 1e-6, 0.5 + 1e-6, form) == f"{form(0.5)} ± <{last}"
    assert amount(9.3e-4, 9.2e-4, 9.4e-4, seconds, resolution=1 / 256) == "930 µs ± 10.0 µs"
    assert amount(9.3e-4, None, None, seconds) == "930 µs"


def test_ratios_are_written_from_end_to_end() -> None:
    assert ratio(8.7, 2.1, 36.0, number) == "8.70 (2.10 to 36.0)"
    assert ratio(1.0, 0.9999, 1.0001, number) == ratio(1.0, None, None, number) == "1.00"


def test_names_that_are_written_otherwise_are_one_sentence() -> None:
    assert renamed("switch", "ab", "ab") == []
    assert renamed("switch", "ab", "ac", " here") == ["switch 'b' is written as c here"]
    words = "5 switches are written by other names: 'a' as A, 'b' as B, 'c' as C and 2 more"
    assert renamed("switch", "abcdef", "ABCDEf", more="switches") == [words]
