"""What an evaluation draws its seeds from: a key, which is a fresh secret, or is made of all that an evaluation is about.

With a seed, the same candidate meets the same inputs wherever it is judged. Without one, nobody can know them beforehand.
docs/evaluator/draws.md says why a key gives nothing away.
"""

from __future__ import annotations

import hashlib
import json
import random
import secrets
from typing import Any

SEED_BITS = 31
"""The size of a seed that torch's generators are given."""


def key_of(seed: int | None, *parts: Any) -> str:
    """64 hex digits: fresh ones without a seed, else a SHA-256 of the seed and of all parts, which are JSON.

    >>> key_of(0, "relu", "code") == key_of(0, "relu", "code"), key_of(0, "a", "bc") == key_of(0, "ab", "c")
    (True, False)
    >>> key_of(None, "relu", "code") == key_of(None, "relu", "code")
    False
    """
    if seed is None:
        return secrets.token_hex(32)
    return hashlib.sha256(json.dumps([seed, *parts], sort_keys=True).encode()).hexdigest()


def draws(key: str, use: str) -> random.Random:
    """The generator of one `use` of a key. Those of two uses say nothing about each other."""
    return random.Random(hashlib.sha256(f"{use} {key}".encode()).digest())
