"""Corpora that come with the project: judged once, so that a policy is made again in the time of its training alone.

`corpora/` holds them compressed, each under the name of its file (`World.label`): a recipe with other tasks, another number of
conversations or another seed has another name, and is judged anew.
"""

from __future__ import annotations

import lzma
from pathlib import Path

CORPORA = Path(__file__).parent / "corpora"


def unpack(path: Path) -> bool:
    """Write the shipped corpus of that name to `path`, unless a file is there. Returns whether it was written."""
    packed = CORPORA / f"{path.name}.xz"
    if path.exists() or not packed.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    draft.write_bytes(lzma.decompress(packed.read_bytes()))
    draft.rename(path)
    return True
