"""Damaged inputs of every kind end with a message: ``FAIRLANE_FUZZ_INPUTS`` of them, or ``python -m fuzzing``."""

import os
from pathlib import Path

import pytest

from fuzzing.harness import fuzz
from fuzzing.readers import READERS

INPUTS = int(os.environ.get("FAIRLANE_FUZZ_INPUTS", "50"))


@pytest.mark.timeout(180 + 2 * INPUTS)  # of a machine that has other things to do; about 15 s otherwise
def test_damaged_inputs_end_with_a_message(tmp_path: Path) -> None:
    """And every reader takes its inputs as they are: otherwise damage would not be what is refused."""
    whole = range(-len(READERS), 0)
    found = fuzz([*whole, *range(INPUTS)], 1, tmp_path)
    assert not found.findings, "see tests/fuzzing: python -m fuzzing --only NUMBER"
    assert not [number for number in whole if found.ended[number] != 0]
    assert len(found.ended) == len(whole) + INPUTS
