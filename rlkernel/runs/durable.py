"""Files that outlast a power cut: their bytes, and then their names, are on the disk before anything says that they are there."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until what was written to a file, or the names in a directory, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all, also when the process is killed or the power is cut."""
    draft = path.with_name(path.name + ".draft")
    draft.write_text(text, encoding="utf-8")
    sync(draft)
    draft.replace(path)
    sync(path.parent)
