"""What happens around an update, a log row and a checkpoint of TRL's trainer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from transformers import TrainerCallback

from rlkernel.runs import checkpoints
from rlkernel.training.hooks import Hooks


class Recorded(Protocol):
    """The trainer, as its recorder sees it."""

    nothing_to_train: bool
    """Whether no token of the coming update trains."""

    def record(self, logs: Mapping[str, float], step: int) -> None:
        """Take TRL's numbers of a finished step."""


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Updates under a lease of the card, reports each step before its checkpoint is written, and marks checkpoints that are
    complete."""

    def __init__(self, trainer: Recorded, hooks: Hooks) -> None:
        self.trainer = trainer
        self.hooks = hooks
        self.update = ExitStack()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.trainer.nothing_to_train:
            # The optimiser skips parameters without a gradient; a gradient of 0 would move them on by momentum.
            kwargs["optimizer"].zero_grad(set_to_none=True)
        self.update.enter_context(self.hooks.lease())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.update.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        if "loss" in logs:  # the summary at the end of training has none
            self.trainer.record(logs, state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        directory = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.hooks.save(directory)
        if state.is_world_process_zero:
            checkpoints.seal(directory)
        if self.hooks.enough():
            control.should_training_stop = True
