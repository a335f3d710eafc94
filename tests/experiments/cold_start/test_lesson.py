"""Rows of tokens from a corpus: what stands in them, and that they are the same on any number of cores."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from envs.teacher.corpus import Conversation, Exchange
from envs.world.draw import HELD_OUT
from experiments.cold_start import lesson as place
from experiments.cold_start.lesson import Lesson, lesson
from experiments.cold_start.recipes import WORLD_RECIPES, Recipe
from experiments.world.source import TWO, World
from rlkernel.types import Evaluation, Problem, Status

PROBLEM = Problem("mine/relu", 1, "train", "import torch\n")
WRONG = Evaluation(Status.INCORRECT, "")
CORPUS = [
    Conversation(
        PROBLEM, f"ROWS = {rows}\nwrite a kernel", (Exchange(f"ROWS = {rows}", WRONG, "wrong"), Exchange("again", WRONG, ""))
    )
    for rows in (512, 1024)
]


def taught(recipe: Recipe) -> Lesson:
    return lesson(CORPUS, replace(recipe, vocabulary=300, context=4096))


def test_a_corpus_of_chains_has_nothing_beside_it() -> None:
    found = taught(replace(WORLD_RECIPES["cpu"][0], world=None))
    assert len(found.rows) == 2
    assert found.corpus_tokens == sum(len(row["input_ids"]) for row in found.rows)
    trained = [token for token in found.rows[0]["labels"] if token != -100]
    assert found.tokenizer.decode(trained, skip_special_tokens=True) == "ROWS = 512again"


def test_the_rows_are_the_same_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    # 3 steps of 4 are 12 rows: 6 readings, and 6 rows of two conversations: each taken three times, the first time as it is.
    recipe = replace(WORLD_RECIPES["cpu"][0], world=World(TWO, extra=1, conversations=1, readings=6), steps=3, batch=4)
    monkeypatch.setattr(place, "PART", 3)
    found = []
    for cores in ({0}, {0, 1}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        found.append(taught(recipe).rows)
    assert found[0] == found[1]
    assert len(found[0]) == 2 + 6 + 4


def test_what_is_shown_besides_adds_readings_of_its_own_and_takes_copies_away() -> None:
    # Of 12 rows 4 are readings about chains and rows, 3 are about columns, and 5 are conversations, the first two as they are.
    world, beside = World(TWO, extra=1, conversations=1, readings=4), World((HELD_OUT,), extra=1, conversations=1, readings=3)
    recipe = replace(WORLD_RECIPES["cpu"][0], world=world, beside=beside, steps=3, batch=4)
    found = taught(recipe)
    prompts = [found.tokenizer.decode(row["input_ids"]) for row in found.rows]
    about = ["columnnorm" if re.search(r"dim=0|mean\(0\)", text) else "other" for text in prompts]
    assert len(prompts) == 2 + 4 + 3 + 4  # whole rounds of the two conversations are taken
    assert about[6:9] == ["columnnorm"] * 3 and "columnnorm" not in about[:6]
