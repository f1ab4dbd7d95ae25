"""Layers of the Python packages: imports run one way, only the command line prints, nothing reads the repository."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fairlane

LAYERS = """
    colours errors units wording seeds signals statistics
    core otf2_child
    slurm inputs
    progress
    fabric power qos
    placement
    workload pattern scenario
    results stepping simulation opensm stacks counters
    controller runner
    tasks
    models
    study saturation gpcnet cables folders
    scheduler predict advice analysis comparison agent
    testbed timeline
    views
    report
    serve
    reproduce
    campaign
    doctor
    names
    cli
    __main__
"""
"""Packages and modules of ``fairlane`` from low to high; each may import those before it."""
ORDER = LAYERS.split()

KNOWN = """
"""
"""Violations that are still there. A line goes when its violation does; none is added."""


@dataclass(frozen=True)
class Import:
    """An import statement of one module of fairlane for another."""

    module: str
    target: str
    when: str
    """``import``: when the module is imported, ``call`` or ``method``: later, ``types``: only by type checkers."""

    @property
    def packages(self) -> tuple[str, str]:
        """The two packages (or modules of the top level); the empty string is ``fairlane`` itself."""
        importer, imported = (f"{name}.".split(".")[1] for name in (self.module, self.target))
        return importer, imported


class Sources:
    """All modules of a package: their files, syntax trees and imports of each other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = {self._name(path): path for path in sorted(folder.rglob("*.py"))}
        self.trees = {name: ast.parse(path.read_text()) for name, path in self.files.items()}
        self._homes = dict(self._public_names())
        found = {one for name, tree in self.trees.items() for one in self._imports(name, tree)}
        self.imports = sorted(found, key=lambda one: (one.module, one.target, one.when))

    def _name(self, path: Path) -> str:
        parts = ("fairlane", *path.relative_to(self.folder).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _public_names(self) -> Iterator[tuple[str, str]]:
        """Where the names of ``fairlane`` itself come from."""
        for node in ast.walk(self.trees["fairlane"]):
            is_home = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME"
            if is_home and isinstance(node, ast.Assign):
                yield from ast.literal_eval(node.value).items()

    def _targets(self, module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """The modules of fairlane that a statement imports."""
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "fairlane")
            return
        base = node.module or ""
        if node.level:
            here = module if self.files[module].name == "__init__.py" else module.rpartition(".")[0]
            base = ".".join([*here.split(".")[: len(here.split(".")) + 1 - node.level], *filter(None, [base])])
        if base.split(".")[0] != "fairlane":
            return
        for alias in node.names:
            name = f"{base}.{alias.name}"
            if name in self.trees or name == "fairlane._core":
                yield name
            else:
                yield self._homes.get(alias.name, base) if base == "fairlane" else base

    def _imports(self, module: str, node: ast.AST, when: str = "import", in_class: bool = False) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield from (Import(module, target, when) for target in self._targets(module, child))
            elif isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
                yield from self._imports(module, ast.Module(child.body, []), "types", in_class)
                yield from self._imports(module, ast.Module(child.orelse, []), when, in_class)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                later = "method" if in_class or when == "method" else "call"
                yield from self._imports(module, child, "types" if when == "types" else later)
            else:
                yield from self._imports(module, child, when, in_class or isinstance(child, ast.ClassDef))


def upward(of: Sources) -> Iterator[str]:
    """Imports against the order."""
    for one in of.imports:
        importer, imported = one.packages
        if importer == imported or not importer:
            continue
        if not imported and importer == "cli":  # the command line may use the names that users import
            continue
        if imported == "_core" and one.module == "fairlane.core.bridge":
            continue
        if imported not in ORDER or ORDER.index(imported) > ORDER.index(importer):
            kind = "" if one.when == "import" else f" ({one.when})"
            yield f"upward{kind}: {one.module} -> {one.target}"


def cycles(of: Sources) -> Iterator[str]:
    """Modules that import each other, directly or by others, while they are imported."""
    reached: dict[str, set[str]] = {}
    direct: dict[str, set[str]] = defaultdict(set)
    for one in of.imports:
        if one.when == "import" and one.module != one.target:
            direct[one.module].add(one.target)
    for module in of.trees:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            new = direct[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[module] = seen
    for module in of.trees:
        ring = sorted(other for other in reached[module] if module in reached.get(other, ()))
        if ring and module == ring[0]:
            yield f"cycle: {' '.join(ring)}"


def prints(of: Sources) -> Iterator[str]:
    """What prints outside the command line; displays of progress, on standard error, are asked for by callers."""
    for module, tree in of.trees.items():
        if module.split(".")[1:2] == ["cli"] or module in {"fairlane.otf2_child", "fairlane.__main__"}:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "sys.stdout.write"}:
                yield f"prints: {module}"
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for library in {name.split(".")[0] for name in names} & {"rich", "typer"}:
                if library == "typer" or module.rpartition(".")[2] != "progress":
                    yield f"{library}: {module}"


def described(of: Sources) -> Iterator[str]:
    """Tables and views that the command line makes itself: results are described once, for every writer."""
    for module, tree in of.trees.items():
        if module.split(".")[1:2] == ["cli"] and module != "fairlane.cli.terminal":
            calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            yield from (f"describes: {module}: {name}" for name in calls & {"Chart", "Column", "Table", "View"})


def papers(of: Sources) -> Iterator[str]:
    """Imports of the module of a paper from outside ``reproduce``."""
    reproduce = of.folder / "reproduce"
    named = {f"fairlane.reproduce.{path.name}" for path in reproduce.iterdir() if (path / "__init__.py").is_file()}
    for one in of.imports:
        paper = ".".join(one.target.split(".")[:3])
        if paper in named and one.packages[0] != "reproduce":
            yield f"paper: {one.module} -> {paper}"


def outside(of: Sources) -> Iterator[str]:
    """Paths that lead out of the package, where an installed fairlane has nothing."""
    for module, tree in of.trees.items():
        depth = len(of.files[module].relative_to(of.folder).parts)
        for node in ast.walk(tree):
            text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
            up = text.count(".parent") if "__file__" in text and ".parents" not in text else 0
            if isinstance(node, ast.Subscript) and "__file__" in text and text.split("[")[0].endswith(".parents"):
                up = 1 + int(ast.literal_eval(node.slice))
            if up > depth or (isinstance(node, ast.Constant) and "../.." in str(node.value)):
                yield f"outside: {module}"


RULES: dict[Callable[[Sources], Iterator[str]], tuple[str, ...]] = {
    upward: ("upward",),
    cycles: ("cycle",),
    prints: ("prints", "rich", "typer"),
    described: ("describes",),
    papers: ("paper",),
    outside: ("outside",),
}
"""Each rule, and with what words its lines begin."""


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(Path(fairlane.__file__).parent)


def test_every_package_has_a_place_in_the_order(sources: Sources) -> None:
    packages = {f"{module}.".split(".")[1] for module in sources.trees} - {""}
    assert packages == set(ORDER), "give each its place in LAYERS"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_nothing_breaks_a_rule_but_what_is_listed(rule: Callable[[Sources], Iterator[str]], sources: Sources) -> None:
    known = {line for line in KNOWN.strip().splitlines() if line.startswith(RULES[rule])}
    found = set(rule(sources))
    assert sorted(found - known) == [], "new violations"
    assert sorted(known - found) == [], "these are gone: remove their lines from KNOWN"


def test_every_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    files = {
        "__init__.py": '_HOME = {"Run": "fairlane.results.run"}',
        "errors.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fairlane import Run",
        "results/__init__.py": "",
        "results/run.py": "from .store import load\nclass Run:\n    def plot(self):\n        import fairlane.views",
        "results/store.py": "from fairlane.results import run\ndef load():\n    from fairlane.views import draw",
        "views/__init__.py": "from rich.console import Console\nprint(open(__file__ + '/../../tests'))",
        "reproduce/__init__.py": "from fairlane.reproduce import paper",
        "reproduce/paper/__init__.py": "from pathlib import Path\nDATA = Path(__file__).parents[3] / 'tests'",
        "cli/__init__.py": "from fairlane.reproduce.paper import DATA\nprint(Table(DATA))",
        "scenario/__init__.py": "from fairlane.cli import DATA\nimport typer",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    found = sorted(line for rule in RULES for line in rule(Sources(tmp_path)))
    assert found == [
        "cycle: fairlane.results.run fairlane.results.store",
        "describes: fairlane.cli: Table",
        "outside: fairlane.reproduce.paper",
        "outside: fairlane.views",
        "paper: fairlane.cli -> fairlane.reproduce.paper",
        "prints: fairlane.views",
        "rich: fairlane.views",
        "typer: fairlane.scenario",
        "upward (call): fairlane.results.store -> fairlane.views",
        "upward (method): fairlane.results.run -> fairlane.views",
        "upward (types): fairlane.errors -> fairlane.results.run",
        "upward: fairlane.scenario -> fairlane.cli",
    ]
