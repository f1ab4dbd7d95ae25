"""The base of everything that users write as a TOML table: pydantic models that are strict and do not change."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from fairlane.core.errors import ScenarioError
from fairlane.inputs.document import Document, current_document, override
from fairlane.inputs.problems import located, unfold


class TableModel(BaseModel):
    """A model that can be read by itself."""

    model_config = ConfigDict(defer_build=True)  # most commands validate few of the models that are imported

    @classmethod
    def read(cls, data: Mapping[str, Any], assignments: Iterable[str] = ()) -> Self:
        """The table by itself, with assignments as ``--set`` takes them; raises ``ScenarioError``."""
        document = Document(dict(data))
        for assignment in assignments:
            document.set(assignment)
        return cls._of(document)

    @classmethod
    def from_file(cls, file: Path, *, allow_code: bool = False) -> Self:
        """The table in a TOML file; raises ``ScenarioError`` with file, line and key of everything that is wrong."""
        return cls.from_document(Document.read(file, allow_code=allow_code))

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """The table that a document holds: paths are relative to its folder, and code runs if it may run in it."""
        with override(current_document, document):
            return cls._of(document)

    @classmethod
    def _of(cls, document: Document) -> Self:
        try:
            return cls.model_validate(document.data)
        except ValidationError as error:
            raise ScenarioError(located(unfold(error, cls), document)) from None


class Table(TableModel):
    """A table: unknown keys and numbers that are not finite are errors, and it does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
