"""The code by which a run trains and samples: what has changed in it since the run began.

It is no part of a run's fingerprint: an edit that changes no number would begin every run anew. So the manifest has a digest of
each file, and whoever goes on with the run, or reports it, is told which of them differ now.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
COVERED = ("training/*.py", "policy/*.py", "policy/slots/*.py", "rollout.py", "settings.py", "uniform.py")
"""The files of the package whose code makes the numbers of a step, beside the methods, which the fingerprint has. The judge has a
version of its own."""
PYTHON = "python"
"""The name under which Python's version stands among the digests."""


@functools.cache
def digests(package: Path = PACKAGE) -> dict[str, str]:
    """File -> digest of its code, without comments, docstrings and layout: words that change no number raise no alarm. Python's
    version stands among them, because the same code has another tree in another one."""
    found = sorted(path for pattern in COVERED for path in package.glob(pattern))
    files = {path.relative_to(package).as_posix(): _digest(path.read_text(encoding="utf-8")) for path in found}
    return {PYTHON: ".".join(platform.python_version_tuple()[:2]), **files}


def changed(before: Mapping[str, str] | None, package: Path = PACKAGE) -> tuple[str, ...]:
    """The files that have another digest than before, that are new, or that are gone; none where before is unknown, or of another
    Python."""
    now = digests(package)
    if before is None or before.get(PYTHON) != now[PYTHON]:
        return ()
    return tuple(sorted(name for name in {*now, *before} if now.get(name) != before.get(name)))


def warning(files: tuple[str, ...], where: Path, *, goes_on: bool) -> str:
    """What to tell of a run whose code has changed, and which goes on or is reported."""
    named = ", ".join(files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
    what = "goes on, but began with" if goes_on else "was trained by"
    return f"warning: {where} {what} other code than is here now ({named} of rlkernel): delete it to train anew"


def _digest(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # Docstrings, and the strings that stand below fields.
            node.body = [item for item in body if not _is_text(item)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
