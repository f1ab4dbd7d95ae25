"""The digest of the code that makes answers: what belongs to it, and what does not."""

from pathlib import Path

import pytest

from fairlane.controller import slack
from fairlane.tasks.sources import COUNTING, code_digest, of_another_controller, sources


def test_a_controller_depends_on_its_own_source_only() -> None:
    digests = {name: sources(name) for name in (None, "none", "process_prioritization", "slack")}
    assert len(set(digests.values())) == 4
    parts = Path(slack.__file__).parent
    assert not any(
        of_another_controller(Path("controller", "slack", part.name), "slack") for part in parts.glob("*.py")
    )
    assert all(
        of_another_controller(Path("controller", "slack", part.name), "process_prioritization")
        for part in parts.glob("*.py")
    )
    assert not of_another_controller(Path("controller", "base.py"), "process_prioritization")


def test_what_makes_answers_is_part_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    read, found = Path.read_bytes, []

    def noted(path: Path) -> bytes:
        found.append("/".join(path.parts[-2:]))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    code_digest.cache_clear()
    sources()
    others = {"controller/loop.py", "saturation/measure.py", "slowdown/bench.py", "models/torus-128.toml"}
    assert {*COUNTING, *others} <= {*found}
    assert not {"tasks/pools.py", "results/store.py", "cli/main.py"} & {*found}
