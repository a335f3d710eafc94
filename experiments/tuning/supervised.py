"""TRL's supervised trainer on rows of token ids with their labels, with checkpoints that a kill cannot spoil.

Nothing is tokenised, cut or packed here. TRL computes the loss without the logits of a whole row, so that rows may be long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from rlkernel.policy.attention import without_plans
from rlkernel.runs import checkpoints
from rlkernel.runs.directory import sync_rows
from rlkernel.training import ranks
from rlkernel.training.eight_bit_adamw import EightBitAdamW, clip_gradients
from rlkernel.training.trl_arguments import keep_to_one_card, silence


class Supervised(SFTTrainer):  # type: ignore[misc]
    """TRL's trainer, which clips bfloat16 gradients by a norm of float32, and says so when the disk is full."""

    def _clip_grad_norm(self, model: Any) -> Any:
        if isinstance(getattr(self.optimizer, "optimizer", self.optimizer), EightBitAdamW):
            return clip_gradients(model.parameters(), self.args.max_grad_norm)
        return super()._clip_grad_norm(model)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        with checkpoints.writing(Path(self.args.output_dir)):
            super()._save_checkpoint(*args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """A checkpoint is not a publication."""


class Sealed(TrainerCallback):  # type: ignore[misc]
    """Marks a checkpoint as complete when all processes have written their part, and the run's rows are on the disk."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Seal what was just written."""
        ranks.meet()
        if state.is_world_process_zero:
            directory = Path(args.output_dir)
            sync_rows(directory.parent)
            checkpoints.seal(directory / f"checkpoint-{state.global_step}")


class Limited(TrainerCallback):  # type: ignore[misc]
    """Stops a training at a time, with a checkpoint."""

    def __init__(self, until: float) -> None:
        self.until = until

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask for a checkpoint and the end, once the time has passed."""
        if time.monotonic() > self.until:
            control.should_save = control.should_training_stop = True


def supervise(
    model: Any,
    tokenizer: Any,
    rows: Dataset,
    directory: Path,
    *,
    checkpoint: Path | None,
    until: float = math.inf,
    callbacks: Sequence[TrainerCallback] = (),
    optimizers: tuple[Any, Any] = (None, None),
    optimiser: tuple[type[torch.optim.Optimizer], dict[str, Any]] | None = None,
    **arguments: Any,
) -> int:
    """Train a model in place, and keep checkpoints in `directory`/checkpoints. Returns how many steps it has taken in all.
    checkpoint: where to go on, exactly. until: the monotonic time after which training stops with a checkpoint.

    rows: columns `input_ids` and `labels`. optimizers: an optimiser and a schedule that exist; optimiser: the class of one that
    is made here. arguments: what differs from the defaults below, by the names of TRL's SFTConfig.
    """
    silence()
    without_plans()
    cuda = torch.cuda.is_available()
    chosen = {
        "lr_scheduler_type": "cosine",
        "max_grad_norm": 1.0,
        "max_length": None,
        "use_cpu": not cuda,
        "optim": "adamw_torch_fused" if cuda else "adamw_torch",
        "save_strategy": "steps",
        # The newest may be incomplete when the process is killed.
        "save_total_limit": 2,
        "report_to": [],
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,
        "log_level_replica": "error",
    }
    config = SFTConfig(output_dir=str(directory / "checkpoints"), **{**chosen, **arguments})
    keep_to_one_card(config)
    if not cuda:
        # Several processes have cpu:0 and so on, which torch.load takes for no device.
        config._setup_devices = torch.device("cpu")
    trainer = Supervised(
        model=model,
        args=config,
        train_dataset=rows,
        processing_class=tokenizer,
        callbacks=[*callbacks, Limited(until), Sealed()],
        optimizers=optimizers,
        optimizer_cls_and_kwargs=optimiser,
    )
    trainer.remove_callback(PrinterCallback)
    with ranks.noticed():
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return int(trainer.state.global_step)


def steps_of(rows: int, batch: int, epochs: int) -> int:
    """The optimiser steps of so many epochs; the last step of an epoch may be a smaller one.

    >>> steps_of(8000, 64, 4), steps_of(65, 64, 1)
    (500, 2)
    """
    return epochs * math.ceil(rows / batch)
