"""The studies of a paper to run: those as its folder has them, with what ``--quick`` and other options replace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from os import environ
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.document import Document, KeyPath, dotted
from fairlane.inputs.problems import Problems, located, refusing
from fairlane.inputs.registry import Registry
from fairlane.papers.folder import Change, Claim, Folder, PaperTable, StudyEntry
from fairlane.papers.reseeding import moved, reseed, shift
from fairlane.study.repetition import listed_placements
from fairlane.study.setting import Method, steps_of
from fairlane.study.study import Study

RECORDINGS = Path(__file__).with_name("recordings")
"""The folder of the recordings that fairlane comes with."""


PAPER = "paper.toml"
"""The file that identifies the folder of a paper."""
BUILT_IN = Path(__file__).with_name("published")
"""The folder of the papers that fairlane comes with: their code needs no permission."""


class _Papers(Registry[Path]):
    """Folders of papers, by name."""

    own = f"a folder with a {PAPER}"
    wanted = f"a Python package with a {PAPER} in its folder"

    def find(self, name: str) -> Path:
        """The folder of a paper, by name or path."""
        folder = Path(name)
        return folder if name not in [*self] and (folder / PAPER).is_file() else super().find(name)

    def accepted(self, thing: Any) -> Path | None:
        """The folder of a paper's package; None if there is no paper in it."""
        folder = Path(getattr(thing, "__file__", None) or "").parent
        return folder if (folder / PAPER).is_file() else None

    def summary(self, thing: Path) -> str:
        """The title."""
        return str(Document.read(thing / PAPER).data.get("title", thing.name))


PAPERS = _Papers(
    "paper",
    "fairlane.papers",
    {file.parent.name: file.parent for file in sorted(BUILT_IN.glob(f"*/{PAPER}"))},
    unread=BUILT_IN,
)
"""The folders of the papers that fairlane or an installed package comes with, by name."""


@dataclass(frozen=True)
class Options:
    """Options of a reproduction."""

    quick: bool = False
    """A scaled version, in a few minutes."""
    placements: int | None = None
    """Upper bound on the placements of each study."""
    periods: int | None = None
    """Upper bound on the periods of a controller."""
    also: Sequence[str] = ()
    """Controllers to run and show in addition to the paper's; they do not affect any claim."""
    variant: str | None = None
    """The model of the paper's system, if not the default."""
    replicate: int = 1
    """Number of the replicate: replicate 1 has the seeds of the paper's folder."""
    deciding: bool = False
    """Whether studies that are only shown beside a claim are left out."""
    changes: Mapping[str, Change] = field(default_factory=dict)
    """Changes by study, after all others: those of a point of the robustness map."""
    changes_file: str = PAPER
    """The file that these are from."""
    without_tables: Sequence[str] = ()
    """Tables that the paper derives and that are not made."""

    @property
    def given(self) -> set[str]:
        """Options that are set and that not every paper supports."""
        return {name for name in ("placements", "periods", "also") if getattr(self, name)}


@dataclass(frozen=True)
class Prepared:
    """A study to run: a study file, or a function with its arguments."""

    entry: StudyEntry
    study: Study | None
    method: Method | None = None
    """The function instead of a study file."""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Studies that will be run, and those that are omitted."""

    folder: Folder
    claims: Sequence[Claim]
    options: Options
    studies: Mapping[str, Prepared]
    """The studies to run, by name."""
    left_out: Mapping[str, str]
    """Studies that are not run as in the paper, or not at all, and how they differ or why."""

    @property
    def name(self) -> str:
        """The paper's."""
        return self.folder.name

    def scales(self, claim: Claim) -> str:
        """Return the difference of the claim's studies from the paper's, as text; empty if there is none."""
        notes = dict.fromkeys(self.left_out[name] for name in claim.studies if name in self.left_out)
        return "; ".join(notes) or ("--quick" if self.options.quick else "")

    @property
    def notes(self) -> Sequence[str]:
        """The notes of the paper, and what the variant is."""
        chosen = self.options.variant
        of_variant = [] if chosen is None else [f"Variant {chosen}: {self.folder.paper.variant[chosen].title}."]
        return [*of_variant, *self.folder.paper.notes]

    @property
    def differences(self) -> Mapping[str, Sequence[str]]:
        """Choices of the model that are not the paper's and have no effect on verdicts, with the studies."""
        names_by_difference: dict[str, list[str]] = {}
        for entry in self.folder.paper.study:
            if entry.differs and entry.name in self.studies:
                names_by_difference.setdefault(entry.differs, []).append(entry.name)
        return names_by_difference


def plan_of(folder: Folder, claims: Sequence[Claim], options: Options) -> Plan:
    """Prepares what some claims need. Raises ``ScenarioError`` if a study or an option is wrong."""
    paper = folder.paper
    shown = options.replicate == 1 and not options.deciding  # later replicates are for verdicts only
    needed = {name for claim in claims for name in (*claim.studies, *(claim.shown if shown else ()))}
    studies: dict[str, Prepared] = {}
    left_out: dict[str, str] = {}
    for entry in (study for study in paper.study if study.name in needed):
        quick = paper.quick.get(entry.file or "", Change()).updated(entry.quick) if options.quick else Change()
        for change in (*_of_variant(paper, entry, options), options.changes.get(entry.name, Change())):
            quick = quick.updated(change)
        notes = [entry.note, quick.note]
        if not quick.skip:
            try:
                studies[entry.name] = _prepared(folder, entry, quick, options, notes)
            except MissingError as missing:
                notes.append(str(missing))
        reasons = "; ".join(note for note in notes if note)
        if reasons or quick.skip:
            left_out[entry.name] = reasons or "left out"
    return Plan(folder, claims, options, studies, left_out)


def _of_variant(paper: PaperTable, entry: StudyEntry, options: Options) -> Iterator[Change]:
    """Yield the changes by the chosen variant to a study that has a study file."""
    if options.variant is not None and entry.file is not None:
        variant = paper.variant[options.variant]
        yield variant.all
        yield from (variant.study[key] for key in (entry.file, entry.name) if key in variant.study)


class MissingError(Exception):
    """A recording is missing: the message names it and where it was searched for."""


def _prepared(folder: Folder, entry: StudyEntry, quick: Change, options: Options, notes: list[str]) -> Prepared:
    replicate = 1 if entry.name in folder.paper.replicates.fixed else options.replicate
    if entry.call is not None:
        arguments = moved(_recordings({**entry.set, **quick.set}), shift(replicate))
        return Prepared(entry, None, method_of(folder, entry.call), arguments)
    document = _document(folder, entry, quick, options)
    data = document.data
    notes += _fewer(data, folder.paper.also, options)
    rules, others = data.get("rules", []), options.changes.get(entry.name, Change()).rules
    data["rules"] = [*rules, *entry.rules, *quick.rules]
    first = len(data["rules"]) - len(others)
    for at in range(len(rules), len(data["rules"])):
        theirs = str(folder.path / options.changes_file), None, ("rules", at - first)
        of_paper = str(folder.path / PAPER), None, ("study", entry.name, "rules", at - len(rules))
        document.places["rules", at] = theirs if at >= first else of_paper
    reseed(document, replicate)
    only = {**entry.only, **quick.only}
    _check_levels(folder, entry, data.get("factors", {}), only)
    data["rules"] = [*data["rules"], *_skipped(data.get("factors", {}), only, notes)]
    for key in ("scenario", "rules", "set", "cases", "parameters"):
        if key in data:
            data[key] = _recordings(data[key])
    study = Study(document)
    study.name = entry.name
    if study.table.measure is not None and study.table.measure.function is not None:
        study.method(trusted())
    return Prepared(entry, study)


def trusted() -> Iterable[Path]:
    """The folders whose code needs no permission: those of papers that fairlane or an installed package comes with."""
    return (BUILT_IN, *PAPERS.values())


def check_outputs(folder: Folder) -> None:
    """Reads what is needed after the runs only, so that what is wrong in it is known before them.

    Raises ``ScenarioError`` for a figure, and for a function of a table that there is not, or that may not run.
    """
    paper = str(folder.path / PAPER)
    assert folder.figures is not None, "read here"
    for table in folder.paper.table:
        if table.call is not None:
            try:
                method_of(folder, table.call).function()
            except ScenarioError as error:
                key = f"table {table.name}: call"
                raise ScenarioError(
                    replace(problem, key=key, file=problem.file or paper) for problem in error.problems
                ) from None


def method_of(folder: Folder, given: str) -> Method:
    """The function behind ``method.py:name`` in a paper's folder. Raises ``ScenarioError`` if it may not run."""
    with refusing("call"):
        return Method.of(folder.path, given, trusted())


def _document(folder: Folder, entry: StudyEntry, quick: Change, options: Options) -> Document:
    """The study file with what the paper's file replaces."""
    assert entry.file is not None, "a study has a file or a function"
    document = Document.read(folder.path / entry.file)
    others = options.changes.get(entry.name, Change())

    def place(table: str, key: str) -> tuple[str, int | None, KeyPath]:
        """The file of a key, and how it is called there."""
        if key in getattr(others, table):
            return str(folder.path / options.changes_file), None, (table, key)
        return str(folder.path / PAPER), None, ("study", entry.name, table, key)

    for key, value in [*entry.set.items(), *quick.set.items()]:
        try:
            document.take(steps_of(key), deepcopy(value), place("set", key))
        except LookupError as error:
            file, _, path = place("set", key)
            raise ScenarioError(Problem(dotted(path), str(error.args[0]), file=file)) from None
    changed = (entry.scenario, quick.scenario)
    document.data["set"] = _in_order(document.data.get("set", {}), *changed)
    document.places.update({("set", key): place("scenario", key) for table in changed for key in table})
    if "placements" in document.data:
        document.data["placements"] = _placements(document)
    return document


def _placements(document: Document) -> Any:
    """The study's placements as a list."""
    try:
        return listed_placements(document.data["placements"])
    except Problems as problems:
        raise ScenarioError(located((problem.under("placements") for problem in problems.problems), document)) from None


def _in_order(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """All changes, each key where it is changed last: a table must not replace what is changed inside it later."""
    merged: dict[str, Any] = {}
    for change in changes:
        for key, value in change.items():
            merged.pop(key, None)
            merged[key] = value
    return merged


def _check_levels(
    folder: Folder, entry: StudyEntry, factors: Mapping[str, Mapping[str, Any]], only: Mapping[str, Sequence[str]]
) -> None:
    """Raises ``ScenarioError`` for a factor or a level in ``only`` that the study does not have."""
    key, wrong = f"study {entry.name}: only", []
    for name, levels in only.items():
        if name not in factors:
            wrong.append(Problem.unknown(key, f"factor of {entry.file}", name, [*factors], name))
            continue
        known = [*factors[name]]
        wrong += [
            Problem.unknown(f"{key}.{name}", f"level of {entry.file}", level, known, level)
            for level in levels
            if level not in known
        ]
    if wrong:
        raise ScenarioError(problem.at(str(folder.path / "paper.toml"), None) for problem in wrong)


def _skipped(
    factors: Mapping[str, dict[str, Any]], only: Mapping[str, Sequence[str]], notes: list[str]
) -> Iterator[dict[str, Any]]:
    """Rules that exclude levels that were not selected, and levels whose recordings are missing, with a note."""
    for name, levels in factors.items():
        wanted = only.get(name, [*levels])
        for level in [value for value in levels if value in wanted]:
            try:
                levels[level] = _recordings(levels[level])
            except MissingError as missing:
                notes.append(f"{level} is not run: {missing}")
                wanted = [value for value in wanted if value != level]
        if others := [level for level in levels if level not in wanted]:
            yield {"where": {name: others}, "skip": True}


def _fewer(data: dict[str, Any], copied: str | None, options: Options) -> list[str]:
    """Applies upper bounds and additional controllers; returns what is reduced against the paper."""
    notes: dict[str, None] = {}
    there = data.get("placements", [])
    if options.placements is not None and options.placements < len(there):
        data["placements"] = there[: options.placements]
        notes[f"placements {options.placements} of {len(there)}"] = None
    treatments = data.get("treatments", {})
    arguments = data.get("measure", {}).get("arguments", {})
    for table in [*treatments.values(), arguments]:
        if options.periods is not None and table.get("periods", 0) > options.periods:
            notes[f"periods {options.periods} of {table['periods']}"] = None
            table["periods"] = options.periods
    if copied in treatments:
        for controller in options.also:
            treatments.setdefault(controller, {**treatments[copied], "controller": controller})
    if copied in arguments.get("controllers", ()):
        arguments["controllers"] = list(dict.fromkeys([*arguments["controllers"], *options.also]))
    return list(notes)


def _recordings(value: Any) -> Any:
    """The same with ``$VARIABLE/file`` replaced: in the folder that the variable names, or among fairlane's own.

    Raises ``MissingError`` if it is in neither.
    """
    if isinstance(value, dict):
        return {key: _recordings(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_recordings(inner) for inner in value]
    if not isinstance(value, str) or not value.startswith("$") or "/" not in value:
        return value
    variable, _, file = value[1:].partition("/")
    folders = [*([Path(environ[variable])] if variable in environ else []), RECORDINGS]
    for folder in folders:
        if (folder / file).is_file():
            return str((folder / file).resolve())
    raise MissingError(f"{variable}: there is no {file} in {' or in '.join(map(str, folders))}")
