"""Registries of names in inputs: one for each kind of thing, as workloads or controllers.

A name stands for what the folder's own table has, or what an installed package offers under an entry point of the
kind's group (``fairlane.workloads``, ``fairlane.controllers``, ...). ``file.py:Name`` stands for what a file defines:
that runs only with permission (``fairlane.inputs.code``). A package's code needs none, as whoever installed it trusts
it. Two that offer one name are an error.
"""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from fairlane.core.errors import Problem
from fairlane.inputs.code import Code, may_run
from fairlane.inputs.document import current_document, override
from fairlane.inputs.parameters import BUILT_IN, Entry
from fairlane.inputs.problems import Problems, under, validated
from fairlane.inputs.table import Table

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_OWN = "fairlane_own_"  # how the modules of users' files are called
_GROUPS = "fairlane."  # how the groups of entry points begin
_PLUGIN = "_fairlane_plugin"  # the attribute of what is not built in that says where it comes from


class Named(Table):
    """The base of classes that inputs name. The fields of a subclass are its parameters, in addition to the name."""

    name: ClassVar[str] = ""
    """Its name in inputs; without a registry the name of the class."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def parameters(self) -> dict[str, Any]:
        """Its parameters, quantities as strings with units."""
        return self.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True)
class Origin:
    """Origin of a thing that an input names."""

    kind: str
    """Its kind, as ``workload``."""
    name: str
    """Its name in the input."""
    source: str
    """``built-in``, a package with its version, or a file."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.source}"


_used: ContextVar[list[Origin] | None] = ContextVar("_used", default=None)


@contextmanager
def used() -> Iterator[list[Origin]]:
    """Within, whatever inputs name that is not built in is noted in the list, once each."""
    origins: list[Origin] = []
    with override(_used, origins):
        yield origins


class Registry(Mapping[str, T], Generic[T]):
    """The things of one kind, by name.

    As a mapping it holds what is built in and what installed packages offer, which is imported when it is asked for.

    Args:
        kind: What it is, for messages: ``workload``.
        group: The group of entry points.
        builtin: The folder's own.
        base: The class that each of them is derived from; None for functions.
        unread: Stands for code of a file that is not permitted, where such code is only listed; a class then takes any
            parameters.
        key: The key of the name in a table.
        parent: Another registry whose names these are, too.
        reserved: Names that mean something else.
    """

    own = '"file.py:Name"'
    """Other forms of names in inputs, for messages."""

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, T],
        *,
        unread: T,
        base: type | None = None,
        key: str = "name",
        parent: "Registry[T] | None" = None,
        reserved: Iterable[str] = (),
    ) -> None:
        self.kind, self.group, self.builtin = kind, group, builtin
        self._base, self._unread, self._parent = base, unread, parent
        self.key, self._reserved = key, tuple(reserved)
        for name, thing in builtin.items():
            _call(thing, name)

    def __getitem__(self, name: str) -> T:
        if name in self.builtin:
            return self.builtin[name]
        offers = self._offers(name)
        if offers:
            return self._load(offers[0])
        if self._parent is not None:
            return self._parent[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        parent = self._parent or ()
        return iter(dict.fromkeys([*parent, *self.builtin, *_offered(self.group, tuple(sys.path))]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def find(self, name: str) -> T:
        """Return the thing that an input calls ``name``, also ``file.py:Name``; ``Problems`` if there is none."""
        file, colon, attribute = name.rpartition(":")
        if colon and file.endswith(".py"):
            return self._from_file(current_document.get().folder / file, attribute, name)
        sources = self._sources(name)
        if len(sources) > 1:
            message = f"more than one {self.kind} has this name: that of {' and that of '.join(sources)}"
            raise Problems(Problem("", message, name, "one of them: uninstall a package"))
        if name not in list(self):
            raise Problems(Problem.unknown("", self.kind, name, [*self, *self._reserved, self.own], name))
        if sources[0] != BUILT_IN:
            self._note(name, sources[0])
        return self[name]

    def read(self, given: Any) -> Any:
        """A name, or a table with ``name`` and parameters, as an object; an object stays itself.

        Raises ``Problems``, and ``ValueError`` for anything else: it is for models' validators.
        """
        if self._base is not None and isinstance(given, self._base):
            return given
        key = self.key
        table = {key: given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or not isinstance(table.get(key), str):
            raise ValueError(f"expected the name of a {self.kind}, or a table with its `{key}` and parameters")
        with under("" if isinstance(given, str) else key):
            thing: Any = self.find(table[key])
        return validated(thing, {name: value for name, value in table.items() if name != key})

    def written(self, thing: Named) -> dict[str, Any]:
        """The table that ``read`` reads again; one from a user's file is named with the file."""
        file = file_of(thing)
        return {self.key: f"{file}:{type(thing).__name__}" if file else type(thing).name, **thing.parameters()}

    def entry(self, name: str) -> Entry:
        """Describe one of them, by its name or as ``file.py:Name``; ``Problems`` as ``find``."""
        thing = self.find(name)
        origin = " and ".join(self._sources(name)) or file_of(thing) or name
        return Entry(name, self.summary(thing), _schema_of(thing), origin=origin)

    def entries(self) -> dict[str, Entry]:
        """Describe each by name. The entry of a package that cannot be imported says so."""
        by_name = {}
        for name in self:
            source = " and ".join(self._sources(name))
            try:
                thing = self[name]
                by_name[name] = Entry(name, self.summary(thing), _schema_of(thing), origin=source)
            except Problems as problems:
                by_name[name] = Entry(name, problems.problems[0].message, origin=source)
        return by_name

    def _sources(self, name: str) -> list[str]:
        parent = self._parent._sources(name) if self._parent is not None else []
        built_in = [BUILT_IN] if name in self.builtin or name in self._reserved else []
        return [*parent, *built_in, *map(_package, self._offers(name))]

    def _offers(self, name: str) -> "list[EntryPoint]":
        return _offered(self.group, tuple(sys.path)).get(name, [])

    def _load(self, offer: "EntryPoint") -> T:
        """Return the thing of an entry point; ``Problems`` if it is not of the kind."""
        package = _package(offer)
        try:
            thing = offer.load()
        except Exception as error:
            message = f"{offer.value} of {package} cannot be imported: {type(error).__name__}: {error}"
            raise Problems(Problem("", message, offer.name)) from error
        accepted = self.accepted(thing)
        if accepted is None:
            raise Problems(Problem("", f"{offer.value} of {package} is no {self.kind}", offer.name, self.wanted))
        if accepted not in self.builtin.values():
            _call(accepted, offer.name, package)
        return accepted

    @property
    def wanted(self) -> str:
        """Allowed things, as a phrase."""
        base = self._base
        return f"a class derived from {base.__module__.removesuffix('.base')}.{base.__name__}" if base else "a function"

    def summary(self, thing: T) -> str:
        """One line about one of them."""
        return summary_of(thing)

    def accepted(self, thing: Any) -> T | None:
        """Return a thing of a package or file if it is of the kind: a function or a derived class; else None."""
        base = self._base
        fits = callable(thing) if base is None else isinstance(thing, type) and issubclass(thing, base)
        return thing if fits else None

    def _from_file(self, file: Path, attribute: str, name: str) -> T:
        """Return the attribute of a file, imported under a name of its own."""
        if not file.is_file():
            raise Problems(Problem("", f"there is no file {str(file)!r}", name))
        if not may_run(Code(file, attribute), name):
            return self._stand_in(attribute)
        module = import_file(file, name)
        defined = {
            key: value
            for key, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and self.accepted(value) is not None
        }
        if attribute not in defined:
            raise Problems(Problem.unknown("", f"{self.kind} in {str(file)!r}", attribute, list(defined), name))
        thing: T = defined[attribute]
        _call(thing, attribute, str(file))
        self._note(attribute, str(file))
        return thing

    def _stand_in(self, attribute: str) -> T:
        """In the place of code that is listed and does not run."""
        stand_in: Any = self._unread
        if isinstance(stand_in, type):
            told = {"__doc__": "It has not been read.", "__module__": __name__}
            stand_in = type(attribute, (stand_in,), {**told, "model_config": ConfigDict(extra="allow")})
        thing: T = stand_in
        return thing

    def _note(self, name: str, source: str) -> None:
        noted = _used.get()
        if noted is not None and Origin(self.kind, name, source) not in noted:
            noted.append(Origin(self.kind, name, source))


def file_of(thing: object) -> str | None:
    """The user's file that an object or its class was found in by ``file.py:Name``; None for any other."""
    module = getattr(thing, "__module__", "")
    return sys.modules[module].__file__ if module.startswith(_OWN) else None


def blamed(thing: object, key: str, error: Exception) -> Problem | None:
    """The problem about ``key`` that an error is in code of a user's file or of a package; None in any other."""
    if getattr(thing, _PLUGIN, None) is None:
        return None
    file = sys.modules[thing.__module__].__file__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return Problem(key, f"{type(error).__name__}: {error}", file=file, line=lines[-1] if lines else None)


def code_of_packages() -> Iterator[str]:
    """Yield the package of each entry point for fairlane, with a digest of its Python."""
    offered = _installed(tuple(sys.path))
    for group in sorted(group for group in offered.groups if group.startswith(_GROUPS)):
        for offer in offered.select(group=group):
            yield f"{group} {offer.name} {offer.value} {_package(offer)} {_code_of(offer.module.partition('.')[0])}"


def _code_of(module: str) -> str:
    """A digest of the Python files of a module or package, which is not imported."""
    spec = importlib.util.find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = sorted(file for folder in folders for file in Path(folder).rglob("*.py"))
    files = files or [Path(spec.origin)] if spec and spec.origin else files
    digest = sha256()
    for file in files:
        digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def summary_of(thing: object) -> str:
    """One line about it: the first of its documentation."""
    return (inspect.getdoc(thing) or str(getattr(thing, "__name__", ""))).partition("\n")[0]


def _schema_of(thing: object) -> dict[str, Any]:
    """JSON schema of its parameters; empty if it has none. One without a description has that of a base's."""
    if not (isinstance(thing, type) and issubclass(thing, BaseModel)):
        return {}
    schema = thing.model_json_schema()
    for name, value in schema.get("properties", {}).items():
        fields = (base.model_fields.get(name) for base in thing.__mro__ if issubclass(base, BaseModel))
        described = next((field.description for field in fields if field and field.description), None)
        if described:
            value.setdefault("description", described)
    return schema


def _call(thing: Any, name: str, source: str | None = None) -> None:
    """A class goes by the name under which it is registered; what is not built in is marked by where it is from."""
    if isinstance(thing, type) and issubclass(thing, Named):
        thing.name = name
    if source is not None and callable(thing):
        setattr(thing, _PLUGIN, source)


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> Any:
    """Entry points of all packages on the path: reading them takes some 20 ms, so a process does so once."""
    return entry_points()


@lru_cache(maxsize=32)
def _offered(group: str, path: tuple[str, ...]) -> "dict[str, list[EntryPoint]]":
    offers: dict[str, list[EntryPoint]] = {}
    for offer in sorted(_installed(path).select(group=group), key=lambda offer: offer.name):
        offers.setdefault(offer.name, []).append(offer)
    return offers


def _package(offer: "EntryPoint") -> str:
    """The package that an entry point is of, with its version."""
    return f"{offer.dist.name} {offer.dist.version}" if offer.dist else offer.module


def import_file(file: Path, name: str) -> ModuleType:
    """The module of a user's file, imported anew, as it may have changed; raises ``Problems`` about the key ``""``."""
    called = f"{_OWN}{sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(called, file)
    if spec is None or spec.loader is None:
        raise Problems(Problem("", f"{str(file)!r} cannot be imported", name))
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        message = f"{str(file)!r} cannot be imported: {type(error).__name__}: {error}"
        raise Problems(Problem("", message, name)) from error
    return module
