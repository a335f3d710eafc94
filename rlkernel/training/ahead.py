"""The batches that were sampled ahead of their training (`Run.staleness`), and their file in a checkpoint.

The file holds plain JSON and names no class, so that it can be read wherever the classes stand. Floats are written with all of
their digits: the batches that are read equal those that were written.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from rlkernel.types import Group

FILE = "batches_ahead.json"
"""The file's name inside a checkpoint."""


@dataclass(frozen=True)
class SampledBatch:
    """Groups that were sampled for a step and have not been trained yet."""

    groups: tuple[Group, ...]
    weights: int
    """Steps behind the weights that sampled the groups. The batch's age is the step that trains it minus this."""


def write_ahead(checkpoint: Path, batches: Sequence[SampledBatch]) -> None:
    """Add the batches of the next steps to a checkpoint, the next step's first."""
    (checkpoint / FILE).write_text(json.dumps([asdict(batch) for batch in batches]), encoding="utf-8")


def read_ahead(checkpoint: Path) -> list[SampledBatch]:
    """The batches of the next steps that a checkpoint holds; none where it has no file of them."""
    if not (checkpoint / FILE).exists():
        return []
    return [_restored(SampledBatch, batch) for batch in json.loads((checkpoint / FILE).read_text(encoding="utf-8"))]


_hints = functools.cache(get_type_hints)


def _restored(kind: Any, value: Any) -> Any:
    """The value of type `kind` that JSON shows as objects, arrays and texts. What a mapping holds stays as JSON shows it."""
    if get_origin(kind) is UnionType:  # of one type and None
        return None if value is None else _restored(get_args(kind)[0], value)
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], item) for item in value)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _restored(_hints(kind)[name], item) for name, item in value.items()})
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
