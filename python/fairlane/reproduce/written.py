"""Claims with their verdicts as JSON has them."""

from math import isnan

from fairlane.reproduce.verdicts import ClaimVerdict, Verdict


def written(one: ClaimVerdict) -> dict[str, object]:
    """A claim, its last word, and the numbers of the first replicate and of all."""
    claim = {"id": one.claim.id, "where": one.claim.where, "claim": one.claim.claim}
    first = one.judged[min(one.judged)]
    findings = [
        {
            "measured": it.words,
            "value": None if isnan(it.value) else it.value,
            "low": it.low,
            "high": it.high,
            "reported": it.reported or None,
            "holds": it.holds,
        }
        for it in first.findings
    ]
    clauses = [
        {
            "clause": clause.number + 1,
            "verdict": clause.verdict,
            "replicates": clause.replicates,
            "in_band": clause.held,
            "numbers": [{"measured": it.label, "values": it.values} for it in clause.numbers],
        }
        for clause in one.clauses
    ]
    return {
        **claim,
        "verdict": one.ending,
        "line": one.line,
        "replicates": one.complete,
        "holds": {Verdict.HOLDS: True, Verdict.CONTRADICTED: False}.get(one.ending),
        "scaled": bool(first.scaled),
        "findings": findings,
        "clauses": clauses,
        "missing": list(one.missing),
    }
