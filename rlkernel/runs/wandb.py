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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlkernel.config import Run, to_json
from rlkernel.runs.directory import METRICS, TRANSCRIPTS
from rlkernel.runs.texts import Steps, jsonl
from rlkernel.runs.turn_table import COLUMNS, bounded, turn_rows
from rlkernel.runs.wandb_mode import mode, open_run
from rlkernel.types import Split

if TYPE_CHECKING:
    import wandb

TOLD = ("labels", "fingerprint", "code", "git", "versions", "machine", "evaluator")
"""The parts of a manifest that a run's config has beside the fields of its Run."""
TAG = 64
"""The most characters of a tag."""
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
    _kept: Steps = field(init=False)
    """The turns that were kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", Steps(self.directory / TRANSCRIPTS))

    def row(self, split: Split, step: int, values: Mapping[str, Any]) -> None:
        """Send a row of metrics, unless W&B has it. With a validation go the turns of it that stand in the transcripts."""
        at = PLACES * step + (split == "validation")
        if at < self.run.step:
            return
        numbers = {f"{split}/{key}": value for key, value in values.items() if value is not None}
        table = self._turns(self._kept.rows(split, step)) if split == "validation" else None
        tables = {} if table is None else {f"{split}/turns": table}
        self.run.log({"step": step, **numbers, **tables}, step=at, commit=True)

    def everything(self) -> None:
        """Send all turns that were kept, after the last row that was sent, unless W&B has them."""
        step = (self.run.step - 1) // PLACES
        at = PLACES * (step + 1) - 1
        if step < 0 or at < self.run.step or not (self.directory / TRANSCRIPTS).exists():
            return
        table = self._turns(dict(enumerate(jsonl(self.directory / TRANSCRIPTS), start=1)))
        if table is not None:
            self.run.log({"step": step, "turns": table}, step=at, commit=True)

    def again(self) -> None:
        """Send what the run's files hold, unless W&B has it."""
        if (self.directory / METRICS).exists():
            for row in jsonl(self.directory / METRICS):
                split, step = row.pop("split"), row.pop("step")
                self.row(split, step, row)

    def _turns(self, chosen: Mapping[int, Mapping[str, Any]]) -> wandb.Table | None:
        import wandb

        rows = bounded(turn_rows(self.directory.name, self.arm, self.seed, chosen))
        return wandb.Table(columns=list(COLUMNS), data=[[row[name] for name in COLUMNS] for row in rows]) if rows else None


def config(run: Run, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What W&B can filter and group runs by: the fields of the Run, and of its manifest what made it."""
    fields = {key: value for key, value in to_json(run).items() if key != "problems"}
    return {**fields, "timing": timing(manifest), **{key: manifest[key] for key in TOLD if key in manifest}}


def timing(manifest: Mapping[str, Any]) -> str | None:
    """`modelled` or `measured`, by the device that evaluates; None for an evaluator that is not ours."""
    device = manifest.get("evaluator", {}).get("device")
    return None if device is None else "modelled" if device == "cpu" else "measured"


def tags(manifest: Mapping[str, Any]) -> list[str]:
    """The names of the experiment and the preset, how time was taken, and the kind of card, as far as they are known.

    >>> tags({"labels": {"experiment": "mismatch", "preset": "cpu"}, "evaluator": {"device": "cpu"}, "machine": {"gpus": []}})
    ['mismatch', 'cpu preset', 'modelled', 'no GPU']
    """
    labels = manifest.get("labels", {})
    cards = manifest.get("machine", {}).get("gpus")
    named = [
        labels.get("experiment"),
        f"{labels['preset']} preset" if "preset" in labels else None,
        timing(manifest),
        None if cards is None else cards[0] if cards else "no GPU",
    ]
    return [tag[:TAG] for tag in named if tag]


@contextmanager
def open_wandb(directory: Path, run: Run, manifest: Mapping[str, Any]) -> Iterator[Remote | None]:
    """A Weights & Biases run of a training run; see `open_remote`. What its manifest says of the code, the machine and the
    command is in the config."""
    named = (run.name, run.seed)
    with open_remote(directory, manifest["wandb_id"], *named, config=config(run, manifest), tags=tags(manifest)) as remote:
        yield remote


@contextmanager
def open_remote(
    directory: Path, own_id: str, name: str, seed: int, *, config: Mapping[str, Any], tags: Sequence[str]
) -> Iterator[Remote | None]:
    """A Weights & Biases run inside a run's directory; resumed runs keep their id, and get what W&B lacks of their files.

    None where WANDB_MODE is `disabled`. For the mode and its failures see `rlkernel.runs.wandb_mode.open_run`.
    """
    chosen = mode()
    if chosen == "disabled":
        yield None
        return
    if chosen == "offline":
        for older in directory.glob(f"wandb/offline-run-*-{own_id}"):
            # W&B's own process may outlive ours for a moment, and write there.
            shutil.rmtree(older, ignore_errors=True)
    opened = open_run(
        directory, id=own_id, resume="allow", name=f"{name}-seed{seed}", group=name, job_type="train", tags=tags, config=config
    )
    opened.define_metric("*", step_metric="step")
    remote = Remote(opened, directory, name, seed)
    try:
        remote.again()
        yield remote
    finally:
        opened.finish()
