"""Copies of conversations with other sizes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from envs.teacher.corpus import Conversation, Exchange
from envs.world.suite import reserved_sizes
from experiments.cold_start.renumbered import copies, resized
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
    prompt, *answers = resized([PROMPT, "COLS = 3000\ny = 1\n", "ROWS = 4096\nCOLS = 3000\n"], random.Random(seed))
    told = stated(prompt)
    assert stated(answers[0]) == {"COLS": told["COLS"], "y": 1}
    assert stated(answers[1]) == {"ROWS": told["ROWS"], "COLS": told["COLS"]}
    assert prompt.endswith("x * 3000\n")  # only lines that state a size are rewritten


def test_feedback_stays_as_it_was() -> None:
    _, copy = copies([conversation("COLS = 3000\n")], 2, seed=1)
    assert [exchange.feedback for exchange in copy.exchanges] == ["12 us"] and copy.prompt != PROMPT


@given(seed=st.integers(0, 10_000), size=st.integers(128, 1 << 20))
def test_blocks_that_fit_the_old_size_fit_the_new_one(seed: int, size: int) -> None:
    new = stated(resized([f"N = {size}\n"], random.Random(seed))[0])["N"]
    assert (new - 1).bit_length() == (size - 1).bit_length()
    for divisor in (2, 16, 64, 256):
        assert size % divisor or new % divisor == 0


def test_no_size_is_one_that_validation_keeps_for_itself() -> None:
    rng = random.Random(0)
    found = {stated(resized(["COLS = 8192\n"], rng)[0])["COLS"] for _ in range(400)}
    assert {5120, 7168} <= reserved_sizes()
    assert len(found) == 16 - 2 and not found & reserved_sizes()  # the multiples of 256 in (4096, 8192] but these two


def test_a_size_that_an_answer_has_got_wrong_stays_wrong() -> None:
    assert resized([PROMPT, "COLS = 3001\n"], random.Random(0))[1] == "COLS = 3001\n"


def test_small_sizes_stay() -> None:
    assert stated(resized([PROMPT], random.Random(1))[0])["B"] == 8
