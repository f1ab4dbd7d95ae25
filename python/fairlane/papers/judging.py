"""Judging claims: a function of the tables of one replicate that yields numbers, each with its band."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems, refusing
from fairlane.papers.folder import BAND, Claim, Clause
from fairlane.study.sql import Database, QueryError
from fairlane.study.tasks.task import digest_of

LEFT_OUT = "…"
"""In a label, in place of a number."""


@dataclass(frozen=True)
class Finding:
    """A number and whether it is in its band.

    ``clause`` is which of the claim's clauses it is of, from 0; ``words`` say what was measured, with the number and
    the band; ``value`` is not a number where nothing was measured; ``low`` and ``high`` are the ends of the band, None
    where it has none; ``reported`` is what the paper has; ``label`` is the measurement without its numbers.
    """

    clause: int
    words: str
    value: float
    low: float | None
    high: float | None
    holds: bool
    reported: str = ""
    label: str = ""

    @property
    def margin(self) -> float:
        """Return the distance of the value from the nearest edge of the band: positive inside; NaN without a value."""
        return margin_of(self.value, self.low, self.high)


def margin_of(value: float, low: float | None, high: float | None) -> float:
    """Return the distance of a value from the nearest edge of its band: positive inside; NaN without a value."""
    below = [] if low is None else [value - low]
    above = [] if high is None else [high - value]
    return min([*below, *above], default=float("nan"))


class _Number:
    """In place of a number in a label: any format of it is the same text."""

    def __format__(self, _spec: str) -> str:
        return LEFT_OUT


@dataclass(frozen=True)
class Judged:
    """A claim and what was measured."""

    claim: Claim
    findings: Sequence[Finding]
    missing: Sequence[str]
    """Studies that it needs and that were not run, or failed."""
    scaled: str
    """Difference of the run from the paper's, if it was scaled down: then it is a trial and not a verdict."""
    simulator: str = ""
    """A digest of the simulator that computed it, if that may be another one than this."""
    results: str = ""
    """A digest of the results of its studies; empty where it was judged elsewhere."""

    @property
    def identity(self) -> str:
        """The same for replicates with the same results of studies and the same numbers; empty if that is not known."""
        numbers = [(finding.clause, finding.value, finding.low, finding.high) for finding in self.findings]
        return digest_of([self.results, repr(numbers)]) if self.results else ""

    @property
    def holds(self) -> bool | None:
        """Whether all measurements are in their intervals; None if one is missing.

        Those by which an input was chosen do not count.
        """
        counting = [finding for finding in self.findings if not self.claim.clause[finding.clause].calibrated]
        return None if self.missing or not counting else all(finding.holds for finding in counting)


def findings(claim: Claim, tables: Database) -> Iterator[Finding]:
    """The numbers of a claim by these tables, one for each row of each clause's query.

    Raises ``QueryError`` for a query that is wrong, as of a table that is not there, and ``ScenarioError`` for words
    or a band that do not fit its columns.
    """
    for number, clause in enumerate(claim.clause):
        condition = f" WHERE {clause.where}" if clause.where else ""
        for row in tables.ask(f"SELECT * FROM ({clause.sql or claim.sql}){condition}").iter_rows(named=True):
            with refusing(f"claim {claim.id}, clause {number + 1}"):
                yield _finding(number, clause, row)


def _finding(number: int, clause: Clause, row: Mapping[str, Any]) -> Finding:
    """A number, by a row of the clause's query. Raises ``Problems`` for a key that does not fit the columns."""
    if clause.value not in row:
        raise Problems(Problem.unknown("value", "column of the query", clause.value, [*row], clause.value))
    value = _measured("value", row[clause.value])
    full = {name: float("nan") if cell is None else cell for name, cell in row.items()}
    low, high = _ends(clause, lambda text: _bound(text, row))
    sign = _band(clause)["operator"]
    below = operator.lt if sign in ("<", ">") else operator.le
    held = (low is None or below(low, value)) and (high is None or below(value, high))
    band = clause.band if sign and edges(clause) else band_of(clause, low, high, "g")
    shown = _text("shown", clause.shown, full) if clause.shown else band
    measured = f"{_text('says', clause.says, full)} ({shown})"
    label = _label(
        _text("says", clause.says, {name: cell if isinstance(cell, str) else _Number() for name, cell in row.items()})
    )
    return Finding(number, measured, value, low, high, held, clause.reported, label)


def _text(key: str, given: str, columns: Mapping[str, Any]) -> str:
    """Text with columns of the query in it. Raises ``Problems``."""
    try:
        return given.format(**columns)
    except KeyError as error:
        raise Problems(Problem.unknown(key, "column in the text", str(error.args[0]), [*columns], given)) from None
    except (ValueError, IndexError, TypeError) as error:
        raise Problems(Problem(key, f"cannot be filled in: {error}", given, '"{column}" or "{column:.2f}"')) from None


def _bound(text: str, row: Mapping[str, Any]) -> float:
    """An end of a band: a number, or that of a column. Raises ``Problems``."""
    if text in row:
        return _measured("band", row[text])
    try:
        return float(text)
    except ValueError:
        raise Problems(Problem.unknown("band", "column of the query", text, [*row], text)) from None


def _measured(key: str, given: Any) -> float:
    """The number in a column; a missing one is a value, or a bound, that nothing meets. Raises ``Problems``."""
    try:
        return float("nan") if given is None else float(given)
    except (ValueError, TypeError):
        raise Problems(Problem(key, "is no number in the answer to the query", given)) from None


def edges(clause: Clause) -> tuple[float | None, float | None] | None:
    """The ends of a clause's band, None where it has none; None of both if they are columns of its query."""
    try:
        return _ends(clause, float)
    except ValueError:
        return None


def _ends(clause: Clause, bound: Callable[[str], float]) -> tuple[float | None, float | None]:
    """The ends of a clause's band, None where it has none; ``bound`` reads one."""
    match = _band(clause)
    if match["operator"] is None:
        return bound(match["low"]), bound(match["high"])
    end = bound(match["bound"])
    return None if "<" in match["operator"] else end, None if ">" in match["operator"] else end


def band_of(clause: Clause, low: float | None, high: float | None, form: str = ".4g") -> str:
    """A clause's band in numbers, from its ends."""
    sign, bound = _band(clause)["operator"], low if high is None else high
    if sign is None:
        return clause.band if low is None or high is None else f"in [{low:{form}}, {high:{form}}]"
    return clause.band if bound is None else f"{sign} {bound:{form}}"


def _band(clause: Clause) -> re.Match[str]:
    match = BAND.fullmatch(clause.band)
    assert match is not None, "bands are checked when they are read"
    return match


def _label(text: str) -> str:
    """Text without the numbers at its end and the signs around them."""
    return text.rstrip(f" {LEFT_OUT}:;,=+") or text


def judged(claim: Claim, tables: Database, missing: Sequence[str], *, scaled: str = "", results: str = "") -> Judged:
    """The verdict. If something is missing, the available measurements are shown without a verdict.

    A clause whose query has no rows is missing, unless the run is scaled: there may be nothing to measure then.
    """
    try:
        results_of_claim = list(findings(claim, tables))
    except QueryError as error:
        if not missing:
            raise ScenarioError(Problem(f"claim {claim.id}", f"has a query that is wrong: {error}")) from None
        results_of_claim = []
    if not missing and not scaled:
        measured = {finding.clause for finding in results_of_claim}
        missing = [f"clause {at + 1}: its query has no rows" for at in range(len(claim.clause)) if at not in measured]
    kept = [finding for finding in results_of_claim if not (missing and isnan(finding.value))]
    return Judged(claim, kept, missing, scaled, results=results)
