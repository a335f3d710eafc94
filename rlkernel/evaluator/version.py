"""Hashes of our own source: a stored result is used again only by the code that would find the same one."""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import version
from pathlib import Path

_HERE = Path(__file__).parent
_ASIDE = ("ray", "cards/gpu_runner.py", "cards/watch.py", "pool.py", "cache.py", "caching.py", "shared_rows.py", "version.py")
"""The files that ask, wait and remember, none of which can change a verdict."""
_BESIDE = ("reference.py", "seeds.py")
"""The files beside the evaluator that say what a reference gives."""
_COMPILING = ("compile", "program", "devices.py")
"""The files that decide what binary a kernel's text becomes."""
_TIMING_REFERENCES = ("gpu", "judging", "program", "devices.py")
"""The files that decide how long a reference takes."""


@functools.cache
def verdict_version() -> str:
    """Return the hash of all that can change a verdict: the evaluator without `_ASIDE`, `_BESIDE`, and libraries."""
    aside = {path for name in _ASIDE for path in _files(name)}
    return _hash([path for path in _files(".") if path not in aside])


@functools.cache
def binary_version() -> str:
    """Return the hash of all that makes a kernel's binary from its text."""
    return _hash([path for name in _COMPILING for path in _files(name)])


@functools.cache
def baseline_version() -> str:
    """Return the hash of all that decides how long a reference takes."""
    return _hash([path for name in _TIMING_REFERENCES for path in _files(name)])


@functools.cache
def source_version() -> str:
    """Return the hash of the whole evaluator, for processes that must run the same code."""
    return _hash(_files("."))


def _files(name: str) -> list[Path]:
    """Return the Python files of a folder of the evaluator, or one file, in a fixed order."""
    path = _HERE / name
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _hash(paths: list[Path]) -> str:
    """Return 16 hex digits for the files, for `_BESIDE`, and for the versions of torch, triton and numpy."""
    digest = hashlib.sha256(f"{version('torch')} {version('triton')} {version('numpy')}".encode())
    for path in (*paths, *(_HERE.parent / name for name in _BESIDE)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
