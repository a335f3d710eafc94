"""A batch that was sampled ahead of its training (`Run.staleness`), and its file in a checkpoint.

The file holds plain JSON and names no class, so that it can be read wherever the classes stand. Floats are written with all of
their digits: the batch that is read equals the one that was written.
"""

from __future__ import annotations

import functools
import json
import pickle
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from rlkernel.types import Group, Status

FILE, OLD_FILE = "batch_ahead.json", "batch_ahead.pickle"
"""Names inside a checkpoint. Earlier versions wrote the second, which names classes by their modules."""


@dataclass(frozen=True)
class SampledBatch:
    """Groups that were sampled for a step and have not been trained yet."""

    groups: tuple[Group, ...]
    weights: int
    """Optimiser steps behind the weights that sampled the groups."""


def write_ahead(checkpoint: Path, batch: SampledBatch) -> None:
    """Add the batch of the next step to a checkpoint."""
    (checkpoint / FILE).write_text(json.dumps(asdict(batch)), encoding="utf-8")


def read_ahead(checkpoint: Path) -> SampledBatch | None:
    """The batch of the next step that a checkpoint holds; None where it holds none."""
    if (checkpoint / FILE).exists():
        batch: SampledBatch = _restored(SampledBatch, json.loads((checkpoint / FILE).read_text(encoding="utf-8")))
        return batch
    if (checkpoint / OLD_FILE).exists():
        with (checkpoint / OLD_FILE).open("rb") as file:
            old: SampledBatch = _OldNames(file).load()
            return old
    return None


class _OldNames(pickle.Unpickler):
    """Reads files of earlier versions: our own ones, trusted like the optimiser's state beside them."""

    def find_class(self, module: str, name: str) -> Any:
        old = name == "Batch" and module in ("rlkernel.loop", "rlkernel.training.loop")
        return SampledBatch if old else super().find_class(module, name)


_hints = functools.cache(get_type_hints)


def _restored(kind: Any, value: Any) -> Any:
    """The value of type `kind` that JSON shows as objects, arrays and texts."""
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _restored(_hints(kind)[name], item) for name, item in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], item) for item in value)
    return Status(value) if kind is Status else value
