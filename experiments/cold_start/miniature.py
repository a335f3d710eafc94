"""A policy that knows the format, made from nothing: corpus, tokenizer, supervised training, weights, table of what it does.

The scripted teacher (`envs/teacher`) writes conversations about generated chains, the evaluator judges every answer in them, and
a model with random weights is trained on the answers. Then it is measured on the validation chains of the suite, which are not in
the corpus, not even with other constants. The corpus is judged with modelled time, on every machine; the table is measured where
there is a GPU. `medium` takes seven minutes on an H200 and 16 cores, `small` nine; without a GPU training takes hours.

A policy of the world is taught by `envs/world`, in conversations of up to eight turns. `h200` has its corpus judged in measured
time, and `cpu` in modelled time on every machine. Its corpus is one file, `runs/cold_start/corpus_*.jsonl`, with which another
machine goes on; training goes on from its own checkpoints.

Several processes (`rlkernel.training.ranks`) share the training: the first makes the rows, sends them to the others, and goes on
alone when all have trained.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from envs.chains import generate, names_of, parse
from envs.problems import load_suite
from envs.teacher.corpus import Conversation, write_corpus
from envs.world.corpus import repetition
from experiments.behaviour import write_behaviour
from experiments.cold_start.at_once import at_once
from experiments.cold_start.lesson import Lesson, lesson
from experiments.cold_start.optimizer import MuonAndAdamW
from experiments.cold_start.recipes import Recipe, Taught
from experiments.cold_start.shipped import unpack
from experiments.tuning.examination import Examination, examine
from experiments.tuning.recorder import Teller
from experiments.tuning.supervised import supervise
from experiments.world.corpus_file import CorpusFile
from experiments.world.judged import timing_of
from experiments.world.source import World
from rlkernel.config import to_json
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.evaluator.pool import open_pool
from rlkernel.policy.small import build_model, load_small, save_small
from rlkernel.runs import checkpoints
from rlkernel.runs.directory import provenance
from rlkernel.runs.durable import replace_text
from rlkernel.training import ranks
from rlkernel.types import Evaluation, Group, Problem, Status

RUNS = Path("runs/cold_start")
CHECKPOINTS = 4
"""How many a training writes beside the one at a limit of time: a large one takes seconds."""


def corpus_problems(recipe: Recipe) -> tuple[Problem, ...]:
    """Generated chains; no chain of the suite is among them, not even with other constants."""
    suite = [parse(problem.source) for problem in load_suite()]
    return generate(recipe.problems, seed=recipe.seed, without=frozenset(names_of(steps) for steps in suite if steps))


def validation_chains() -> tuple[Problem, ...]:
    return tuple(problem for problem in load_suite() if problem.split == "validation" and parse(problem.source))


async def make_corpus(recipe: Recipe, until: float, *, judge_anew: bool = False) -> tuple[Conversation, ...] | None:
    """Write and judge the conversations, and show the progress; None where the monotonic clock passed `until` first, which only a
    policy of the world looks at. judge_anew: leave a shipped corpus alone."""
    if recipe.worlds:
        corpora = [await _world_corpus(world, recipe.seed, until, judge_anew) for world in recipe.worlds]
        return None if None in corpora else tuple(conversation for corpus in corpora for conversation in corpus or ())
    problems = corpus_problems(recipe)
    total, done = len(problems) * recipe.conversations, 0

    def count(conversation: Conversation) -> None:
        nonlocal done
        done += 1
        if done % (total // 20 or 1) == 0:
            print(f"corpus: {done} of {total} conversations", flush=True)

    async with open_pool(device="cpu", cache_dir=RUNS / "evaluations") as pool:
        return await write_corpus(
            problems,
            pool,
            KernelEnvironment(),
            conversations=recipe.conversations,
            deck=recipe.deck,
            turns=recipe.turns,
            seed=recipe.seed,
            mixture=recipe.mixture,
            on_done=count,
        )


async def _world_corpus(world: World, seed: int, until: float, judge_anew: bool) -> tuple[Conversation, ...] | None:
    path = RUNS / f"{world.label(seed)}.jsonl"
    if not judge_anew and unpack(path):
        print("corpus: the one that comes with the project; --judge-anew judges it here", flush=True)
    file = CorpusFile(path)
    print(f"corpus: {len(file.found)} of {world.total()} conversations are in {file.path}", flush=True)
    if len(file.found) < world.total():
        async with open_pool(device=world.device, cache_dir=RUNS / "evaluations") as pool:
            file.check_timing(timing_of(pool))
            await world.corpus(seed, pool, file, until)
    # In an order that does not depend on which was finished first.
    return tuple(file.found[key] for key in sorted(file.found)) if len(file.found) == world.total() else None


def taught(corpus: Sequence[Conversation], shares: Taught, seed: int) -> tuple[Conversation, ...]:
    """The conversations of the corpus that a policy is taught, drawn from `seed`, in their order."""
    rng = random.Random(f"taught {seed}")
    return tuple(c for c in corpus if rng.random() < _share(c.exchanges[0].evaluation, shares))


def _share(first: Evaluation, shares: Taught) -> float:
    if first.correct:
        return shares.slow if (first.speedup or 0.0) < 1.0 else 1.0
    return 1.0 if first.status is Status.NO_KERNEL else shares.wrong


def train(model: Any, told: Lesson, recipe: Recipe, until: float, micro_batch: int | None = None) -> bool:
    """Supervised training in place, which all processes share. A checkpoint of the same recipe on the same rows is taken up
    again. micro_batch: the conversations in one forward pass; None for as many as fit the card. Returns False where the
    monotonic clock passed `until` first."""
    identity = hashlib.sha256(repr((told.rows, astuple(recipe))).encode()).hexdigest()[:12]
    directory = RUNS / f"sft-{identity}"
    step, checkpoint, passed = checkpoints.newest(directory / "checkpoints")
    if ranks.rank() == 0:
        print(*passed, f"training: {step} of {recipe.steps} steps are done, in {directory}", sep="\n", flush=True)
    if checkpoint is not None and step >= recipe.steps:
        model.load_state_dict(type(model).from_pretrained(checkpoint).state_dict())
        return True
    share = recipe.batch // ranks.size()
    together = micro_batch or at_once(share, recipe.context)
    taken = supervise(
        model,
        told.tokenizer,
        Dataset.from_list(told.rows),
        directory,
        checkpoint=checkpoint,
        until=until,
        callbacks=[] if ranks.rank() else [Teller()],
        optimizers=(MuonAndAdamW(model, muon=recipe.muon, adamw=recipe.adamw), None),
        max_steps=recipe.steps,
        per_device_train_batch_size=together,
        gradient_accumulation_steps=share // together,
        warmup_steps=40,
        train_sampling_strategy="group_by_length",
        gradient_checkpointing=False,
        bf16=recipe.bf16 and torch.cuda.is_available(),
        seed=recipe.seed,
        save_steps=max(1, recipe.steps // CHECKPOINTS),
        logging_steps=50,
    )
    return taken >= recipe.steps


async def measure(model: Any, tokenizer: Any, recipe: Recipe) -> tuple[Group, ...]:
    """Have a policy answer the validation problems. Its answers are judged where its corpus was; those of a policy of chains in
    measured time where there is a GPU."""
    if torch.cuda.is_available():
        model.to("cuda")
    problems = [problem for world in recipe.worlds for problem in world.validation()] or validation_chains()
    rollouts, device = (recipe.world.rollouts, recipe.world.device) if recipe.world else (recipe.rollouts, "auto")
    tokens = recipe.max_new_tokens
    asked = Examination(tuple(problems), KernelEnvironment(), recipe.turns, rollouts, tokens, recipe.seed, device=device)
    return await examine(model, tokenizer, asked, RUNS / "evaluations")


def manifest_of(recipe: Recipe, corpus: Sequence[Conversation], tokens: int) -> dict[str, Any]:
    """How a policy was made: its recipe, what was in the corpus of so many tokens, versions and machine."""
    answers = [exchange for conversation in corpus for exchange in conversation.exchanges]
    return {
        "recipe": to_json(recipe),
        "corpus": {
            "conversations": len(corpus),
            "answers": len(answers),
            "tokens": tokens,
            "verdicts": dict(Counter(str(exchange.evaluation.status) for exchange in answers).most_common()),
            "timing": next((e.evaluation.timing for e in answers if e.evaluation.timing), None),
            "sha256": hashlib.sha256("\0".join(exchange.answer for exchange in answers).encode()).hexdigest(),
        },
        **provenance(),
    }


async def make(
    recipe: Recipe, out: Path, until: float = math.inf, *, judge_anew: bool = False, micro_batch: int | None = None
) -> bool:
    """Carry out the whole recipe. The table describes the weights as they were written, and stands beside them in behaviour.json;
    manifest.json says how they were made. Returns False where the monotonic clock passed `until` before the weights were trained:
    the same call goes on. Of several processes, all but the first return when the weights are trained."""
    first = ranks.rank() == 0
    whole = await make_corpus(recipe, until, judge_anew=judge_anew) if first else None
    corpus = None if whole is None else taught(_described(whole), recipe.taught, recipe.seed)
    told = ranks.shared(None if corpus is None else lesson(corpus, recipe))
    if told is None:
        return False
    sizes = {"width": recipe.width, "layers": recipe.layers, "heads": recipe.heads, "feed_forward": recipe.feed_forward}
    model = build_model(told.tokenizer, seed=recipe.seed, **sizes)
    if first:
        print(f"a model of {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    if not train(model, told, recipe, until, micro_batch):
        return False
    ranks.part()
    if corpus is not None:
        await _write(model, told, corpus, recipe, out)
    return True


def _described(corpus: tuple[Conversation, ...]) -> tuple[Conversation, ...]:
    """The same corpus, of which two lines say what is in it."""
    verdicts = Counter(str(exchange.evaluation.status) for c in corpus for exchange in c.exchanges)
    print("corpus:", ", ".join(f"{status} {count}" for status, count in verdicts.most_common()), flush=True)
    print(f"lazy answers that follow a lazy one: {repetition(corpus):.0%}", flush=True)
    return corpus


async def _write(model: Any, told: Lesson, corpus: Sequence[Conversation], recipe: Recipe, out: Path) -> None:
    """Write the weights, the table of what they do, and how they were made, all or nothing."""
    draft = out.with_name(f"{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    save_small(model, told.tokenizer, draft)
    groups = await measure(*load_small(draft), recipe)
    write_behaviour(groups, draft)
    replace_text(draft / "manifest.json", json.dumps(manifest_of(recipe, corpus, told.corpus_tokens), indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    draft.rename(out)  # so that what is there is whole
    print(f"wrote {out}", flush=True)
