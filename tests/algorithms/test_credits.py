"""Which token gets which advantage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import CREDITS
from algorithms.hrd import HRD, code_start, first_code_token
from algorithms.uniform_credit import UniformCredit
from rlkernel.environment.extract import extract_code
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Credit
from rlkernel.types import Completion, Evaluation, OpFact, Status, Turn


def decode(ids: Sequence[int]) -> str:
    """One UTF-8 byte per token, as a byte-level tokenizer decodes: half a character is a replacement character. 256 is a stop
    token."""
    return bytes(i for i in ids if i < 256).decode("utf-8", errors="replace")


def turn(text: str, code: str | None, evaluation: Evaluation | None = None, reward: float = 0.0) -> Turn:
    ids = (*text.encode(), 256)
    completion = Completion(ids, (-1.0,) * len(ids), text, "stop")
    return Turn((1, 2), completion, code, evaluation or Evaluation(Status.NO_CODE, ""), reward, "")


def test_registered_credits_implement_the_protocol() -> None:
    assert {"uniform": UniformCredit, "hrd": HRD} == CREDITS
    assert all(isinstance(cls(), Credit) for cls in CREDITS.values())


def test_uniform_credit_covers_every_sampled_token() -> None:
    answer = turn("ab", None, reward=0.75)
    assert UniformCredit().rewards(answer) == (0.75,)
    assert UniformCredit()(answer, [-0.5], decode).tolist() == [-0.5, -0.5, -0.5]


def test_plan_tokens_by_speed_and_code_tokens_by_correctness() -> None:
    answer = turn("Go:\nx=1\n", "x=1\n")
    # Plan "Go:\n", 4 tokens of 0.1 * -2; code "x=1\n" and the stop token, 5 tokens of 1.
    assert HRD()(answer, [1.0, -2.0], decode).tolist() == pytest.approx([-0.2] * 4 + [1.0] * 5)
    assert HRD(alpha=0.5)(answer, [1.0, -2.0], decode).tolist() == [-1.0] * 4 + [1.0] * 5


def test_rewards_of_code_and_plan() -> None:
    def rewards(status: Status, speedup: float, *ops: str) -> tuple[float, ...]:
        facts = Evaluation(status, "", speedup=speedup, ops=tuple(OpFact(op, 1, 1.0, 0.1) for op in ops))
        return HRD().rewards(turn("", "", facts))

    # r_code = valid * correct; r_plan = valid * correct * min(speedup, 3)
    assert rewards(Status.CORRECT, 1.5) == (1.0, 1.5)
    assert rewards(Status.CORRECT, 7.0) == (1.0, 3.0)
    assert rewards(Status.INCORRECT, 7.0) == (0.0, 0.0)
    assert rewards(Status.CORRECT, 1.5, "aten.mm") == (0.0, 0.0)
    ungated = HRD(code=SpeedReward(1.0, 0.0), plan=SpeedReward(0.0, 1.0))
    facts = Evaluation(Status.CORRECT, "", speedup=1.5, ops=(OpFact("aten.mm", 1, 1.0, 0.1),))
    assert ungated.rewards(turn("", "", facts)) == (1.0, 1.5)


def test_an_answer_without_code_is_a_plan() -> None:
    assert HRD()(turn("ab", None), [1.0, 1.0], decode).tolist() == pytest.approx([0.1] * 3)


def test_characters_of_several_tokens_stay_whole() -> None:
    # "é" is two tokens, "…" three: the plan has 2 + 3 + 1 tokens.
    answer = turn("é…\nx=1", "x=1\n")
    assert first_code_token(answer, decode) == 6
    # A token that holds the end of the plan and the first character of the code is code: here tokens are pairs of letters.
    pairs = turn("ab\nd", "d")
    assert first_code_token(pairs, lambda ids: "ab\nd"[: 2 * len(ids)]) == 1


def decode_with_fallback(ids: Sequence[int]) -> str:
    """As a tokenizer that falls back to bytes: a replacement character per byte of an unfinished character."""
    data = bytes(i for i in ids if i < 256)
    whole = data.decode("utf-8", errors="ignore")
    return whole + "\ufffd" * (len(data) - len(whole.encode()))


@settings(max_examples=60)
@given(plan=st.text("a\u00e9\u2026\U0001f600", max_size=12))
def test_unfinished_characters_of_any_tokenizer_do_not_move_the_split(plan: str) -> None:
    answer = turn(f"{plan}\nx=1\n", "x=1\n")
    expected = len(f"{plan}\n".encode())
    assert first_code_token(answer, decode) == expected
    assert first_code_token(answer, decode_with_fallback) == expected


@pytest.mark.parametrize(
    ("text", "code", "start"),
    [
        ("x=1\ny=2", "x=1\ny=2\n", 0),
        # The last occurrence: a plan may quote the code.
        ("x=1\nagain\nx=1\n", "x=1\n", 10),
        # Blocks may be indented, as in a list, and their last line may hold the fence.
        ("- so\n  x=1\n    y=2```", "x=1\n  y=2\n", 7),
        ("a\r\nx=1\r\n", "x=1\n", 3),
        ("a\rx=1\ry=2\r", "x=1\ny=2\n", 2),
        # Not to be found: all of it is code.
        ("something else", "x=1\n", 0),
    ],
)
def test_where_the_code_begins(text: str, code: str, start: int) -> None:
    assert code_start(text, code) == start


@settings(max_examples=60)
@given(plan=st.text(max_size=30), indent=st.sampled_from(["", "  "]))
def test_the_split_is_where_extraction_found_the_code(plan: str, indent: str) -> None:
    code = "import torch\n\nclass ModelNew:\n    pass\n"
    block = "".join(f"{indent}{line}\n" for line in ["```python", *code.split("\n")[:-1], "```"])
    text = f"{plan}\n{block}"
    if extract_code(text) != code:  # the plan opened a fence of its own
        return
    answer = turn(text, code)
    first = first_code_token(answer, decode)
    assert decode(answer.completion.token_ids[first:]).startswith("import torch")
    values = HRD(alpha=0.5)(answer, [2.0, 4.0], decode)
    assert values.tolist() == [2.0] * len(values)
    assert HRD(alpha=0.25)(answer, [2.0, 4.0], decode).tolist() == [1.0] * first + [2.0] * (len(values) - first)
