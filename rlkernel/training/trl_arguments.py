"""TRL's configuration of a run, the reference of its KL, and libraries that keep quiet."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from trl import GRPOConfig
from trl.trainer.utils import add_fused_lm_head, disable_dropout_in_model

from rlkernel.config import Run
from rlkernel.rollout import derive_seed
from rlkernel.settings import Optimiser
from rlkernel.training.eight_bit_adamw import EightBitAdamW

TYPES = {"clip": "dapo", "cispo": "cispo", "reinforce": "dapo"}
"""TRL's `loss_type` for each kind of `rlkernel.settings.Loss`. reinforce is dapo without `old_per_token_logps`, at ratio 1."""
CLIPPED = {"clip": "clip_ratio/region_mean", "cispo": "cispo_clip_ratio", "reinforce": "clip_ratio/region_mean"}
"""Where TRL notes the share of clipped tokens, by kind."""


def training_arguments(run: Run, directory: Path, checkpoint_every: int, *, recomputed: bool) -> GRPOConfig:
    """TRL's configuration of a run. To TRL a batch is one piece; `KernelGRPOTrainer.training_step` cuts it. recomputed: whether
    activations are, see `rlkernel.training.memory.plan`.

    On a GPU, matrix products run in bfloat16 (autocast, which bfloat16 weights do not need). What trains in float32 has float32
    gradients and moments.
    """
    rows = run.prompts_per_step * run.rollouts
    cuda = torch.cuda.is_available()
    arguments = GRPOConfig(
        output_dir=str(directory),
        max_steps=run.steps,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=1,
        num_generations=run.rollouts,
        shuffle_dataset=False,  # the plan is in order
        temperature=run.temperature,
        max_completion_length=run.turns * run.max_new_tokens,
        loss_type=TYPES[run.loss.kind],
        importance_sampling_level="token",
        epsilon=run.loss.clip_low,
        # TRL's cispo takes the bound itself, and not its distance from 1.
        epsilon_high=run.loss.clip_high + (run.loss.kind == "cispo"),
        beta=0.0,  # `LossTrainer` adds the KL: TRL would load a copy of the reference, and ask it for all rows at once
        scale_rewards="none",
        disable_dropout=True,
        learning_rate=run.learning_rate,
        weight_decay=run.optimiser.weight_decay,
        max_grad_norm=run.max_grad_norm,
        seed=run.seed,
        bf16=cuda and run.weights == "float32",
        use_cpu=not cuda,
        optim="sgd" if run.optimiser.rule == "sgd" else "adamw_torch_fused" if cuda else "adamw_torch",
        gradient_checkpointing=recomputed,
        logging_steps=1,
        save_strategy="steps",
        save_steps=checkpoint_every,
        # The newest may be incomplete when the process is killed.
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        # Of several processes: every parameter that trains has a gradient.
        ddp_find_unused_parameters=False,
        log_level_replica="error",
    )
    keep_to_one_card(arguments)
    if not cuda:
        # Several processes have cpu:0 and so on, which torch.load takes for no device.
        arguments._setup_devices = torch.device("cpu")
    return arguments


def optimiser(run: Run) -> tuple[type[torch.optim.Optimizer], dict[str, Any]] | None:
    """The optimiser of bfloat16 weights, as transformers takes it; None for one of its own."""
    if run.weights == "float32":
        return None
    return EightBitAdamW, {"lr": run.learning_rate, "seed": derive_seed(run.seed, "rounding")}


def share_of_rate(optimiser: Optimiser, steps: int, step: int) -> float:
    """The learning rate of a step, from 0, as a share of the largest. transformers' own warm-up begins at 0: a step that samples
    and judges a batch, and does not move.

    >>> [share_of_rate(Optimiser(warmup=2, decay="cosine"), 4, step) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    if step < optimiser.warmup:
        return (step + 1) / optimiser.warmup
    if optimiser.decay == "constant":
        return 1.0
    passed = (step - optimiser.warmup) / max(1, steps - optimiser.warmup)
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * passed)))  # as transformers has it, to the bit


def keep_to_one_card(arguments: transformers.TrainingArguments) -> None:
    """Change the arguments so that only one GPU is used. Other visible ones belong to evaluators; the Trainer would wrap the
    model in DataParallel for them, and multiply the batch by their number."""
    arguments._setup_devices  # noqa: B018  (a cached property that sets _n_gpu)
    arguments._n_gpu = min(arguments._n_gpu, 1)


def silence() -> None:
    """Keep libraries from writing over the progress bar; their errors still show."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()


class Reference:
    """The policy at the start of the run, for the KL from it (`Loss.beta`): a frozen copy or, where adapters train, the model
    without them. Made before the trainer, which changes the model's `forward` and loads the weights of a checkpoint."""

    def __init__(self, model: Any, run: Run) -> None:
        self._copy: Any = None
        if run.loss.beta and not run.lora_rank:
            self._copy = copy.deepcopy(model).eval().requires_grad_(False)
            disable_dropout_in_model(self._copy)
            add_fused_lm_head(self._copy, temperature=run.temperature)

    @contextmanager
    def of(self, model: Any) -> Iterator[Any]:
        """The model to ask, on the device of `model`, which is the one in training."""
        if self._copy is not None:
            yield self._copy.to(model.device)
        else:
            with model.disable_adapter():
                yield model
