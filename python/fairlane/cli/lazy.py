"""Commands whose modules are imported when they run: that takes long, and help needs none of it.

The help of a group has the docstrings of its commands, from the compiled code of their modules. Help, completion and
errors of a command need its signature: of its module only assignments, the imports in ``_OF_SIGNATURES``, and the
function's header with its docstring are executed.
"""

import ast
import inspect
from collections.abc import Mapping
from functools import cache, wraps
from importlib.machinery import SourceFileLoader
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType
from typing import Any

from typer.core import TyperCommand
from typing_extensions import override

from fairlane.cli.command import made

_HERE = Path(__file__).parent
_OF_SIGNATURES = (
    "pathlib",
    "typing",
    "typer",
    "fairlane.cli.command",
    "fairlane.cli.options",
    "fairlane.cli.registries",
)
"""Modules whose names the signatures of commands have."""


@cache
def _docstrings(module: str) -> Mapping[str, Any]:
    """The docstrings of a module's functions."""
    code: Any = SourceFileLoader(module, str(_HERE / f"{module}.py")).get_code(module)
    return {constant.co_name: constant.co_consts[0] for constant in code.co_consts if isinstance(constant, CodeType)}


def _signature(module: str, function: str) -> Any:
    """A function of a module without its body."""
    path = _HERE / f"{module}.py"
    kept: list[ast.stmt] = []
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            node.body = node.body[:1]
            kept.append(node)
        elif isinstance(node, ast.Assign) or (isinstance(node, ast.ImportFrom) and node.module in _OF_SIGNATURES):
            kept.append(node)
    names: dict[str, Any] = {}
    exec(compile(ast.Module(kept, []), path, "exec"), names)
    return names[function]


class LazyCommand(TyperCommand):
    """The command of a function of a module of this package, ``MODULE:FUNCTION``."""

    def __init__(self, name: str, where: str) -> None:
        self.module, _, self.function = where.partition(":")
        docstring = _docstrings(self.module)[self.function] or ""  # nothing under ``python -OO``
        super().__init__(name, help=inspect.cleandoc(docstring), rich_markup_mode=None)

    @override
    def make_context(self, *arguments: Any, **options: Any) -> Any:
        if self.callback is None:
            where = f"fairlane.cli.{self.module}:{self.function}"

            @wraps(_signature(self.module, self.function))
            def call(**given: Any) -> Any:
                return resolve_name(where)(**given)

            vars(self).update(vars(made(call, self.name or "")))
        return super().make_context(*arguments, **options)
