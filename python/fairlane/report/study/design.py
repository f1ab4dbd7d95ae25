"""What explains the time per iteration in a designed study: the table ``effects`` of its folder."""

from typing import Any

from fairlane.results.manifest import Sealed
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import STUDY
from fairlane.results.study import STUDY_SCHEMA_VERSION, StudyResults

FILE = "effects.parquet"


def terms_of(study: StudyResults) -> list[dict[str, Any]] | None:
    """By job and term: factor, share of the variance and p; None of a study that is not designed.

    Raises ``ResultsError`` if the table has changed since it was written.
    """
    if study.folder is None or not (study.folder / FILE).is_file():
        return None
    sealed = Sealed.open(study.folder, "study", STUDY_SCHEMA_VERSION)
    return read_tables(sealed, {"effects": STUDY["effects"]})["effects"].to_dicts() if FILE in sealed else None
