"""Damaged inputs of every kind end with a message.

There are ``FAIRLANE_FUZZ_INPUTS`` of them. Thousands take longer than a test may: then also give ``--timeout 0``,
or run ``python -m fuzzing`` in ``tests``.
"""

import os
from pathlib import Path

from fuzzing.harness import fuzz
from fuzzing.readers import READERS

INPUTS = int(os.environ.get("FAIRLANE_FUZZ_INPUTS", "50"))


def test_damaged_inputs_end_with_a_message(tmp_path: Path) -> None:
    """And every reader takes its inputs as they are: otherwise damage would not be what is refused."""
    whole = range(-len(READERS), 0)
    found = fuzz([*whole, *range(INPUTS)], 1, tmp_path)
    assert not found.findings, "see tests/fuzzing: python -m fuzzing --only NUMBER"
    assert not [number for number in whole if found.ended[number] != 0]
    assert len(found.ended) == len(whole) + INPUTS
