"""The flags of `experiments.cold_start`, and which of its two ways they are for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from rlkernel.commands.asked import check_limit
from rlkernel.errors import UsageError

FROM_NOTHING = ("size", "world", "generated", "conversations", "judge_anew", "limit_seconds", "dry_run")
"""The flags for a policy that is made from nothing."""
BOTH = ("out", "steps", "batch", "micro_batch")
"""The flags for either way. All others are for a model that exists."""


@dataclass(frozen=True)
class Flags:
    """Make a policy that knows the format: from nothing, or from a model that exists and a table of conversations."""

    out: Path | None = None
    """Directory for weights, tokenizer and table of what the policy does."""
    steps: int | None = None
    """Optimiser steps."""
    batch: int | None = None
    """Conversations per optimiser step."""
    micro_batch: int | None = None
    """Conversations in one forward pass of a card; changes time and memory alone. Without it, as many as fit the card for a
    policy from nothing, and 1 for a model that exists."""

    size: Literal["small", "medium"] = "small"
    """From nothing: the size of a policy that knows chains."""
    world: Literal["h200", "h200_shown", "cpu"] | None = None
    """From nothing: a policy of the world, in place of one that knows chains."""
    generated: int | None = None
    """From nothing: problems that are generated; in the world, beside those of training."""
    conversations: int | None = None
    """From nothing: conversations per problem."""
    judge_anew: bool = False
    """From nothing, in the world: judge the corpus here, also where one comes with the project."""
    limit_seconds: float | None = None
    """From nothing, in the world: stop after so many seconds with exit status 75; the same command goes on."""
    dry_run: bool = False
    """From nothing: all of it at the smallest sizes, in runs/cold_start/dry_run, to see that it works here."""

    model: str = ""
    """`small`, a directory, or a name on the Hugging Face hub."""
    data: str = ""
    """Conversations: a .parquet or .jsonl file, a directory of these, or owner/name[:split][@revision] on the hub."""
    column: tuple[str, ...] = ()
    """The column of the conversations in a table of your own: messages=NAME."""
    length: int = 18_432
    """The most tokens of a conversation; answers that end beyond are left out."""
    epochs: int = 4
    """How often each conversation is taken, where --steps does not say."""
    learning_rate: float = 2e-5
    weights: Literal["float32", "bfloat16"] = "float32"
    """What trains in full is kept in: float32 (18 bytes per parameter) or bfloat16 (6 bytes); see docs/larger.md."""
    lora_rank: int = 0
    """Train adapters of this rank, and add them to the weights at the end; 0: all weights."""
    lora_alpha: float = 32.0
    seed: int = 0
    checkpoint_every: int = 25
    """Steps between checkpoints."""

    validation: str = ""
    """Problems that the model answers now and then, as --problems of the benchmark; without it, those of our suite."""
    validation_every: int = 50
    """Steps between two such examinations; there is one before the first step and one after the last."""
    validation_rollouts: int = 1
    """Conversations per problem."""
    turns: int = 3
    """Turns of such a conversation."""
    max_new_tokens: int | None = None
    """Longest answer of an examination in tokens; without it, 256 for the small model, else 8192."""
    style: Literal["auto", "short", "full", "given", "kernelgym"] = "auto"
    """Style of prompt and feedback there; see docs/data.md. auto: short for the small model, else full."""
    device: str = "auto"
    """Where answers are judged: auto, cpu (modelled time), cuda, or cuda:N."""
    jobs: int = 0
    evaluation_gib: int = 24
    """What evaluations may take of a card that they share with the model, in GiB; 0: half of it."""


def check(flags: Flags) -> None:
    """Raise UsageError for flags that cannot work together."""
    own = {field.name for field in fields(flags)} - {*FROM_NOTHING, *BOTH}
    strangers = FROM_NOTHING if flags.model else own
    default = Flags()
    given = [name for name in strangers if getattr(flags, name) != getattr(default, name)]
    if given:
        flag = "--" + sorted(given)[0].replace("_", "-")
        raise UsageError(f"{flag} is {'not for' if flags.model else 'for'} a model that exists: {_fix(flags, flag)}")
    if flags.model and not flags.data:
        raise UsageError("--model is trained on conversations: say where they are, --data FILE_OR_NAME")
    for name in ("steps", "batch", "generated", "conversations", "length", "epochs", "micro_batch", "checkpoint_every"):
        _positive(flags, name)
    for name in ("validation_every", "validation_rollouts", "turns", "max_new_tokens"):
        _positive(flags, name)
    for name in ("lora_rank", "jobs", "evaluation_gib"):
        if getattr(flags, name) < 0:
            raise UsageError(f"--{name.replace('_', '-')} {getattr(flags, name)}: at least 0")
    check_limit(flags.limit_seconds)
    if flags.limit_seconds is not None and flags.world is None:
        raise UsageError("--limit-seconds is for a policy of the world: give --world too, or interrupt, which loses little")
    if flags.judge_anew and flags.world is None:
        raise UsageError("--judge-anew is for a policy of the world: give --world too; the others' corpora are always judged")
    if flags.learning_rate <= 0:
        raise UsageError(f"--learning-rate {flags.learning_rate}: above 0")


def _fix(flags: Flags, flag: str) -> str:
    return f"leave {flag} or --model out" if flags.model else "give --model NAME and --data FILE_OR_NAME"


def _positive(flags: Flags, name: str) -> None:
    value = getattr(flags, name)
    if value is not None and value < 1:
        raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1")
