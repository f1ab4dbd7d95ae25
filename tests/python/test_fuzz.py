"""Damaged inputs of every kind end with a message. ``python -m fuzzing`` in ``tests`` reads thousands."""

from pathlib import Path

import pytest

from fuzzing.harness import fuzz
from fuzzing.readers import READERS


@pytest.mark.campaign
def test_damaged_inputs_end_with_a_message(tmp_path: Path, campaign_seed: int | None) -> None:
    """And every reader takes its inputs as they are: otherwise damage would not be what is refused."""
    whole = range(-len(READERS), 0)
    seed, inputs = (1, 20) if campaign_seed is None else (campaign_seed, 100)
    found = fuzz([*whole, *range(inputs)], seed, tmp_path)
    assert not found.findings, f"in tests: python -m fuzzing --seed {seed} --only NUMBER"
    assert not [number for number in whole if found.ended[number] != 0]
    assert len(found.ended) == len(whole) + inputs
