"""Layers of the Python packages: imports run one way, only the command line prints, nothing reads the repository."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fairlane

SOURCE = Path(fairlane.__file__).parent

LAYERS = """
    errors units wording seeds _core otf2_child
    slurm inputs
    fabric power qos
    placement engine
    workload pattern scenario
    results simulation
    controller runner
    tasks
    models
    study saturation folders
    scheduler predict advice analysis
    plot
    reproduce
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


def _module(path: Path) -> str:
    parts = ("fairlane", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {_module(path): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
"""The syntax tree of every module."""
FILES = {_module(path): path for path in SOURCE.rglob("*.py")}
HOMES = {
    name.value: home.value
    for node in ast.walk(TREES["fairlane"])
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME" and isinstance(node.value, ast.Dict)
    for name, home in zip(node.value.keys, node.value.values, strict=True)
    if isinstance(name, ast.Constant) and isinstance(home, ast.Constant)
}
"""Where the names of ``fairlane`` itself come from."""


def _targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules of fairlane that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name.split(".")[0] == "fairlane")
        return
    base = node.module or ""
    if node.level:
        here = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
        base = ".".join([*here.split(".")[: len(here.split(".")) + 1 - node.level], *filter(None, [base])])
    if base.split(".")[0] != "fairlane":
        return
    for alias in node.names:
        name = f"{base}.{alias.name}"
        if name in TREES or name == "fairlane._core":
            yield name
        elif base == "fairlane":
            yield str(HOMES.get(alias.name, base))
        else:
            yield base


def _is_types_only(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _imports(module: str, node: ast.AST, when: str = "import", in_class: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from (Import(module, target, when) for target in _targets(module, child))
        elif isinstance(child, ast.If) and _is_types_only(child.test):
            yield from _imports(module, ast.Module(child.body, []), "types", in_class)
            yield from _imports(module, ast.Module(child.orelse, []), when, in_class)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            later = "method" if in_class or when == "method" else "call"
            yield from _imports(module, child, "types" if when == "types" else later)
        else:
            yield from _imports(module, child, when, in_class or isinstance(child, ast.ClassDef))


IMPORTS = sorted(
    {found for module, tree in TREES.items() for found in _imports(module, tree)},
    key=lambda one: (one.module, one.target, one.when),
)


def upward() -> Iterator[str]:
    """Imports against the order. A method, as ``Run.plot``, may import ``plot``."""
    for one in IMPORTS:
        importer, imported = one.packages
        if importer == imported or not importer or (imported == "plot" and one.when == "method"):
            continue
        if not imported and importer == "cli":  # the command line may use the names that users import
            continue
        if not imported or ORDER.index(imported) > ORDER.index(importer):
            kind = "" if one.when == "import" else f" ({one.when})"
            yield f"upward{kind}: {one.module} -> {one.target}"


def cycles() -> Iterator[str]:
    """Modules that import each other, directly or by others, while they are imported."""
    reached: dict[str, set[str]] = {}
    direct: dict[str, set[str]] = defaultdict(set)
    for one in IMPORTS:
        if one.when == "import" and one.module != one.target:
            direct[one.module].add(one.target)
    for module in TREES:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            new = direct[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[module] = seen
    for module in TREES:
        ring = sorted(other for other in reached[module] if module in reached.get(other, ()))
        if ring and module == ring[0]:
            yield f"cycle: {' '.join(ring)}"


def prints() -> Iterator[str]:
    """What prints outside the command line; displays of progress, on standard error, are asked for by callers."""
    for module, tree in TREES.items():
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


def papers() -> Iterator[str]:
    """Imports of the module of a paper from outside ``reproduce``."""
    reproduce = SOURCE / "reproduce"
    named = {f"fairlane.reproduce.{path.name}" for path in reproduce.iterdir() if (path / "__init__.py").is_file()}
    for one in IMPORTS:
        paper = ".".join(one.target.split(".")[:3])
        if paper in named and one.packages[0] != "reproduce":
            yield f"paper: {one.module} -> {paper}"


def outside() -> Iterator[str]:
    """Paths that lead out of the package, where an installed fairlane has nothing."""
    for module, tree in TREES.items():
        depth = len(FILES[module].relative_to(SOURCE).parts)
        for node in ast.walk(tree):
            text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
            up = text.count(".parent") if "__file__" in text and ".parents" not in text else 0
            if isinstance(node, ast.Subscript) and "__file__" in text and text.split("[")[0].endswith(".parents"):
                up = 1 + int(ast.literal_eval(node.slice))
            if up > depth or (isinstance(node, ast.Constant) and "../.." in str(node.value)):
                yield f"outside: {module}"


def test_every_package_has_a_place_in_the_order() -> None:
    packages = {f"{module}.".split(".")[1] for module in TREES} - {""}
    assert packages | {"_core"} == set(ORDER), "give each its place in ORDER"


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [
        (upward, ("upward",)),
        (cycles, ("cycle",)),
        (prints, ("prints", "rich", "typer")),
        (papers, ("paper",)),
        (outside, ("outside",)),
    ],
)
def test_nothing_breaks_a_rule_but_what_is_listed(rule: Callable[[], Iterator[str]], kinds: tuple[str, ...]) -> None:
    known = {line for line in KNOWN.strip().splitlines() if line.startswith(kinds)}
    found = set(rule())
    assert sorted(found - known) == [], "new violations"
    assert sorted(known - found) == [], "these are gone: remove their lines from KNOWN"
