"""Jobs that replay what was recorded: OTF2, DUMPI, GOAL, Chakra, SimAI, lists of flows; plain or as ``.tar.zst``."""

import importlib.util
import io
import json
import re
import shutil
import tarfile
import tempfile
from contextlib import suppress
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fairlane.core import bridge
from fairlane.core.errors import BuildError, Problem, RunError, ScenarioError, nearest
from fairlane.core.units import ITERATION_RANGES, Duration, Size, Written, iteration_range
from fairlane.core.wording import seconds
from fairlane.inputs.document import current_document
from fairlane.inputs.files import MOST_STORED, ExpansionError, parse_json, read_bytes, unpacked
from fairlane.inputs.problems import Problems, refusing, validated
from fairlane.inputs.table import Table
from fairlane.model.workload.base import Share
from fairlane.model.workload.recorded import (
    describe_apart,
    file_marks,
    is_otf2,
    iteration_problems,
    left_out_text,
    repeat_problems,
    unsupported_problems,
)
from fairlane.model.workload.writer import CollectiveKind

if TYPE_CHECKING:
    from fairlane.model.power import Pace

MOST_MEMBERS = 1_000_000
"""Files in an archive."""
MOST_HEADER = 1 << 20
"""Bytes from the end of one member's data to the beginning of the next one's."""
MOST_DEPTH = 32
"""Folders within each other."""
MOST_NAME = 1024
"""Characters of a path in an archive."""
_DAMAGE = (ValueError, OverflowError, LookupError, RecursionError)
"""Exceptions of ``tarfile`` besides its own errors, as for a size in words; an ``ExpansionError`` is one."""
_FILES, _SUMS = "files", "sha256.json"
"""In the cache: what was unpacked, and the SHA-256 of each file."""


class Iteration(Table):
    """Definition of an iteration of a trace. Default: one pass from its start to its end."""

    collective: CollectiveKind | None = Field(default=None, description="from one call of this collective to the next")
    every: int = Field(default=1, ge=1, lt=2**32, description="only every n-th of these calls, from the first one on")
    bytes: Size | None = Field(
        default=None, description="only calls to which a rank hands in so many bytes, as recorded"
    )
    communicator: Literal["world"] | None = Field(
        default=None, description="world: only calls of all ranks; default: on any communicator"
    )
    region: str | None = Field(default=None, description="from one entry of this OTF2 region to the next")

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if self.collective and self.region:
            raise ValueError("collective and region exclude each other: give one")
        # A written scenario has all keys, including those that do not apply.
        choosing = self.model_fields_set - {"collective", "region"}
        given = {key for key in choosing if getattr(self, key) != type(self).model_fields[key].default}
        if given and not self.collective:
            raise ValueError(f"{' and '.join(sorted(given))} choose among the calls of a collective: give collective")
        return self

    @property
    def options(self) -> dict[str, Any] | str:
        """As the reader takes it."""
        if self.collective:
            of = {"kind": self.collective, "every": self.every, "bytes": self.bytes}
            return {"collective": {**of, "world": self.communicator == "world"}}
        return {"region": self.region} if self.region else "pass"


def _read_iteration(given: Any) -> Any:
    if given == "pass":
        return Iteration(collective=None, region=None)
    if isinstance(given, str):
        raise Problems(
            Problem("", "not a kind of iteration", given, 'pass, { collective = "..." }, { region = "..." }')
        )
    return given


def _read_range(given: Any) -> Any:
    """A range of iterations, of which one may be written as a number."""
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    span = iteration_range(text) if isinstance(text, str) else None
    first, last = span or (0, 0)
    if first == 0 or last == 0 or (first and last and last < first):
        raise Problems(Problem("", "no range of iterations from 1", given, ITERATION_RANGES))
    return text


def _in_folder(path: Path) -> Path:
    """The path seen from the scenario's folder."""
    target = current_document.get().folder / path
    if not target.exists():
        others = [str(path.with_name(other.name)) for other in target.parent.glob("*")]
        raise Problems(Problem("", f"there is no {str(target)!r}", str(path), nearest=nearest(str(path), others)))
    return target


class Trace(Table):
    """A recorded application and how to replay it. By default it is repeated to the end of the run."""

    path: Annotated[Written[Path], AfterValidator(_in_folder)] = Field(
        description="an OTF2 or DUMPI archive, a GOAL schedule, Chakra execution traces NAME.RANK.et, a connection "
        "matrix of htsim, a flow file of ns-3 or a workload file of SimAI: the folder or file, or a .tar.zst with it"
    )
    iteration: Annotated[
        Written[Iteration], BeforeValidator(_read_iteration, json_schema_input_type=Literal["pass"] | Iteration)
    ] = Field(default_factory=lambda: Iteration(collective=None, region=None), description="definition of an iteration")
    iterations: Written[Annotated[str, BeforeValidator(_read_range)]] | None = Field(
        default=None,
        description="only these iterations, as 20..24, 20.., ..24 or 20: the first one begins at the first call or "
        "entry that bounds iterations; what is in front of them is not simulated; default: the whole trace",
    )
    after: Duration | None = Field(
        default=None,
        description="only iterations that begin so long after the start of the recording, by rank 0's wall clock",
    )
    compute_scale: float = Field(default=1.0, ge=0, description="factor on the compute time between MPI calls")
    message_scale: float = Field(
        default=1.0, gt=0, le=1e6, description="factor on the bytes of messages and collectives, rounded"
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="calls that cannot be simulated and are skipped: names, or prefixes with *"
    )
    repeat: bool = Field(default=True, description="whether the trace is repeated when it ends")
    groups: Annotated[Written[Path], AfterValidator(_in_folder)] | None = Field(
        default=None,
        description="process groups of Chakra traces: a JSON file with the ranks of each by name (pg_name); default: "
        "those that PyTorch records",
    )
    memory_bound: Share = Field(
        default=0.0, description="share of the compute time that is memory-bound: a power cap does not slow it down"
    )

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if self.after is not None and self.iterations is not None:
            raise ValueError("after and iterations exclude each other: give one")
        return self

    @property
    def _given_part(self) -> tuple[str, str | None]:
        """The key that says which part is replayed, and its value in words."""
        return ("iterations", self.iterations) if self.after is None else ("after", seconds(self.after * 1e-12))

    def program(self, pace: "Pace | None" = None) -> bridge.Program:
        """Opens the trace, with the compute times that a ``pace`` makes.

        The whole trace is read once before: raises ``Problems`` when it cannot be read, and when anything in it cannot
        be simulated.
        """
        try:
            trace = unpack(self.path)
            description = self._description(trace)
            problems = unsupported_problems(description, self.exclude, str(self.path))
            problems += iteration_problems(description, self.iteration.collective, self.iteration.region)
            first, last, more = self._part(description)
            problems += more
            if self.repeat:
                problems += repeat_problems(description, str(self.path))
            if problems:
                raise Problems(*problems)
            options = {
                **self._reading,
                "compute_scale": self.compute_scale,
                "rank_scales": pace.factors() if pace else [],
                "message_scale": self.message_scale,
                "leave_out": self.exclude,
                "from": first,
                "to": last,
                "repeat": self.repeat,
            }
            return bridge.open_trace(str(trace), json.dumps(options))
        except (BuildError, RunError, OSError) as error:
            message = str(error).removeprefix("trace: ")
            if of_part := re.match(r'(?:from|to) = "\d+": ', message):
                key, value = self._given_part
                raise Problems(Problem(key, message[of_part.end() :], value)) from None
            raise Problems(Problem("path", message, str(self.path))) from None

    def _part(self, description: dict[str, Any]) -> tuple[int | None, int | None, list[Problem]]:
        """The first and the last iteration that are replayed, where they are given; what is wrong with them."""
        first, last = (iteration_range(self.iterations) if self.iterations else None) or (None, None)
        key, value = self._given_part
        if value is not None and self.iteration.options == "pass":
            return (
                None,
                None,
                [Problem(key, "a part of a trace takes a definition of iterations: give iteration", value)],
            )
        if self.after is None or description.get("ranks_without_iterations"):
            return first, last, []
        if not (starts := description.get("iteration_starts", [])):
            return None, None, [Problem("after", "the trace has no wall clock", value, "iterations = FIRST..LAST")]
        first = next((number for number, start in enumerate(starts, 1) if start * 1e12 >= self.after), None)
        if first is None:
            message = f"no iteration begins then: the last one does after {seconds(starts[-1])}"
            return None, None, [Problem("after", message, value)]
        return first, None, []

    def share(self, description: dict[str, Any]) -> float:
        """The share of the recording that is replayed, by its iterations; 1 where the description has none."""
        all_of_it = len(description.get("iteration_starts", ()))
        first, last, problems = self._part(description)
        if problems or not all_of_it:
            return 1.0
        return max(0, min(last or all_of_it, all_of_it) - (first or 1) + 1) / all_of_it

    def left_out(self) -> str | None:
        """The calls of the trace that ``exclude`` removes, with counts; None without it."""
        return left_out_text(self._description(unpack(self.path)), self.exclude) if self.exclude else None

    def describe(self) -> dict[str, Any]:
        """Ranks, events, calls, bytes, communicators, requests, windows, neighbours and CPU time of the trace.

        Under ``unsupported`` it has what a simulation would refuse, under ``ranks_without_iterations`` how many ranks
        never reach what bounds iterations, if there are any.
        """
        try:
            return self._description(unpack(self.path))
        except Problems as problems:
            raise ScenarioError(
                Problem("", problem.message, nearest=problem.nearest, file=str(self.path))
                for problem in problems.problems
            ) from None
        except (BuildError, RunError, OSError) as error:
            message = str(error).removeprefix("trace: ")
            named = message.startswith(str(self.path))
            raise ScenarioError(Problem("", message, file=None if named else str(self.path))) from None

    def _description(self, trace: Path) -> dict[str, Any]:
        marks = file_marks(trace) + (file_marks(self.groups) if self.groups else ())
        description: dict[str, Any] = json.loads(_describe(str(trace), json.dumps(self._reading), marks))
        return description

    @property
    def _reading(self) -> dict[str, Any]:
        """The options without which the trace cannot be read."""
        groups = str(self.groups) if self.groups else None
        return {"iteration": self.iteration.options, "otf2_library": otf2_library(), "groups": groups}

    def __str__(self) -> str:
        return self.path.name.split(".")[0]


def read_trace(path: Path) -> Trace:
    """The trace at ``path``; raises ``ScenarioError`` if there is none."""
    with refusing():
        return validated(Trace, {"path": path})


@lru_cache(maxsize=64)
def _describe(trace: str, options: str, marks: tuple[tuple[str, int, int], ...]) -> str:
    """The description of a trace, which a process makes once as long as the files stay as they are."""
    if is_otf2(Path(trace)):
        return describe_apart(trace, options, sum(size for _, size, _ in marks))
    return bridge.describe_trace(trace, options)


def otf2_library() -> str | None:
    """Return the path of the C library of the ``otf2`` package, if it is installed."""
    try:
        spec = importlib.util.find_spec("_otf2._otf2") or importlib.util.find_spec("_otf2")
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


def unpack(path: Path) -> Path:
    """The trace itself: an archive is unpacked once, into the user's cache, and found there from then on.

    A folder may hold the trace in one of its folders. Raises ``Problems`` if there are several, or if the folder is a
    part of one.
    """
    if not path.name.endswith((".tar.zst", ".tzst")):
        return _below(path) if path.is_dir() else path
    from platformdirs import user_cache_path

    stat = path.stat()
    mark = sha256(f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:16]
    target = user_cache_path("fairlane") / "traces" / f"{path.name.split('.')[0]}-{mark}"
    if not _is_whole(target, _marks(target)):
        _extract(path, target)
    return _trace_in(target / _FILES, path)


@lru_cache(maxsize=64)
def _is_whole(target: Path, marks: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether all that was unpacked is there as it was written; a process compares once while it stays the same."""
    try:
        sums = parse_json(read_bytes(target / _SUMS, MOST_STORED))
        return bool(marks) and sums == {name: _sum(target / _FILES / name) for name, _, _ in marks}
    except (OSError, ValueError):
        return False


def _marks(target: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every file that was unpacked."""
    folder = target / _FILES
    files = ((file.relative_to(folder).as_posix(), file.lstat()) for file in sorted(folder.rglob("*")))
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in files if S_ISREG(stat.st_mode))


def _sum(file: Path) -> str:
    with file.open("rb") as data:
        return file_digest(data, "sha256").hexdigest()


def _trace_in(folder: Path, archive: Path) -> Path:
    """The OTF2 anchor, GOAL or htsim file, or the folder that holds DUMPI or Chakra files, wherever the archive has it.

    Without any of these, the file that is a graph or a list of flows by its content. Raises ``Problems`` if there are
    several.
    """
    traces = _traces(folder, "**/")
    if not traces:
        traces = [file for file in sorted(folder.rglob("*")) if file.is_file() and bridge.is_graph(str(file))]
    _refuse_several(traces, folder, archive, "unpack it and name one")
    return traces[0] if traces else folder


def _below(folder: Path) -> Path:
    """The trace in a folder, or in a folder up to two levels below it; the folder itself if there is none."""
    for depth in range(3):
        traces = _traces(folder, "*/" * depth)
        if depth or (traces and traces[0].suffix in {".goal", ".cm"}):
            _refuse_several(traces, folder, folder, "name one")
        if traces:
            return traces[0] if depth or traces[0].suffix in {".goal", ".cm"} else folder
    anchor = next((file for file in sorted(folder.resolve().parent.glob("*.otf2")) if file.is_file()), None)
    if anchor is not None:
        message = f"no trace; the folder above has {anchor.name}"
        raise Problems(Problem("path", message, str(folder), nearest=str(folder.parent / anchor.name)))
    return folder


def _traces(folder: Path, below: str) -> list[Path]:
    """Files of OTF2, GOAL and htsim, and folders with DUMPI or Chakra files, whose paths begin with ``below``."""
    files = [
        file for kind in ("otf2", "goal", "cm") for file in sorted(folder.glob(f"{below}*.{kind}")) if file.is_file()
    ]
    folders = {file.parent for kind in ("meta", "et") for file in folder.glob(f"{below}*.{kind}")}
    traces = files + sorted(folders)
    return traces or sorted({file.parent for file in folder.glob(f"{below}*-[0-9]*.bin")})


def _refuse_several(traces: list[Path], folder: Path, given: Path, advice: str) -> None:
    if len(traces) > 1:
        first, second = (trace.relative_to(folder).as_posix() for trace in traces[:2])
        raise Problems(Problem("path", f"holds several traces: {first} and {second}; {advice}", str(given)))


def _extract(archive: Path, target: Path) -> None:
    """Unpacks next to the target and renames at the end, so that no process reads half a trace.

    A target that has changed since it was unpacked is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        files = scratch / "new" / _FILES
        files.mkdir(parents=True)
        _unpack_into(files, archive)
        sums = {name: _sum(files / name) for name, _, _ in _marks(scratch / "new")}
        (scratch / "new" / _SUMS).write_text(json.dumps(sums), encoding="utf-8")
        _put_in_place(scratch / "new", target, scratch / "old")
    except (OSError, tarfile.TarError, *_DAMAGE) as error:
        if not _is_whole(target, _marks(target)):  # unless another process has just been faster
            raise Problems(Problem("path", f"cannot be unpacked: {error}", str(archive))) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Renames ``new`` to ``target``, unless another process has just been faster: others may be reading its files."""
    try:
        new.rename(target)
    except OSError:  # there is a folder that is not empty
        if not _is_whole(target, _marks(target)):
            with suppress(FileNotFoundError):
                target.rename(old)
            new.rename(target)


def _unpack_into(folder: Path, archive: Path) -> None:
    """Unpacks member by member, within limits. Raises ``ExpansionError`` and what reading and writing do."""
    room = shutil.disk_usage(folder).free
    with unpacked(archive, room) as limited:
        limited.expect(MOST_HEADER)
        with tarfile.open(fileobj=io.BufferedReader(limited, tarfile.BLOCKSIZE), mode="r|") as tar:
            for number, member in enumerate(tar):
                if number >= MOST_MEMBERS:
                    raise ExpansionError(f"has more than {MOST_MEMBERS} members")
                _check_member(member, room)
                limited.expect(None)
                tar.extract(member, folder, filter="data")
                limited.expect(MOST_HEADER)


def _check_member(member: tarfile.TarInfo, room: int) -> None:
    name = member.name if len(member.name) <= 60 else f"{member.name[:57]}..."
    if member.name.count("/") >= MOST_DEPTH or len(member.name) > MOST_NAME:
        raise ExpansionError(f"member {name!r}: a path with more than {MOST_DEPTH} levels or {MOST_NAME} characters")
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise ExpansionError(f"member {name!r}: neither a plain file nor a folder")
    if member.size > room:
        raise ExpansionError(f"member {name!r}: {member.size} bytes, more than the disk has room for")
