"""One run at Weights & Biases: the rows of metrics.jsonl, and the turns of transcripts.jsonl as tables.

    <split>/<number>      over `step`
    validation/turns      at every validation, the turns that were kept of it
    turns                 when the run is finished, all that were kept: an interrupted one has those of its validations

The run's own files are the truth, and what is sent is made of them. A row has a place in W&B's history that follows from its
split and step alone, so a process that goes on sends all rows again: online, those that W&B has already are left out; offline,
the file of the interrupted process, which may lack its last rows, is replaced. No row is there twice, and none is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlkernel.config import Run, to_json
from rlkernel.runs.directory import METRICS, TRANSCRIPTS
from rlkernel.runs.texts import jsonl
from rlkernel.runs.turn_table import COLUMNS, bounded, turn_rows
from rlkernel.runs.wandb_mode import mode, open_run
from rlkernel.types import Split

if TYPE_CHECKING:
    import wandb

PLACES = 3
"""How many rows of W&B's history a step has: its training row, its validation, and the end of the run.

A process that ends before its run does sends nothing in the end: W&B takes no row before its last one, so the rows to come would
find no place."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A run at Weights & Biases, and what it sends there."""

    run: wandb.Run
    directory: Path
    arm: str
    seed: int

    def row(self, split: Split, step: int, values: Mapping[str, Any]) -> None:
        """Send a row of metrics, unless W&B has it. With a validation go the turns of it that stand in the transcripts."""
        at = PLACES * step + (split == "validation")
        if at < self.run.step:
            return
        numbers = {f"{split}/{key}": value for key, value in values.items() if value is not None}
        table = self._turns(lambda row: (row["split"], row["step"]) == (split, step)) if split == "validation" else None
        tables = {} if table is None else {f"{split}/turns": table}
        self.run.log({"step": step, **numbers, **tables}, step=at, commit=True)

    def everything(self) -> None:
        """Send all turns that were kept, after the last row that was sent, unless W&B has them."""
        step = (self.run.step - 1) // PLACES
        at = PLACES * (step + 1) - 1
        table = self._turns(lambda row: True)
        if step >= 0 and at >= self.run.step and table is not None:
            self.run.log({"step": step, "turns": table}, step=at, commit=True)

    def again(self) -> None:
        """Send what the run's files hold, unless W&B has it."""
        if (self.directory / METRICS).exists():
            for row in jsonl(self.directory / METRICS):
                split, step = row.pop("split"), row.pop("step")
                self.row(split, step, row)

    def _turns(self, wanted: Callable[[Mapping[str, Any]], bool]) -> wandb.Table | None:
        import wandb

        path = self.directory / TRANSCRIPTS
        lines = enumerate(jsonl(path), start=1) if path.exists() else ()
        chosen = {number: row for number, row in lines if wanted(row)}
        rows = bounded(turn_rows(self.directory.name, self.arm, self.seed, chosen))
        return wandb.Table(columns=list(COLUMNS), data=[[row[name] for name in COLUMNS] for row in rows]) if rows else None


@contextmanager
def open_wandb(directory: Path, run: Run, run_id: str) -> Iterator[Remote | None]:
    """A Weights & Biases run inside the run directory; resumed runs keep their id, and get what W&B lacks of their files.

    None where WANDB_MODE is `disabled`. For the mode and its failures see `rlkernel.runs.wandb_mode.open_run`.
    """
    chosen = mode()
    if chosen == "disabled":
        yield None
        return
    if chosen == "offline":
        for older in directory.glob(f"wandb/offline-run-*-{run_id}"):
            # W&B's own process may outlive ours for a moment, and write there.
            shutil.rmtree(older, ignore_errors=True)
    opened = open_run(
        directory,
        id=run_id,
        resume="allow",
        name=f"{run.name}-seed{run.seed}",
        group=run.name,
        config={key: value for key, value in to_json(run).items() if key != "problems"},
    )
    opened.define_metric("*", step_metric="step")
    remote = Remote(opened, directory, run.name, run.seed)
    try:
        remote.again()
        yield remote
    finally:
        opened.finish()
