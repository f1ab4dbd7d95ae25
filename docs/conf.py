"""Configuration of the documentation; the reference is generated from the code before anything else is read."""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import packet  # noqa: E402  (found only now)
import reference  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _digest() -> str:
    """A digest of the installed fairlane."""
    with resources.as_file(resources.files("fairlane")) as folder:
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".so", ".toml"))
        return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


project = "fairlane"
author = "The fairlane developers"
copyright = author  # noqa: A001  (the name that Sphinx reads)
release = version = metadata.version("fairlane")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = [
    "_ext",
    "reproduction/*/verdicts.md",
    "reproduction/*/dataset.md",
    "reproduction/robustness/*/*.md",
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"

# Notebooks are run again if they, or fairlane, have changed; one that fails ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "target" / "notebooks" / _digest())
nb_execution_timeout = 1800
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
napoleon_numpy_docstring = False

man_pages = [
    (f"reference/generated/{source}", name, description, [author], 1)
    for source, name, description in reference.man_pages()
]
man_show_urls = False

html_theme = "furo"
html_title = f"fairlane {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7fc4f0", "color-brand-content": "#7fc4f0"},
    "navigation_with_keys": True,
}


def keep_attributes(app: Sphinx) -> None:
    """Leaves attributes' docstrings as they are: napoleon would take what stands before a colon for a type."""
    kept: dict[str, list[str]] = {}

    def before(_app: Sphinx, what: str, name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
        if what in ("attribute", "data", "property"):
            kept[name] = list(lines)

    def after(_app: Sphinx, _what: str, name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
        if name in kept:
            lines[:] = kept.pop(name)

    app.connect("autodoc-process-docstring", before, priority=400)  # napoleon's is 500
    app.connect("autodoc-process-docstring", after, priority=600)


def setup(app: Sphinx) -> None:
    """Has the reference written when the builder starts."""
    keep_attributes(app)
    app.connect("builder-inited", lambda _: packet.write(HERE / "reference" / "generated"))
    app.connect("builder-inited", lambda _: reference.write(HERE / "reference" / "generated"))
