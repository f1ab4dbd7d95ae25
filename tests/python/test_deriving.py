"""Tables that functions of a paper derive: stored at once, found again, and computed again when something changes."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from fairlane.inputs.code import allow_code
from fairlane.papers import deriving
from fairlane.papers.deriving import STORED, Derivation, Deriving, tables_digest
from fairlane.papers.folder import Derived
from fairlane.papers.reproduce import conclude, folder_of, plan
from fairlane.papers.running import stored_as
from fairlane.study.setting import Method
from fairlane.study.sql import Database, QueryError
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from small_study import Here

PAPER = """
title = "A paper"
citation = "Nobody: Nothing, 2020."
[[study]]
name = "given"
call = "method.py:given"
set = { values = [1, 2, 3] }
[[table]]
name = "fitted"
call = "method.py:fitted"
csv = "fitted"
[[table]]
name = "further"
call = "method.py:further"
[[table]]
name = "counted"
sql = "SELECT count(*) AS rows FROM residuals"
csv = "counted"
"""
CLAIMS = """
[[claim]]
id = "sum"
where = "I"
setup = "numbers"
claim = "the sum is 6"
check = "sum"
studies = ["given"]
sql = "SELECT total AS value FROM fitted"
[[claim.clause]]
says = "sum {value}"
band = "= 6"
"""
METHOD = """
from pathlib import Path

import polars as pl

# Next to the folder, whose files are all part of what an answer depends on.
CALLS = Path(__file__).parent.with_name("calls")


def given(arguments, watch):
    return {"numbers": {"value": arguments["values"]}}


def fitted(tables):
    CALLS.write_text(CALLS.read_text() + "f")
    total = tables.ask("SELECT sum(value) AS total FROM numbers")
    return {"fitted": total, "residuals": pl.DataFrame({"value": [0.5, -0.5]})}


def further(tables):
    CALLS.write_text(CALLS.read_text() + "g")
    if CALLS.with_name("broken").exists():
        raise KeyboardInterrupt
    return tables.ask("SELECT total + 1 AS total FROM fitted")
"""
TYPES = pl.DataFrame(
    {
        "whole": pl.Series([1, None, 3], dtype=pl.Int32),
        "number": [0.1, math.nan, None],
        "text": ["a", None, "ä"],
        "yes": [True, False, None],
        "values": [[1.5], [], None],
        "nothing": [None, None, None],
    }
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "paper"
    found.mkdir()
    for name, text in {"paper.toml": PAPER, "claims.toml": CLAIMS, "method.py": METHOD}.items():
        (found / name).write_text(text)
    (tmp_path / "calls").write_text("")
    return found


def run(place: Path, out: Path) -> Any:
    with allow_code(), Executor(Here(), Store(out, stored_as)) as executor:
        return conclude(plan(str(place)), executor, out)


def calls(place: Path) -> str:
    """Which functions were called since the last time this was asked."""
    file = place.with_name("calls")
    found = file.read_text()
    file.write_text("")
    return found


def test_functions_are_called_once_and_again_when_something_has_changed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    found = run(place, out)
    assert calls(place) == "fg"
    assert pl.read_csv(out / "fitted.csv").rows() == [(6,)]
    assert pl.read_csv(out / "counted.csv").rows() == [(2,)]
    assert found.unused == 0, "what is stored of functions is no simulation"
    again = run(place, out)
    assert calls(place) == ""
    assert again.outcome.derived_cpu_s == found.outcome.derived_cpu_s > 0
    for name, table in found.outcome.derived.items():
        assert_frame_equal(table, again.outcome.derived[name])
    run(place, place / "out")
    assert calls(place) == "fg", "nothing is stored in another folder"
    run(place, place / "out")
    assert calls(place) == "", "results inside the folder are no files of the paper"
    claims = place / "claims.toml"
    claims.write_text(CLAIMS.replace("numbers", "some numbers"))
    run(place, out)
    assert calls(place) == "fg", "a file of the paper"
    monkeypatch.setattr(deriving, "_libraries", lambda: {"polars": "0"})
    run(place, out)
    assert calls(place) == "fg", "a library"
    monkeypatch.setattr(deriving, "sources", lambda *_: "another")
    run(place, out)
    assert calls(place) == "fg", "a part of fairlane"


def test_a_reproduction_that_is_killed_keeps_what_was_derived(place: Path, tmp_path: Path) -> None:
    broken = place.with_name("broken")
    broken.touch()
    with pytest.raises(KeyboardInterrupt):
        run(place, tmp_path / "out")
    assert calls(place) == "fg"
    broken.unlink()
    run(place, tmp_path / "out")
    assert calls(place) == "g"


def test_a_stored_answer_that_has_changed_is_computed_again_and_named(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(place, out)
    calls(place)
    (first, _second) = sorted((out / STORED).iterdir())
    stored = json.loads(first.read_text())
    name = next(iter(stored["answer"]["tables"]))
    stored["answer"]["tables"][name] = stored["answer"]["tables"][name][:-4] + "AAA="
    first.write_text(json.dumps(stored))
    assert run(place, out).damaged == [f"{STORED}/{first.name}"]
    assert len(calls(place)) == 1
    assert run(place, out).damaged == []


def test_tables_come_back_with_their_types(place: Path, tmp_path: Path) -> None:
    method = place / "method.py"
    method.write_text("def same(tables):\n    return tables.ask('SELECT * FROM types')\n")
    one = Derived(name="copy", call="method.py:same")
    database, folder = Database({"types": TYPES}), folder_of(str(place))
    with allow_code():
        for store in (None, Store(tmp_path), Store(tmp_path)):
            table = Deriving(folder, database, store).derive(one)["copy"]
            assert_frame_equal(table, database.ask("SELECT * FROM types"))
    assert len(list((tmp_path / STORED).iterdir())) == 1


def test_a_query_that_is_wrong_in_a_function_is_that_of_the_paper(place: Path, tmp_path: Path) -> None:
    (place / "method.py").write_text("def wrong(tables):\n    return tables.ask('SELECT * FROM nowhere')\n")
    one = Derived(name="copy", call="method.py:wrong")
    made = Deriving(folder_of(str(place)), Database(), Store(tmp_path))
    with allow_code(), pytest.raises(QueryError, match="nowhere"):
        made.derive(one)
    assert not (tmp_path / STORED).exists()


@pytest.mark.parametrize(
    "changed",
    [
        lambda table: table.rename({"text": "word"}),
        lambda table: table.reverse(),
        lambda table: table.cast({"whole": pl.Int64}),
        lambda table: table.with_columns(pl.col("number").fill_nan(None)),
        lambda table: table.with_columns(pl.col("number") + 1e-12),
        lambda table: table.select(pl.exclude("text"), "text"),
        lambda table: table.head(2),
    ],
)
def test_tables_that_differ_have_another_digest(changed: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    database = Database({"types": TYPES})
    before = tables_digest(database)
    database.put("types", changed(TYPES))
    assert tables_digest(database) != before
    database.put("types", TYPES)
    assert tables_digest(database) == before
    database.put("more", TYPES)
    assert tables_digest(database) != before
    assert tables_digest(Database({"kinds": TYPES})) != before
    other = Database()
    other.put("types", TYPES, "study")
    assert tables_digest(other) != before


def test_a_digest_is_of_the_function_too(place: Path) -> None:
    folder, tables = folder_of(str(place)), Database({"types": TYPES})
    one, other = (Derivation(folder, Method(place / "method.py", name), tables) for name in ("fitted", "further"))
    assert one.digest != other.digest
