"""Counts and amounts as people read them: no exponents, no "1 jobs", in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.wording import data_size, listed, plural, significant, some


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *[(0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "1,000 B"), (1023, "1,023 B"), (1024, "1 KiB")],
        *[(1536, "1.5 KiB"), (1023 * 1024, "1,023 KiB"), (2**20 - 1, "1 MiB"), (5 * 2**40, "5 TiB"), (123.4, "123 B")],
    ],
)
def test_sizes(amount: float, text: str) -> None:
    assert data_size(amount) == text


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


def test_plurals_and_lists() -> None:
    assert [plural(count, "job") for count in (0, 1, 2, 1200)] == ["0 jobs", "1 job", "2 jobs", "1,200 jobs"]
    assert plural(2, "switch", "switches") == "2 switches"
    assert plural(1, "job", count=False) == "job"
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert [some("abc", most) for most in (4, 3, 2)] == ["a, b, c", "a, b, c", "a, b and 1 more"]
    assert listed([str(number) for number in range(8)]) == "0, 1, 2, 3 and 4 others"
    assert listed([str(number) for number in range(5)]) == "0, 1, 2, 3 and 4"
