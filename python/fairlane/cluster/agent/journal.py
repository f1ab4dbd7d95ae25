r"""The journal: every decision with its reason, every step of every change, and the jobs that the agent knows.

It is an SQLite database in write-ahead mode; every call is a transaction of its own that is on the disk when the call
returns. So whenever the process is killed, the journal says which step of a change had begun. A decision that changes
nothing is ``kept``; a change goes through these states::

    planned -> writing -> applied -> verified
                    \-> undoing -> undone       (also from ``applied``; ``planned`` -> ``undone``)
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fairlane.cluster.agent import cost
from fairlane.cluster.agent.jobs import Setting, Settings, ordered
from fairlane.cluster.agent.system import AgentError
from fairlane.core.statistics import Estimate
from fairlane.inputs.files import is_taken, take
from fairlane.inputs.hosts import SlurmJob

VERSION = 1
"""Of the tables; a journal of another version is refused."""
UNFINISHED = ("planned", "writing", "applied", "undoing")
"""States in which a change may be found after the process was killed."""
FINISHED = ("kept", "verified", "undone")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, backend TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    jobs TEXT NOT NULL, settings TEXT NOT NULL, before TEXT NOT NULL, reason TEXT NOT NULL,
    gain REAL, gain_low REAL, gain_high REAL, effects TEXT NOT NULL,
    old TEXT, written_at REAL, error TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS steps (
    id INTEGER PRIMARY KEY, decision INTEGER NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, note TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, began REAL NOT NULL, job TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS agent (
    only INTEGER PRIMARY KEY CHECK (only = 1), pid INTEGER, backend TEXT, started REAL, at REAL, doing TEXT
);
"""


@dataclass(frozen=True)
class Entry:
    """A decision in the journal."""

    id: int
    at: float
    """Time of the decision, s since 1970."""
    backend: str
    """Name of the backend; ``dry_run`` without ``--apply``."""
    kind: str
    """``change``; ``end`` where jobs have ended and lose their levels; ``keep`` where nothing changes."""
    state: str
    jobs: tuple[str, ...]
    """Numbers of the jobs that ran."""
    settings: Settings
    """The service levels that are to be in force."""
    before: Settings
    """Those that were in force when it was made."""
    reason: str
    gain: Estimate | None
    """The predicted mean change over jobs, relative."""
    effects: Mapping[str, Estimate]
    """The predicted change of each job."""
    old: str | None
    """The backend's state before, for bringing it back; None until it is known."""
    written_at: float | None
    """Time at which writing began, s since 1970."""
    error: str
    """Error message, if anything went wrong."""

    def written(self) -> dict[str, Any]:
        """As JSON."""
        gain = None if self.gain is None else _interval(self.gain)
        settings, before = ([setting.written() for setting in of] for of in (self.settings, self.before))
        effects = {job: _interval(effect) for job, effect in self.effects.items()}
        record = {"id": self.id, "at": self.at, "backend": self.backend, "kind": self.kind, "state": self.state}
        record |= {"jobs": list(self.jobs), "settings": settings, "before": before, "reason": self.reason}
        return record | {"gain": gain, "effects": effects, "written_at": self.written_at, "error": self.error}


class Journal:
    """A journal that is open for writing by this process alone. Use it in a ``with`` statement.

    Raises ``AgentError`` if another agent has it open, or it is no journal of this version, and at the end of the
    statement if it could not be written.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self.file = file
        self._clock = clock
        try:
            self._lock = os.open(_lock_of(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise AgentError(f"{file}: the journal cannot be made: {error.strerror}") from None
        try:
            alone = take(self._lock)
        except OSError as error:
            os.close(self._lock)
            raise AgentError(f"{_lock_of(file)}: cannot be locked: {error.strerror}") from None
        if not alone:
            os.close(self._lock)
            raise AgentError(f"{file}: another agent has this journal open; there can be one at a time")
        try:
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._open()
        except (sqlite3.Error, OSError, AgentError) as error:
            os.close(self._lock)
            raise AgentError(f"{file}: not a journal of fairlane agent: {error}") from None

    def _open(self) -> None:
        self._data = sqlite3.connect(self.file, isolation_level=None)
        self._data.execute("PRAGMA journal_mode = WAL")
        self._data.execute("PRAGMA synchronous = FULL")
        version = self._data.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise AgentError(f"it has version {version}; this is version {VERSION}")
        self._data.executescript(_SCHEMA + cost.SCHEMA)
        self._data.execute(f"PRAGMA user_version = {VERSION}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        self._data.close()
        os.close(self._lock)
        if isinstance(error, sqlite3.Error):  # as of a disk that is full
            raise AgentError(f"{self.file}: the journal cannot be written: {error}; its last state holds") from None

    def decided(
        self,
        backend: str,
        kind: str,
        jobs: Sequence[str],
        settings: Settings,
        before: Settings,
        reason: str,
        gain: Estimate | None = None,
        effects: Mapping[str, Estimate] | None = None,
    ) -> int:
        """Keeps a decision, ``kept`` if its kind is ``keep``, else ``planned``; returns its number."""
        state = "kept" if kind == "keep" else "planned"
        shown = {job: _interval(effect) for job, effect in (effects or {}).items()}
        interval = (gain.value, gain.low, gain.high) if gain else (None, None, None)
        now = self._clock()
        row = (now, backend, kind, state, json.dumps(list(jobs)), _dump(settings), _dump(before), reason)
        with self._transaction():
            number = self._data.execute(
                "INSERT INTO decisions (at, backend, kind, state, jobs, settings, before, reason, gain, gain_low, "
                "gain_high, effects) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, *interval, json.dumps(shown)),
            ).lastrowid
            assert number is not None, "of a row that was inserted"
            self._step(number, state, reason, now)
        return number

    def moved(self, decision: int, state: str, note: str = "", old: str | None = None) -> None:
        """A change has reached a state; ``old`` comes with ``writing``."""
        now = self._clock()
        with self._transaction():
            self._data.execute("UPDATE decisions SET state = ? WHERE id = ?", (state, decision))
            if state == "writing":
                values = (old, now, decision)
                self._data.execute("UPDATE decisions SET old = ?, written_at = ? WHERE id = ?", values)
            if state in ("undoing", "undone") and note:
                self._data.execute("UPDATE decisions SET error = ? WHERE id = ? AND error = ''", (note, decision))
            self._step(decision, state, note, now)

    def noted(self, decision: int, note: str) -> None:
        """Something happened in a state that does not change it, as an attempt that failed."""
        state = self._data.execute("SELECT state FROM decisions WHERE id = ?", (decision,)).fetchone()[0]
        self._step(decision, state, note, self._clock())

    def unfinished(self, backend: str) -> list[Entry]:
        """The changes of a backend that have not come to an end, the last one first."""
        marks = ", ".join("?" * len(UNFINISHED))
        return self._select(f"backend = ? AND state IN ({marks}) ORDER BY id DESC", (backend, *UNFINISHED))

    def in_force(self, backend: str) -> Settings:
        """The settings of the last change that was verified."""
        entries = self._select("backend = ? AND state = 'verified' ORDER BY id DESC LIMIT 1", (backend,))
        return entries[0].settings if entries else ()

    def changes_since(self, backend: str, at: float) -> list[float]:
        """Return the times of changes from an instant on, s since 1970, the first one first."""
        query = "SELECT written_at FROM decisions WHERE backend = ? AND written_at > ? ORDER BY written_at"
        return [float(row[0]) for row in self._data.execute(query, (backend, at))]

    def entry(self, decision: int) -> Entry:
        """A decision by its number."""
        return self._select("id = ?", (decision,))[0]

    def began(self, job: SlurmJob) -> None:
        """A job is known to run."""
        values = (job.id, self._clock(), json.dumps(job.written()))
        statement = (
            "INSERT INTO jobs (id, began, job) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET job = excluded.job"
        )
        self._data.execute(statement, values)

    def ended(self, job: str) -> None:
        """A job does not run any more."""
        self._data.execute("DELETE FROM jobs WHERE id = ?", (job,))

    def jobs(self) -> dict[str, SlurmJob]:
        """The jobs that were known to run, by number."""
        return _jobs(self._data)

    def doing(self, backend: str, words: str, *, start: bool = False) -> None:
        """Keep a message on the agent's present work, for ``fairlane agent status``."""
        now = self._clock()
        query = "SELECT started FROM agent WHERE only = 1"
        row = self._data.execute(query).fetchone()
        started = now if start or row is None else row[0]
        values = (1, os.getpid(), backend, started, now, words)
        self._data.execute("INSERT OR REPLACE INTO agent VALUES (?, ?, ?, ?, ?, ?)", values)

    def measured(self, backend: str, period_s: float, read_s: float, change_s: float) -> cost.Cost | None:
        """Keeps what reading and changing have taken of a controller's period, s; returns that of the last ones."""
        with self._transaction():
            cost.keep(self._data, backend, period_s, read_s, change_s)
        return cost.cost_of(self._data, backend)

    def _step(self, decision: int, state: str, note: str, now: float) -> None:
        values = (decision, now, state, note)
        self._data.execute("INSERT INTO steps (decision, at, state, note) VALUES (?, ?, ?, ?)", values)

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._data)

    def _select(self, where: str, values: Sequence[object]) -> list[Entry]:
        return list(_entries(self._data, where, values))


class _Transaction:
    """Within, all or nothing is kept."""

    def __init__(self, data: sqlite3.Connection) -> None:
        self._data = data

    def __enter__(self) -> None:
        self._data.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._data.execute("COMMIT" if kind is None else "ROLLBACK")


@dataclass(frozen=True)
class Status:
    """State of the agent according to its journal."""

    runs: bool
    """Whether an agent has the journal open now."""
    pid: int | None
    backend: str
    started: float | None
    """s since 1970."""
    at: float | None
    """Time of that message, s since 1970."""
    doing: str
    jobs: Mapping[str, SlurmJob]
    settings: Settings
    """The service levels in force, by the journal."""
    decisions: Sequence[Entry]
    """The last decisions, the latest first."""
    cost: "cost.Cost | None" = None
    """What reading and changing have taken of the last periods of a controller."""

    def written(self) -> dict[str, Any]:
        """The status as JSON has it."""
        return {
            "runs": self.runs,
            "pid": self.pid if self.runs else None,
            "backend": self.backend,
            "started": self.started,
            "at": self.at,
            "doing": self.doing,
            "jobs": [job.written() for job in self.jobs.values()],
            "settings": [setting.written() for setting in self.settings],
            "decisions": [entry.written() for entry in self.decisions],
            "cost": None if self.cost is None else self.cost.written(),
        }


def status_of(file: Path, most: int = 10) -> Status:
    """The state of the agent of a journal, which may run or not. Raises ``AgentError`` if there is no journal."""
    if not file.is_file():
        raise AgentError(f"{file}: there is no journal; an agent makes it when it starts")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as data:
            row = data.execute("SELECT pid, backend, started, at, doing FROM agent").fetchone()
            pid, backend, started, at, doing = row or (None, "", None, None, "")
            where = "backend = ? AND state = 'verified' ORDER BY id DESC LIMIT 1"
            settings = next((entry.settings for entry in _entries(data, where, (backend,))), ())
            last = list(_entries(data, "1 ORDER BY id DESC LIMIT ?", (most,)))
            spent = cost.cost_of(data, backend)
            return Status(_is_locked(file), pid, backend, started, at, doing, _jobs(data), settings, last, spent)
    except sqlite3.Error as error:
        raise AgentError(f"{file}: not a journal of fairlane agent: {error}") from None


def steps_of(file: Path, decision: int) -> list[tuple[float, str, str]]:
    """Time, state and note of each step of a decision."""
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as data:
        return list(data.execute("SELECT at, state, note FROM steps WHERE decision = ? ORDER BY id", (decision,)))


def _lock_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def _is_locked(file: Path) -> bool:
    try:
        lock = os.open(_lock_of(file), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return is_taken(lock)
    finally:
        os.close(lock)


def _jobs(data: sqlite3.Connection) -> dict[str, SlurmJob]:
    return {
        row[0]: SlurmJob.read(json.loads(row[1])) for row in data.execute("SELECT id, job FROM jobs ORDER BY began")
    }


def _entries(data: sqlite3.Connection, where: str, values: Sequence[object]) -> Iterator[Entry]:
    query = (
        "SELECT id, at, backend, kind, state, jobs, settings, before, reason, gain, gain_low, gain_high, effects, old, "
        f"written_at, error FROM decisions WHERE {where}"
    )
    for row in data.execute(query, values):
        gain = None if row[9] is None else Estimate(*row[9:12])
        effects = {job: Estimate(*ends) for job, ends in json.loads(row[12]).items()}
        settings, before = (ordered(map(Setting.read, json.loads(text))) for text in row[6:8])
        identity: tuple[int, float, str, str, str] = row[:5]
        end: tuple[str | None, float | None, str] = row[13:16]
        yield Entry(*identity, tuple(json.loads(row[5])), settings, before, row[8], gain, effects, *end)


def _dump(settings: Settings) -> str:
    return json.dumps([setting.written() for setting in settings])


def _interval(of: Estimate) -> list[float | None]:
    return [of.value, of.low, of.high]
