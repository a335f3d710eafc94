"""Make a policy that knows the format: corpus, tokenizer, supervised fine-tuning, weights, table of what it does.

    python -m experiments.cold_start                    # `small`: about a million parameters, shipped; what `--model small` loads
    python -m experiments.cold_start --size medium      # 21 million, for the h200 preset: runs/policy
    python -m experiments.cold_start --world h200       # 80 million, all families of envs/world: runs/world_policy
    python -m experiments.cold_start --world cpu        # 1.4 million, two of the families: rlkernel/policy/small_world

The scripted teacher (`envs/teacher`) writes conversations about generated chains, the evaluator judges every answer in them, and
a model with random weights is trained on the answers. Then it is measured on the validation chains of the suite, which are not in
the corpus, not even with other constants. The corpus is judged with modelled time, on every machine; the table is measured where
there is a GPU. `medium` takes seven minutes on an H200 and 16 cores, `small` nine; without a GPU training takes hours. Run it
again after an interruption: evaluations and training go on where they stopped (`runs/cold_start`).

A policy of the world is taught by `envs/world`, in conversations of up to eight turns. `h200` has its corpus judged in measured
time, and `cpu` in modelled time on every machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import torch

from envs.chains import generate, names_of, parse
from envs.problems import load_suite
from envs.teacher.corpus import Conversation, write_corpus
from envs.world.corpus import repetition
from experiments.arms import MEDIUM
from experiments.behaviour import render, repairs, shares
from experiments.optimizer import MuonAndAdamW
from experiments.recipes import RECIPES, WORLD_RECIPES, Recipe
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.metrics import rollout_metrics, timing
from rlkernel.policy.chat import encode_feedback, encode_prompt, end_of_turn
from rlkernel.policy.hf import open_policy
from rlkernel.policy.small import CONTEXT, SMALL, VOCABULARY, build_model, build_tokenizer, load_small, save_small
from rlkernel.rollout import rollout_groups
from rlkernel.training.placement import open_evaluator
from rlkernel.types import Group, Problem

RUNS = Path("runs/cold_start")
IGNORED = -100
"""The label of a token that is not trained."""


def corpus_problems(recipe: Recipe) -> tuple[Problem, ...]:
    """Generated chains; no chain of the suite is among them, not even with other constants."""
    suite = [parse(problem.source) for problem in load_suite()]
    return generate(recipe.problems, seed=recipe.seed, without=frozenset(names_of(steps) for steps in suite if steps))


def validation_chains() -> tuple[Problem, ...]:
    return tuple(problem for problem in load_suite() if problem.split == "validation" and parse(problem.source))


async def make_corpus(recipe: Recipe, pool: Pool) -> tuple[Conversation, ...]:
    """Write and judge the conversations, and show the progress."""
    problems = () if recipe.world else corpus_problems(recipe)
    total, done = recipe.world.total() if recipe.world else len(problems) * recipe.conversations, 0

    def count(conversation: Conversation) -> None:
        nonlocal done
        done += 1
        if done % (total // 20 or 1) == 0:
            print(f"corpus: {done} of {total} conversations, {pool.misses} candidates evaluated", flush=True)

    if recipe.world:
        return await recipe.world.corpus(recipe.seed, pool, count)
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


def tokenizer_for(corpus: Sequence[Conversation], vocabulary: int = VOCABULARY, context: int = CONTEXT) -> Any:
    """A tokenizer trained on the texts of the corpus and the headers of its turns."""
    texts = [text for c in corpus for e in c.exchanges for text in (e.answer, e.feedback, "user\n", "assistant\n")]
    return build_tokenizer([*texts, *(c.prompt for c in corpus)], vocabulary, context)


def row(tokenizer: Any, conversation: Conversation, context: int = CONTEXT) -> dict[str, list[int]]:
    """One conversation, tokenised turn by turn exactly as in a rollout; only answers and their end tokens are trained. An answer
    that would end beyond `context` tokens is left out, and what follows it."""
    input_ids = list(encode_prompt(tokenizer, conversation.prompt))
    labels = [IGNORED] * len(input_ids)
    for exchange in conversation.exchanges:
        answer = tokenizer.encode(exchange.answer + end_of_turn(tokenizer), add_special_tokens=False)
        if len(input_ids) + len(answer) > context:
            break
        told = list(encode_feedback(tokenizer, exchange.feedback)) if exchange.feedback else []
        input_ids += answer + told
        labels += answer + [IGNORED] * len(told)
    return {"input_ids": input_ids, "labels": labels}


def train(model: Any, tokenizer: Any, rows: list[dict[str, list[int]]], recipe: Recipe) -> None:
    """Supervised fine-tuning in place. A checkpoint of the same recipe on the same rows is taken up again."""
    import transformers
    from datasets import Dataset
    from transformers.trainer_utils import get_last_checkpoint
    from trl import SFTConfig, SFTTrainer

    from rlkernel.training.trl_arguments import keep_to_one_card

    transformers.utils.logging.set_verbosity_error()
    identity = hashlib.sha256(repr((rows, astuple(recipe))).encode()).hexdigest()[:12]
    directory = RUNS / f"sft-{identity}"
    arguments = SFTConfig(
        output_dir=str(directory),
        max_steps=recipe.steps,
        per_device_train_batch_size=recipe.batch,
        lr_scheduler_type="cosine",
        warmup_steps=40,
        max_grad_norm=1.0,
        max_length=None,
        packing=False,
        train_sampling_strategy="group_by_length",
        gradient_checkpointing=False,
        bf16=recipe.bf16 and torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        seed=recipe.seed,
        save_steps=100,
        save_total_limit=1,
        logging_steps=50,
        report_to=[],
    )
    keep_to_one_card(arguments)
    trainer = SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        optimizers=(MuonAndAdamW(model, muon=recipe.muon, adamw=recipe.adamw), None),
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(directory)) if directory.is_dir() else None)


async def measure(model: Any, tokenizer: Any, recipe: Recipe) -> tuple[Group, ...]:
    """Sample trajectories at temperature 1 on the validation problems, in measured time where there is a GPU."""
    if torch.cuda.is_available():
        model.to("cuda")
    async with open_evaluator("auto", 0, RUNS / "evaluations") as pool:
        lease = pool.lease if pool.shares else nullcontext
        async with open_policy(model, tokenizer, max_new_tokens=recipe.max_new_tokens, lease=lease) as policy:
            return await rollout_groups(
                recipe.world.validation() if recipe.world else validation_chains(),
                recipe.world.rollouts if recipe.world else recipe.rollouts,
                policy,
                pool,
                KernelEnvironment(),
                SpeedReward(),
                recipe.turns,
                seed=recipe.seed,
            )


async def make(recipe: Recipe, out: Path) -> None:
    """Carry out the whole recipe. The table describes the weights as they were written, and stands beside them in
    behaviour.json."""
    device = recipe.world.device if recipe.world else "cpu"
    async with open_pool(device=device, cache_dir=RUNS / "evaluations") as pool:
        corpus = await make_corpus(recipe, pool)
    verdicts = Counter(str(exchange.evaluation.status) for c in corpus for exchange in c.exchanges)
    print("corpus:", ", ".join(f"{status} {count}" for status, count in verdicts.most_common()), flush=True)
    print(f"lazy answers that follow a lazy one: {repetition(corpus):.0%}", flush=True)
    tokenizer = tokenizer_for(corpus, recipe.vocabulary, recipe.context)
    rows = [row(tokenizer, conversation, recipe.context) for conversation in corpus]
    sizes = {"width": recipe.width, "layers": recipe.layers, "heads": recipe.heads, "feed_forward": recipe.feed_forward}
    model = build_model(tokenizer, seed=recipe.seed, **sizes)
    tokens, size = sum(len(r["input_ids"]) for r in rows), sum(p.numel() for p in model.parameters())
    print(f"{len(rows)} conversations, {tokens} tokens, a model of {size} parameters", flush=True)
    train(model, tokenizer, rows, recipe)
    draft = out.with_name(f"{out.name}.draft")
    save_small(model, tokenizer, draft)
    groups = await measure(*load_small(draft), recipe)
    print(render(groups))
    facts = {"timing": timing(groups), "turns": shares(groups), "next": repairs(groups), "metrics": rollout_metrics(groups)}
    (draft / "behaviour.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    draft.rename(out)  # so that what is there is whole
    print(f"wrote {out}", flush=True)


def main() -> None:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--size", choices=tuple(RECIPES), default="small")
    parser.add_argument("--world", choices=tuple(WORLD_RECIPES), help="a policy of the world, in place of one that knows chains")
    parser.add_argument("--out", type=Path, help="directory for weights, tokenizer and table; default: where the presets look")
    parser.add_argument("--problems", type=int, help="generated ones; in the world, beside those of training")
    parser.add_argument("--steps", type=int, help="optimiser steps")
    parser.add_argument("--conversations", type=int, help="per problem")
    parser.add_argument("--batch", type=int, help="conversations per optimiser step")
    given = vars(parser.parse_args())
    size, world, out = given.pop("size"), given.pop("world"), given.pop("out")
    recipe, usual = WORLD_RECIPES[world] if world else (RECIPES[size], {"medium": MEDIUM, "small": SMALL}[size])
    chosen = replace(recipe, **{name: value for name, value in given.items() if value is not None})
    if chosen.world and given["conversations"] is not None:
        chosen = replace(chosen, world=replace(chosen.world, conversations=given["conversations"]))
    if chosen.world and given["problems"] is not None:
        chosen = replace(chosen, world=replace(chosen.world, extra=given["problems"]))
    anyio.run(partial(make, chosen, out or usual))


if __name__ == "__main__":
    main()
