"""The code of a run's methods, which is part of its fingerprint: an edited formula is another run."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import sys
from dataclasses import fields, is_dataclass
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any

SHIPPED = "rlkernel.environment"
"""Where the methods are that come with the package."""


def code_of(value: Any) -> dict[str, str]:
    """Class -> hash of its module and of what that imports from its own package (`_own`), for every method in `value`."""
    if isinstance(value, (tuple, list)):
        return {name: digest for item in value for name, digest in code_of(item).items()}
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    inner = {name: digest for f in fields(value) for name, digest in code_of(getattr(value, f.name)).items()}
    home = type(value).__module__
    if home.split(".")[0] == __name__.split(".")[0] and not home.startswith(f"{SHIPPED}."):
        return inner  # rlkernel itself: the manifest names its commit
    text = "".join(_sources(home, set()))
    return {**inner, f"{home}.{type(value).__name__}": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _sources(name: str, seen: set[str]) -> list[str]:
    """The text of a module and of its own package's modules that it imports, in a fixed order; nothing without a file."""
    seen.add(name)
    module = sys.modules.get(name)
    text = "" if module is None else _text(module)
    if module is None or not text:
        return []
    found = [text]
    for other in _imported(module):
        if other not in seen and _own(module, sys.modules[other]):
            found += _sources(other, seen)
    return found


@functools.cache
def _text(module: ModuleType) -> str:
    """The text of a module when it was first asked for, which is what runs, whatever its file is edited to meanwhile; empty
    without a file."""
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return ""


@functools.cache
def _imported(module: ModuleType) -> tuple[str, ...]:
    """The modules that a module imports at its top, whole or something of them, in a fixed order. What a function imports is not
    among them: it may not be there yet, and the fingerprint would change when it is. Kept, because each arm and seed of a command
    asks for it before anything trains."""
    found: set[str] = set()
    for statement in ast.parse(_text(module)).body:
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            base = resolve_name("." * statement.level + (statement.module or ""), module.__package__ or "")
            whole = {f"{base}.{alias.name}" for alias in statement.names}
            found |= {name if name in sys.modules else base for name in whole}
    return tuple(sorted(found & sys.modules.keys()))


def _own(module: ModuleType, other: ModuleType) -> bool:
    """Whether another module belongs to a method of `module`: one of the same package, of the outermost one, or beside a module
    without a package one that has none either."""
    if "." not in module.__name__:
        files = [getattr(one, "__file__", None) for one in (module, other)]
        return "." not in other.__name__ and None not in files and len({Path(str(file)).parent for file in files}) == 1
    root = SHIPPED if module.__name__.startswith(f"{SHIPPED}.") else module.__name__.split(".")[0]
    return f"{other.__name__}.".startswith(f"{root}.")
