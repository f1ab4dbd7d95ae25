"""The page of a study: effects of its treatments, by job, by cell and by parameter, and how certain they are."""

from typing import Any

from fairlane.report.meta import meta_of
from fairlane.report.study.cells import cells_of
from fairlane.report.study.design import terms_of
from fairlane.report.study.differences import differences
from fairlane.report.study.effects import effects_of, replicates_of, runs_of
from fairlane.report.study.periods import periods_of
from fairlane.report.study.sentences import sentences
from fairlane.report.study.sweeps import sweeps_of
from fairlane.report.tables import rows_of, tables_of
from fairlane.results.study import StudyResults
from fairlane.study.conditions import with_condition
from fairlane.study.replication import outer_unit
from fairlane.wording import plural


def data_of(study: StudyResults, compare: StudyResults | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of a study contains, as JSON: see the modules of this package.

    Raises ``ScenarioError`` if the two studies have nothing in common that could be compared.
    """
    found: dict[str, Any] = {
        "meta": _meta(study),
        "failures": rows_of(study.failures) if study.failures.height else None,
        "measured": tables_of(study.measured) if study.measured is not None else None,
        "effects": None,
        "compare": None,
    }
    if study.measured is None and study.work.height:
        effects, terms = effects_of(study.work), terms_of(study)
        found |= {
            "unit": outer_unit(study.work),
            "runs": runs_of(study.work),
            "effects": effects,
            "replicates": replicates_of(study),
            "cells": cells_of(study),
            "sweeps": sweeps_of(study.work),
            "periods": periods_of(study),
            "design": terms,
            "conditions": with_condition(study.work)[1],
            "sentences": sentences(study, effects, terms),
        }
    if compare is not None:
        found["compare"] = {"meta": _meta(compare), **differences(study, compare, compare_name)}
    return found


def _meta(study: StudyResults) -> dict[str, Any]:
    meta = study.meta
    name = study.folder.name if study.folder else meta.study
    facts = [plural(meta.points, "point"), plural(meta.runs, "run")]
    facts += [plural(len(meta.treatments), "treatment")] if meta.treatments else []
    facts += [f"{meta.failures} failed"] if meta.failures else []
    provenance = {
        "folder": name,
        "study": meta.study,
        "fairlane": meta.version,
        "started": meta.started,
        "simulations": meta.simulations,
        "digest of the tables": meta.digest,
    }
    return meta_of(meta.study, name, facts, provenance, meta.notes)
