"""Tables that preparation writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a .parquet file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), draft)
    draft.rename(path)
