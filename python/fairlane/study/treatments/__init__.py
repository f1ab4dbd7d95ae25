"""Treatments: changes of the default run. A new kind is one file and one line in ``KINDS``."""

from typing import Any

from fairlane.core.errors import nearest
from fairlane.inputs.problems import validated
from fairlane.study.treatments.base import Overrides, Progress, Treatment
from fairlane.study.treatments.controlled import Controlled

__all__ = ["KINDS", "Progress", "Treatment", "read_treatment"]

KINDS: list[type[Treatment]] = [Controlled, Overrides]
"""Every kind; the first whose key is in a treatment's table reads it, else the last."""


def read_treatment(given: Any) -> Any:
    """A treatment's table, by the kind whose key it has."""
    if not isinstance(given, dict):
        return given
    return validated(next((kind for kind in KINDS if kind.key in given), None) or _meant(given), given)


def _meant(given: dict[str, Any]) -> type[Treatment]:
    """The kind that most keys of a table belong to, so that its errors are about that kind; else the last."""
    return max(
        reversed(KINDS), key=lambda kind: sum(nearest(key, list(kind.model_fields)) is not None for key in given)
    )
