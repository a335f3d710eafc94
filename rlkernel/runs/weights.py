"""Tells policies apart that one command made at two times."""

from __future__ import annotations

import hashlib
from pathlib import Path

READ, PLACES = 1 << 16, 16
"""The bytes that are read at a place of a file, and at how many places, evenly from its first byte to its last one: the first
weights alone may be rows of an embedding that no training has reached."""


def weights_digest(model: str) -> str | None:
    """Sixteen hexadecimal digits of a hash of the files of weights in a directory, by their names, sizes and bytes at `PLACES`;
    None for what is no such directory: `small` and names on the hub are the same everywhere."""
    files = sorted(Path(model).glob("*.safetensors")) if Path(model).is_dir() else []
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name} {size} ".encode())
        with path.open("rb") as opened:
            for place in range(PLACES):
                opened.seek(max(0, size - READ) * place // (PLACES - 1))
                digest.update(opened.read(READ))
    return digest.hexdigest()[:16]
