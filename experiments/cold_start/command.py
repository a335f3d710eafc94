"""Make a policy that knows the format: from nothing, or from a model that exists and a table of conversations.

    python -m experiments.cold_start                    # `small`: about a million parameters, shipped; what `--model small` loads
    python -m experiments.cold_start --size medium      # 21 million, for the h200 preset: runs/policy
    python -m experiments.cold_start --world h200       # 80 million, all families of envs/world: runs/world_policy
    python -m experiments.cold_start --world cpu        # 1.4 million, two of the families: rlkernel/policy/small_world
    accelerate launch --multi_gpu --num_processes 4 --main_process_port 0 -m experiments.cold_start --world h200    # four cards
    python -m experiments.cold_start --model Qwen/Qwen3-8B-Base --data hkust-nlp/drkernel-coldstart-8k --out runs/cold_8b

From nothing, `experiments.cold_start.miniature` does it: a scripted teacher writes the conversations. A model that exists is
trained on the assistant's answers alone (`experiments.tuning`), with the settings of arXiv 2602.05885, and answers validation
problems now and then, which the evaluator judges. Give the same command again after an interruption: evaluations and training go
on where they stopped (`runs/cold_start`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from transformers import AutoTokenizer

from envs.problems import load_suite
from experiments.arms import MEDIUM
from experiments.cold_start.flags import Flags, check
from experiments.cold_start.miniature import make
from experiments.cold_start.recipes import RECIPES, WORLD_RECIPES, rehearsal
from experiments.tuning.conversations import read_conversations
from experiments.tuning.examination import Examination
from experiments.tuning.rows import token_rows
from experiments.tuning.supervised import steps_of
from experiments.tuning.tune import Places, Tuning, tune
from experiments.world.judged import deadline
from rlkernel.commands.flags import parse_flags
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.errors import GOES_ON, UsageError, exit_status
from rlkernel.policy.load import check_model, load_config
from rlkernel.policy.small import SMALL
from rlkernel.sources.load import load
from rlkernel.training import ranks

RUNS = Path("runs/cold_start")
BATCH = 64
"""The conversations per step of arXiv 2602.05885."""


def from_nothing(flags: Flags) -> int:
    """Make one of our own policies. Returns the exit status."""
    until = deadline(flags.limit_seconds)
    usual = {"medium": MEDIUM, "small": SMALL}[flags.size]
    recipe, out = WORLD_RECIPES[flags.world] if flags.world else (RECIPES[flags.size], usual)
    chosen = replace(
        recipe,
        problems=flags.generated or recipe.problems,
        conversations=flags.conversations or recipe.conversations,
        steps=flags.steps or recipe.steps,
        batch=flags.batch or recipe.batch,
    )
    ranks.check()
    if ranks.size() > 1 and flags.limit_seconds is not None:
        raise UsageError("--limit-seconds is for one process: several would not stop after the same step")
    if chosen.batch % ranks.size():
        raise UsageError(f"--batch {chosen.batch}: give a multiple of the {ranks.size()} processes")
    micro_batch = None if flags.dry_run else flags.micro_batch
    if micro_batch is not None:
        _check_batch(chosen.batch, micro_batch)
    if (world := chosen.world) is not None:
        conversations, extra = flags.conversations or world.conversations, flags.generated or world.extra
        chosen = replace(chosen, world=replace(world, conversations=conversations, extra=extra))
    if flags.dry_run:
        chosen, out = rehearsal(chosen), RUNS / "dry_run"
    made = partial(make, chosen, flags.out or out, until, judge_anew=flags.judge_anew, micro_batch=micro_batch)
    if anyio.run(made):
        return 0
    print(f"stopped after {flags.limit_seconds:g} s: the same command goes on", file=sys.stderr)
    return GOES_ON


def from_model(flags: Flags) -> int:
    """Train a model that exists. Returns the exit status. Raises UsageError."""
    check_model(flags.model, lora_rank=flags.lora_rank)
    examination = _examination(flags)
    found = read_conversations(flags.data, _column(flags))
    positions: int = load_config(flags.model).get_text_config().max_position_embeddings
    tokenizer = AutoTokenizer.from_pretrained(SMALL if flags.model == "small" else flags.model)
    tokens = token_rows(tokenizer, found.found, min(flags.length, positions))
    batch, micro_batch = flags.batch or BATCH, flags.micro_batch or 1
    _check_batch(batch, micro_batch)
    steps = flags.steps or steps_of(len(tokens.rows), batch, flags.epochs)
    same = ("model", "learning_rate", "weights", "lora_rank", "lora_alpha", "seed", "validation_every")
    chosen = {name: getattr(flags, name) for name in same}
    tuning = Tuning(rows=tokens.digest, batch=batch, steps=steps, examination=examination, **chosen)
    directory = RUNS / f"{tuning.label}-{tuning.fingerprint[:8]}"
    if ranks.rank() == 0:
        print(*found.lines(), tokens.line(), sep="\n", file=sys.stderr, flush=True)
    out = flags.out or directory / "model"
    tune(tuning, tokens, Places(directory, out, RUNS / "evaluations", micro_batch, flags.checkpoint_every))
    return 0


def _check_batch(batch: int, micro_batch: int) -> None:
    if batch % (micro_batch * ranks.size()):
        raise UsageError(f"--batch {batch}: give a multiple of --micro-batch times the processes, {micro_batch * ranks.size()}")


def _column(flags: Flags) -> str:
    for text in flags.column:
        part, _, column = text.partition("=")
        if part != "messages" or not column or len(flags.column) > 1:
            raise UsageError(f"--column {text}: write messages=NAME, once")
        return column
    return ""


def _examination(flags: Flags) -> Examination:
    small = flags.model == "small"
    problems = load(flags.validation, split="validation", flag="--validation").problems if flags.validation else load_suite()
    environment = KernelEnvironment(flags.style if flags.style != "auto" else "short" if small else "full")
    asked = tuple(problem for problem in problems if problem.split == "validation")
    environment.check(asked)
    tokens = flags.max_new_tokens or (256 if small else 8192)
    where = (flags.device, flags.jobs, flags.evaluation_gib)
    return Examination(asked, environment, flags.turns, flags.validation_rollouts, tokens, flags.seed, *where)


def main(argv: Sequence[str]) -> int:
    """The command. Exit status: 0, 2 for unusable arguments (one line), 75 where --limit-seconds came first, 130 when
    interrupted."""
    return exit_status(partial(_main, list(argv)))


def _main(argv: list[str]) -> int:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    flags = parse_flags(Flags(), argv, "python -m experiments.cold_start")
    check(flags)
    return (from_model if flags.model else from_nothing)(flags)
