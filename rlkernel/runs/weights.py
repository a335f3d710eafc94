"""Tells policies apart that one command made at two times."""

from __future__ import annotations

import hashlib
from pathlib import Path

READ = 1 << 20
"""The bytes of each file that are read: its header and its first weights, which no two trainings share."""


def weights_digest(model: str) -> str | None:
    """Sixteen hexadecimal digits of a hash of the files of weights in a directory, by their names, sizes and first bytes; None
    for what is no such directory: `small` and names on the hub are the same everywhere."""
    files = sorted(Path(model).glob("*.safetensors")) if Path(model).is_dir() else []
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as opened:
            digest.update(f"{path.name} {path.stat().st_size} ".encode() + opened.read(READ))
    return digest.hexdigest()[:16]
