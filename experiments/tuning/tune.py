"""A tuning from its table to its weights: it goes on where it was stopped, and leaves a model that any command here loads."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import torch
from datasets import Dataset

from experiments.behaviour import write_behaviour
from experiments.tuning.examination import Examination, examine
from experiments.tuning.recorder import Recorder
from experiments.tuning.rows import Tokens
from experiments.tuning.supervised import supervise
from rlkernel.config import to_json
from rlkernel.method_code import code_of
from rlkernel.policy.chat import end_of_turn
from rlkernel.policy.hf import stop_ids
from rlkernel.policy.load import load_model
from rlkernel.rollout import derive_seed
from rlkernel.runs import directory as rundir
from rlkernel.runs.log import RunLog
from rlkernel.runs.wandb import open_remote
from rlkernel.training import ranks
from rlkernel.training.eight_bit_adamw import EightBitAdamW
from rlkernel.training.memory import LARGE
from rlkernel.types import Group

WARMUP, WEIGHT_DECAY = 0.1, 0.01
"""The share of the steps in which the learning rate rises, before it falls as a cosine, and the decay: those of the public code
of arXiv 2602.05885."""


@dataclass(frozen=True)
class Tuning:
    """All that decides which weights come out, and what is measured of them."""

    model: str
    rows: str
    """`Tokens.digest`."""
    batch: int
    """Conversations per optimiser step, over all processes."""
    steps: int
    learning_rate: float
    weights: str
    """One of `rlkernel.config.WEIGHTS`."""
    lora_rank: int
    lora_alpha: float
    seed: int
    validation_every: int
    examination: Examination

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with anything that decides the outcome."""
        value = [to_json(self), code_of(self.examination.environment)]
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The model's name in a word."""
        return re.sub(r"[^\w.-]+", "-", self.model.rstrip("/").rsplit("/", 1)[-1])[:40]


@dataclass(frozen=True)
class Places:
    """Where a tuning is kept, and how it is carried out, which does not change its outcome beyond rounding."""

    directory: Path
    out: Path
    """Where the weights go."""
    cache: Path
    micro_batch: int
    """Conversations in one forward pass of a process."""
    checkpoint_every: int


def tune(tuning: Tuning, tokens: Tokens, places: Places) -> None:
    """Train, examine, and write the weights. What is finished is not made again. Raises UsageError."""
    ranks.check()
    first = ranks.rank() == 0
    with ExitStack() as held:
        if first:
            held.enter_context(rundir.owned(places.directory))
        start = ranks.shared(_begin(tuning, places) if first else None)
        if start.finished:
            print(f"{places.out} is finished already: {places.directory} has its steps", file=sys.stderr)
            return
        manifest = rundir.read_manifest(places.directory)
        assert manifest is not None
        remote = held.enter_context(_remote(tuning, places, manifest)) if first else None
        log = RunLog(places.directory, remote) if first else None
        model, tokenizer = load_model(
            tuning.model, weights=tuning.weights, lora_rank=tuning.lora_rank, lora_alpha=tuning.lora_alpha
        )
        _name_the_end(model, tokenizer)
        recorder = _recorder(tuning, places, tokenizer, log)
        if start.step < tuning.steps:
            _train(tuning, places, tokens, model, tokenizer, start.checkpoint, recorder)
        else:
            model = _trained(model, tuning, start.checkpoint)
        if log is not None:
            _write(model, tokenizer, places.out, recorder.last)
            log.finish()
            rundir.finish(places.directory)
        ranks.leave()


def _begin(tuning: Tuning, places: Places) -> rundir.Start:
    """Make the manifest, or find where to go on."""
    manifest = rundir.read_manifest(places.directory)
    if manifest is not None and "finished" in manifest and (places.out / "config.json").is_file():
        return rundir.Start(tuning.steps, None, finished=True)
    if manifest is None:
        about = {"arm": tuning.label, "seed": tuning.seed, "fingerprint": tuning.fingerprint, "run": to_json(tuning)}
        rundir.write_manifest(places.directory, {**about, **rundir.provenance(), "wandb_id": os.urandom(4).hex()})
    start = rundir.go_on(places.directory)
    going = "starting" if start.checkpoint is None else f"going on after step {start.step}"
    print(*start.told, f"{places.directory}: {going} of {tuning.steps} steps", sep="\n", file=sys.stderr, flush=True)
    return start


@contextmanager
def _remote(tuning: Tuning, places: Places, manifest: Mapping[str, Any]) -> Iterator[Any]:
    config = {key: value for key, value in to_json(tuning).items() if key != "examination"}
    config |= {key: manifest[key] for key in ("git", "versions", "machine")}
    named = (manifest["wandb_id"], tuning.label, tuning.seed)
    with open_remote(places.directory, *named, config=config, tags=["cold start"]) as remote:
        yield remote


def _name_the_end(model: Any, tokenizer: Any) -> None:
    """Say in the model and in the tokenizer which token ends a turn: base models of Qwen3 end texts with another one, and would
    never be stopped elsewhere."""
    end = end_of_turn(tokenizer)
    known = stop_ids(model, tokenizer)
    tokenizer.eos_token = end
    if model.generation_config is not None:
        model.generation_config.eos_token_id = sorted({*known, tokenizer.eos_token_id})


def _recorder(tuning: Tuning, places: Places, tokenizer: Any, log: RunLog | None) -> Recorder:
    asked = tuning.examination

    def ask(model: Any) -> tuple[Group, ...]:
        return anyio.run(partial(examine, model, tokenizer, asked, places.cache))

    prompts = {problem.name: asked.environment.prompt(problem) for problem in asked.problems} if log else {}
    return Recorder(log, ask, prompts, tuning.validation_every)


def _train(
    tuning: Tuning, places: Places, tokens: Tokens, model: Any, tokenizer: Any, checkpoint: Path | None, recorder: Recorder
) -> None:
    cuda = torch.cuda.is_available()
    full = tuning.weights == "bfloat16" and not tuning.lora_rank
    rows = Dataset.from_dict(
        {"input_ids": [row.input_ids for row in tokens.rows], "labels": [row.labels for row in tokens.rows]}
    )  # fmt: skip
    supervise(
        model,
        tokenizer,
        rows,
        places.directory,
        checkpoint=checkpoint,
        callbacks=[recorder],
        optimiser=(EightBitAdamW, {"lr": tuning.learning_rate, "seed": derive_seed(tuning.seed, "rounding")}) if full else None,
        max_steps=tuning.steps,
        per_device_train_batch_size=places.micro_batch,
        gradient_accumulation_steps=tuning.batch // (places.micro_batch * ranks.size()),
        learning_rate=tuning.learning_rate,
        warmup_steps=round(WARMUP * tuning.steps),
        weight_decay=WEIGHT_DECAY,
        gradient_checkpointing=sum(p.numel() for p in model.parameters()) > LARGE,
        bf16=cuda and not full,
        seed=tuning.seed,
        save_steps=places.checkpoint_every,
        logging_steps=1,
        disable_tqdm=True,
    )


def _trained(model: Any, tuning: Tuning, checkpoint: Path | None) -> Any:
    """The model with the weights of its last checkpoint, for a tuning that was stopped after all of its steps."""
    assert checkpoint is not None
    if not tuning.lora_rank:
        return type(model).from_pretrained(checkpoint, dtype=model.dtype)
    model.load_adapter(str(checkpoint), model.active_adapter)
    return model


def _write(model: Any, tokenizer: Any, out: Path, groups: tuple[Group, ...]) -> None:
    """Write weights and tokenizer whole or not at all; adapters are added to the weights that they are for."""
    draft = out.with_name(f"{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    whole = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    whole.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    if groups:
        write_behaviour(groups, draft)
    shutil.rmtree(out, ignore_errors=True)
    draft.rename(out)
    print(f"wrote {out}", flush=True)
