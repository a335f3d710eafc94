"""What an offline Weights & Biases run wrote: its history, and the tables that the history names."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER = 32_768, 7
"""Bytes of a block of the log, and of what stands before the file's first record and before each piece of one."""
WHOLE, LAST = 1, 4
"""Kinds of pieces that end a record."""


def history(directory: Path) -> list[dict[str, Any]]:
    """What the only run under `directory` logged, in order: of W&B's own keys, `_step` alone; tables as lists of rows."""
    import wandb

    wandb.teardown()  # its own process writes the files, and only its end says that all is there
    (log,) = directory.rglob("run-*.wandb")
    return [_row(record, log.parent / "files") for record in _records(log) if record.WhichOneof("record_type") == "history"]


def about(directory: Path) -> tuple[dict[str, Any], Any]:
    """The config of the only run under `directory`, and the record that names it."""
    import wandb

    wandb.teardown()
    (log,) = directory.rglob("run-*.wandb")
    (run,) = [record.run for record in _records(log) if record.WhichOneof("record_type") == "run"]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    return config, run


def _row(record: Any, files: Path) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for item in record.history.item:
        name, *inner = item.nested_key or [item.key]
        value = json.loads(item.value_json)
        if inner == ["path"] and value.endswith(".table.json"):
            row[name] = _table(files / value)
        elif not inner and name not in ("_timestamp", "_runtime"):
            row[name] = value
    return row


def _table(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text())
    return [dict(zip(found["columns"], row, strict=True)) for row in found["data"]]


def _records(path: Path) -> Iterator[Any]:
    """The log's format is LevelDB's: pieces with checksum, length and kind, none of which crosses a block."""
    from wandb.proto import wandb_internal_pb2

    data, at, whole = path.read_bytes(), HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        _, size, kind = struct.unpack("<IHB", data[at : at + HEADER])
        if left < HEADER or not kind:
            at += left
            continue
        whole += data[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (WHOLE, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""
