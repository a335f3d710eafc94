"""Copies of conversations with other sizes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from envs.teacher.corpus import Conversation, Exchange
from experiments.cold_start.renumbered import copies, renumbered
from rlkernel.types import Evaluation, Problem, Status

PROMPT = "Rewrite this.\nROWS = 4096\nCOLS = 3000\nB = 8\nx * 3000\n"


def conversation(*answers: str, prompt: str = PROMPT) -> Conversation:
    verdict = Evaluation(Status.CORRECT, "")
    return Conversation(
        Problem("own/x", 1, "train", prompt), prompt, tuple(Exchange(answer, verdict, "12 us") for answer in answers)
    )


def stated(text: str) -> dict[str, int]:
    """The sizes that a text states, by name."""
    return {line.split(" = ")[0]: int(line.split(" = ")[1]) for line in text.splitlines() if " = " in line}


def test_the_first_copies_are_the_conversations_themselves() -> None:
    one, other = conversation("COLS = 3000\n"), conversation("ROWS = 4096\n")
    found = list(copies([one, other], 3, seed=0))
    assert found[:2] == [one, other] and len(found) == 6
    assert len({c.prompt for c in found[::2]}) == 3  # and the sizes of each copy are its own


@given(seed=st.integers(0, 10_000))
def test_a_problem_and_all_its_answers_state_the_same_other_sizes(seed: int) -> None:
    found = renumbered(conversation("COLS = 3000\ny = 1\n", "ROWS = 4096\nCOLS = 3000\n"), random.Random(seed))
    told = stated(found.prompt)
    assert stated(found.exchanges[0].answer) == {"COLS": told["COLS"], "y": 1}
    assert stated(found.exchanges[1].answer) == {"ROWS": told["ROWS"], "COLS": told["COLS"]}
    assert found.prompt.endswith("x * 3000\n")  # only lines that state a size are rewritten
    assert [exchange.feedback for exchange in found.exchanges] == ["12 us", "12 us"]


@given(seed=st.integers(0, 10_000), size=st.integers(128, 1 << 20))
def test_blocks_that_fit_the_old_size_fit_the_new_one(seed: int, size: int) -> None:
    new = stated(renumbered(conversation(prompt=f"N = {size}\n"), random.Random(seed)).prompt)["N"]
    assert (new - 1).bit_length() == (size - 1).bit_length()
    for divisor in (2, 16, 64, 256):
        assert size % divisor or new % divisor == 0


def test_a_size_that_an_answer_has_got_wrong_stays_wrong() -> None:
    found = renumbered(conversation("COLS = 3001\n"), random.Random(0))
    assert found.exchanges[0].answer == "COLS = 3001\n"


def test_small_sizes_stay() -> None:
    assert stated(renumbered(conversation(), random.Random(1)).prompt)["B"] == 8
