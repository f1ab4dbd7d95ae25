"""The code behind a function: its module and every module of fairlane that it imports, directly or not.

Read from the files, without importing anything: all workers find the same. An import inside a function counts, one
for type checkers does not; nor does ``fairlane.views``, which shows results. Names that a package imports when they
are first used (PEP 562), and functions that are named by a text as ``"fairlane.study.pinned:simulate"``, are followed
too.

*What answers depend on besides what was asked: the code that makes them, as it stands on this machine.* A version
number does not change while one works at a checkout; the files do. Which files those are is computed from what they
import (``closure``).
"""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

from fairlane.core.extension import files
from fairlane.inputs.registry import code_of_packages

PACKAGE = "fairlane"
DRAWING = f"{PACKAGE}.views"
"""Shows results: no answer comes from it."""
_NAMED = re.compile(rf"[\"'](({PACKAGE}(?:\.\w+)+):\w+)[\"']")
_LAZY = re.compile(rf"[\"'](\w+)[\"']: [\"']({PACKAGE}(?:\.\w+)+)[\"']")
_DATA = re.compile(rf"files\([\"']({PACKAGE}(?:\.\w+)*)[\"']\)|__file__")
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd")


class Code:
    """The modules of fairlane below a folder, each read once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._modules: dict[str, _Module | None] = {}

    def files(self, entries: Iterable[str | Path], without: Collection[tuple[str, str]] = ()) -> list[Path]:
        """The files behind entries: modules by name, or Python files; sorted, with the data files that they read.

        Imports in ``without``, each the importing module and the imported one, are not followed.
        """
        paths, seen = dict[Path, None](), set[str]()
        todo: list[str] = []
        for entry in entries:
            module = _Module(entry, "", self.home) if isinstance(entry, Path) else None
            if module is not None:
                paths |= dict.fromkeys([module.file, *module.beside()])
            todo += [str(entry)] if module is None else self._imported(module)
        while todo:
            name = todo.pop()
            module = self._module(name)
            if name in seen or module is None or f"{name}.".startswith(f"{DRAWING}."):
                continue
            seen.add(name)
            paths |= dict.fromkeys([module.file, *module.data])
            imported = (other for other in self._imported(module) if (name, other) not in without)
            todo += [name.rpartition(".")[0], *imported]
        if PACKAGE in seen:
            paths |= dict.fromkeys(files(self.home))
        return sorted(paths)

    def _module(self, name: str) -> "_Module | None":
        if name not in self._modules:
            path = self.home.joinpath(*name.split(".")[1:])
            candidates = (path / "__init__.py", path.with_suffix(".py"))
            file = next((candidate for candidate in candidates if candidate.is_file()), None)
            known = name.partition(".")[0] == PACKAGE and file is not None
            self._modules[name] = _Module(file, name, self.home) if known and file is not None else None
        return self._modules[name]

    def _imported(self, module: "_Module") -> list[str]:
        """Names of modules that a module imports; some are of no module."""
        names = list[str]()
        for base, name in module.imports:
            of = self._module(base)
            names += [base, f"{base}.{name}", *([of.lazy[name]] if of and name in of.lazy else [])]
        return names + module.named


class _Module:
    """One file: what it imports, and which data files it reads."""

    def __init__(self, file: Path, name: str, home: Path) -> None:
        self.file, self.name, self._home = file, name, home
        self._text = file.read_text(encoding="utf-8")

    @property
    def imports(self) -> Sequence[tuple[str, str]]:
        """Yield imported modules, with the name imported from each."""
        package = self.name if self.file.name == "__init__.py" else self.name.rpartition(".")[0]
        return _imports(self._text, package, of_package=self.name == PACKAGE)

    @cached_property
    def named(self) -> list[str]:
        """Modules of functions that it names by a text."""
        return [module for _, module in _NAMED.findall(self._text)]

    @cached_property
    def lazy(self) -> dict[str, str]:
        """Names that it imports when they are first used, with their modules."""
        return dict(_LAZY.findall(self._text)) if "def __getattr__" in self._text else {}

    @cached_property
    def data(self) -> list[Path]:
        """Files that are no code, in the folders whose files it reads."""
        folders = set[Path]()
        for match in _DATA.finditer(self._text):
            folders.add(self._home.joinpath(*match[1].split(".")[1:]) if match[1] else self.file.parent)
        return [file for folder in sorted(folders - {self._home}) for file in _data_below(folder)]

    def beside(self) -> list[Path]:
        """Python files in its folder that it imports, other files there that it names, and folders next to it."""
        modules = (self.file.with_name(f"{base.partition('.')[0]}.py") for base, _ in self.imports if base)
        texts = [text for text in re.findall(r"[\"']([\w.-]+)[\"']", self._text) if text.strip(".")]
        paths = [file for file in (*modules, *map(self.file.with_name, texts)) if file.suffix and file.is_file()]
        if "__file__" in self._text:
            folders = {self.file.parent.with_name(text) for text in texts}
            paths += [file for folder in sorted(folders) if folder.is_dir() for file in _data_below(folder)]
        return paths


@cache
def _imports(text: str, package: str, *, of_package: bool) -> Sequence[tuple[str, str]]:
    """Yield the imports of a text in this package; ``of_package``: it is fairlane itself."""
    imports = list[tuple[str, str]]()
    for statement in _statements(ast.parse(text).body):
        if isinstance(statement, ast.Import):
            imports += [(alias.name, "") for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
            base = ".".join([*above, *([statement.module] if statement.module else [])])
            imports += [(base, alias.name) for alias in statement.names]
    if not of_package and f"import {PACKAGE}\n" in text:  # fairlane.load and others
        imports += [(PACKAGE, name) for name in re.findall(rf"\b{PACKAGE}\.(\w+)\b", text)]
    return imports


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those inside others too; not those for type checkers."""
    for statement in body:
        yield statement
        checking = isinstance(statement, ast.If) and isinstance(statement.test, ast.Name)
        if not (checking and statement.test.id == "TYPE_CHECKING"):  # type: ignore[attr-defined]
            yield from _statements(getattr(statement, "body", ()))
        for part in ("orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(statement, part, ()))


def _data_below(folder: Path) -> Iterator[Path]:
    """Files of a package that are no code; not those of packages inside it."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").is_file():
            yield from _data_below(path)
        elif path.is_file() and path.suffix not in _CODE:
            yield path


def beside(file: Path) -> list[Path]:
    """Python files next to a file that it imports, and other files there that it names."""
    return _Module(file, "", Path()).beside()


@lru_cache
def code() -> Code:
    """The code of this fairlane: files do not change while a program runs."""
    return Code(Path(__file__).parents[2])


STUDY = ("fairlane.study.pinned", "fairlane.study.measured", "fairlane.study.setting")
"""The modules of the functions that the tasks of studies name."""
_CONTROLLERS = "fairlane.sim.controller"


def sources(*entries: str | Path, controller: str | None = None) -> str:
    """A digest of the code behind modules and files, by default the tasks of studies; and of installed plug-ins.

    That is all of fairlane that they import, the compiled simulator included. With the name of a ``controller``,
    controllers that are built in and that it does not use do not count.
    """
    return code_digest(entries or STUDY, controller, tuple(sys.path))


@lru_cache
def code_digest(entries: tuple[str | Path, ...], controller: str | None, _path: tuple[str, ...]) -> str:
    """Cached for packages found in ``_path``: files do not change while a program runs."""
    home = code().home
    digest = sha256()
    for path in code().files(entries, _of_other_controllers(controller)):
        name = path.relative_to(home).as_posix() if home in path.parents else path.name
        digest.update(f"{name}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    digest.update("\0".join(code_of_packages()).encode())
    return digest.hexdigest()[:16]


def _of_other_controllers(controller: str | None) -> set[tuple[str, str]]:
    """The imports by which the package of controllers knows the others."""
    from fairlane.sim.controller import CONTROLLERS

    modules = {name: kind.__module__.split(".")[3] for name, kind in CONTROLLERS.builtin.items()}
    others = {*modules.values()} - {modules.get(controller or "")}
    return {(_CONTROLLERS, f"{_CONTROLLERS}.{module}") for module in others} if controller is not None else set()
