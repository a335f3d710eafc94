"""What a policy is taught: a tokenizer, and conversations as rows of its tokens, made on all cores.

The rows depend on the corpus and the recipe alone, not on the number of cores: work is cut into parts of a fixed length.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any, TypeVar

from envs.teacher.corpus import Conversation
from experiments.cold_start.recipes import Recipe
from experiments.cold_start.renumbered import copies, resized
from experiments.tuning.conversations import Conversation as Told
from experiments.tuning.rows import token_row
from experiments.world.readings import readings
from rlkernel.policy.small import build_tokenizer

PART = 500
"""Readings, or conversations, of one part."""
WORKERS = 16
"""The most processes that work on parts: each takes 0.4 GiB."""
Row = dict[str, list[int]]
"""A conversation in tokens: `input_ids` and `labels`."""
Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class Lesson:
    """What is taught: the tokenizer, and rows of its tokens with their labels."""

    tokenizer: Any
    rows: list[Row]
    corpus_tokens: int
    """Tokens of the corpus's own conversations, which are the first rows."""


def lesson(corpus: Sequence[Conversation], recipe: Recipe) -> Lesson:
    """The tokenizer and the rows of conversations that are taught, and of what is taught beside them."""
    texts = [text for c in corpus for e in c.exchanges for text in (e.answer, e.feedback, "user\n", "assistant\n")]
    tokenizer = build_tokenizer([*texts, *(c.prompt for c in corpus)], recipe.vocabulary, recipe.context)
    rows = _rows(tokenizer, [_told(c) for c in corpus], recipe.context)
    more = _rows(tokenizer, _further(corpus, recipe), recipe.context)
    tokens = sum(len(row["input_ids"]) for row in rows)
    print(f"{len(rows)} conversations of {tokens} tokens, {len(more)} rows beside them", flush=True)
    return Lesson(tokenizer, rows + more, tokens)


def _told(conversation: Conversation) -> Told:
    told = (conversation.prompt, *(exchange.feedback for exchange in conversation.exchanges))
    return Told(tuple(zip(told, (exchange.answer for exchange in conversation.exchanges), strict=False)))


def _further(corpus: Sequence[Conversation], recipe: Recipe) -> list[Told]:
    """What is taught beside the corpus: readings, and for the steps that are left copies of conversations with other sizes."""
    if not recipe.worlds:
        return []
    rng, count = random.Random(f"readings {recipe.seed}"), sum(world.readings for world in recipe.worlds)
    parts = [
        (world.families, number, min(PART, world.readings - start))
        for world in recipe.worlds
        for number, start in enumerate(range(0, world.readings, PART))
    ]
    write = partial(_readings, recipe.seed)
    drafts = dict.fromkeys(_on_all_cores(write, parts))  # two parts may have drawn the same task
    found = [Told(((prompt, answer),)) for prompt, answer in (resized(pair, rng) for pair in drafts)]
    times = math.ceil((recipe.steps * recipe.batch - count) / len(corpus))
    others = islice(copies(corpus, times, recipe.seed), len(corpus), None)  # the first ones are the conversations themselves
    return found + [_told(copy) for copy in others]


def _readings(seed: int, part: tuple[Sequence[str], int, int]) -> list[tuple[str, str]]:
    """One part of the readings. part: the families that they are about, its number, and how many they are."""
    families, number, count = part
    return list(readings(families, count, f"{seed} {number}"))


def _rows(tokenizer: Any, conversations: Sequence[Told], context: int) -> list[Row]:
    """The conversations in tokens. An answer that would end beyond `context` tokens is left out, and what follows."""
    parts = [conversations[start : start + PART] for start in range(0, len(conversations), PART)]
    return list(_on_all_cores(partial(_tokens, tokenizer, context), parts))


def _tokens(tokenizer: Any, context: int, part: Sequence[Told]) -> list[Row]:
    found = []
    for told in part:
        row = token_row(tokenizer, told, context)
        assert row is not None
        found.append({"input_ids": row.input_ids.tolist(), "labels": row.labels.tolist()})
    return found


def _on_all_cores(work: Callable[[Input], list[Output]], parts: Sequence[Input]) -> Iterator[Output]:
    """Yield what `work` makes of each part, in their order. Several parts are worked on in processes of their own."""
    workers = min(len(parts), len(os.sched_getaffinity(0)), WORKERS)
    if workers < 2:
        yield from chain.from_iterable(map(work, parts))
        return
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from chain.from_iterable(pool.map(work, parts))
